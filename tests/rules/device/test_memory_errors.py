import pytest

from advisor.model.finding import Severity
from advisor.rules.device.memory_errors import MANY_PAGES, memory_errors
from advisor.rules.samples_node import a_gpu, a_kernel_log, a_node_reading, an_idle_gpu, an_xid


def check(*gpus, kernel=None):
    return memory_errors.check(a_node_reading(*gpus), kernel)


@pytest.mark.parametrize(
    ("fields", "severity"),
    [
        ({"ecc_uncorrected": 1}, Severity.ERROR),
        ({"remap_failed": True}, Severity.ERROR),
        ({"remap_pending": True}, Severity.WARNING),
        ({"retired_pages": MANY_PAGES}, Severity.WARNING),
        ({"retired_pages": MANY_PAGES - 1}, Severity.INFO),
        ({"retired_pages": 1}, Severity.INFO),
    ],
)
def test_each_counter_fires_by_its_weight(fields, severity):
    assert check(a_gpu(**fields)).severity is severity


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"ecc_uncorrected": 0, "retired_pages": 0},
        {
            "ecc_uncorrected": None,
            "remap_pending": None,
            "remap_failed": None,
            "retired_pages": None,
        },
        {"ecc_uncorrected_lifetime": 5, "remapped_rows": 3},
    ],
)
def test_a_repaired_card_and_one_that_cannot_tell_are_in_order(fields):
    assert check(a_gpu(**fields), an_idle_gpu(index=1, **fields)) is None


def test_the_gravest_card_is_named_first():
    finding = check(a_gpu(retired_pages=1), a_gpu(index=3, remap_failed=True))
    assert finding.statement.startswith("GPU 3")
    assert "Others: GPU 0" in finding.statement
    assert [action.title for action in finding.actions] == ["Exchange the card"]


def test_the_kernels_messages_about_the_same_card_make_it_surer_and_are_explained():
    alone = check(a_gpu(ecc_uncorrected=2))
    told = check(a_gpu(ecc_uncorrected=2), kernel=a_kernel_log(an_xid(48), an_xid(63)))
    assert told.confidence > alone.confidence
    assert told.supersedes == ("DEV106",)
    assert any("Xid 48" in fact.statement for fact in told.observations)


def test_messages_about_another_card_do_not_count():
    told = check(a_gpu(ecc_uncorrected=2), kernel=a_kernel_log(an_xid(48, bus_id="0000:4c:00")))
    assert told.supersedes == ()
    assert told.confidence == check(a_gpu(ecc_uncorrected=2)).confidence


def test_an_xid_of_another_class_stays_a_finding_of_its_own():
    told = check(a_gpu(ecc_uncorrected=2), kernel=a_kernel_log(an_xid(48), an_xid(79)))
    assert told.supersedes == ()
