import pytest

from advisor.hardware.xids import XIDS, XidClass
from advisor.model.finding import Severity
from advisor.rules.device.xid_error import xid_error
from advisor.rules.samples_node import a_kernel_log, an_xid


def check(*events, **fields):
    return xid_error.check(a_kernel_log(*events, **fields))


@pytest.mark.parametrize("xid", [48, 64, 94, 95, 140, 46, 62, 79, 109, 119, 120, 143, 74, 149])
def test_hardware_is_an_error(xid):
    finding = check(an_xid(xid))
    assert finding.severity is Severity.ERROR
    assert finding.confidence >= 0.75
    assert "reset" in " ".join(action.change for action in finding.actions).lower()


@pytest.mark.parametrize("xid", [13, 31, 43, 69, 45, 68])
def test_the_programs_own_faults_are_a_warning_and_lead_to_its_code(xid):
    finding = check(an_xid(xid))
    assert finding.severity is Severity.WARNING
    assert "compute-sanitizer" in finding.actions[0].change


@pytest.mark.parametrize("xid", [63, 92])
def test_a_repair_that_succeeded_is_a_warning(xid):
    assert check(an_xid(xid)).severity is Severity.WARNING


@pytest.mark.parametrize("xid", [106, 107, 37, 163])
def test_harmless_messages_fire_nothing(xid):
    assert check(an_xid(xid)) is None


def test_a_log_without_an_xid_fires_nothing():
    assert check() is None


def test_a_fault_of_the_card_outweighs_those_of_the_program():
    finding = check(an_xid(13), an_xid(43, line=813), an_xid(79, line=814))
    assert "Xid 79" in finding.statement
    assert [fact.statement.split(",")[0] for fact in finding.observations] == [
        "Xid 79",
        "Xid 13",
        "Xid 43",
    ]


def test_an_unknown_number_is_said_to_be_unknown():
    finding = check(an_xid(999))
    assert "not in the catalog" in finding.statement
    assert finding.confidence <= 0.4


def test_all_that_the_log_counted_is_said_and_not_only_what_was_kept():
    finding = check(an_xid(31), counts={"xid": 5000, "xid 31": 5000})
    assert "5,000 times" in finding.statement
    assert finding.observations[0].value == 5000


def test_every_number_has_one_class_and_every_class_numbers():
    assert {meaning.accused for meaning in XIDS.values()} == set(XidClass)


def test_the_page_names_each_number_of_the_plain_classes_in_its_row():
    rows = [line for line in xid_error.page.splitlines() if line.startswith("| ")]
    for accused in (
        XidClass.APPLICATION,
        XidClass.MEMORY,
        XidClass.DEVICE,
        XidClass.CONSEQUENCE,
        XidClass.HARMLESS,
    ):
        numbers = sorted(number for number, meaning in XIDS.items() if meaning.accused is accused)
        assert any(row.rstrip(" |").endswith(", ".join(map(str, numbers))) for row in rows), accused
