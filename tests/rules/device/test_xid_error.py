import pytest

from advisor.hardware.xids import XIDS, XidClass
from advisor.model.finding import Severity
from advisor.rules.device.xid_error import xid_error
from advisor.rules.samples import a_failure
from advisor.rules.samples_node import a_kernel_log, an_xid
from advisor.rules.samples_time import a_log_that_mentions


def check(*events, **fields):
    return xid_error.check(a_kernel_log(*events, **fields), None, None)


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


def told(text, failure=None, kernel=None):
    return xid_error.check(kernel, a_log_that_mentions("xid", text), failure)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("the node showed Xid 79 and then the job hung", 79),
        ("dmesg has XID error 48 for GPU 2", 48),
        ("engine hang; Xid 48/171, 63, 94, 154; the row count rose", 48),
        ("We get Xid 13 and 43 in every run", 13),
        ("kernel: xid: 119", 119),
        ("we saw xids 94, 95", 94),
        ("NVRM Xid (PCI:0000:3b:00): 79 in the screenshot", 79),
        ("It is not a software fault. Xid 79 came up.", 79),
    ],
)
def test_a_text_that_tells_of_an_xid_is_believed_with_moderation(text, number):
    finding = told(text)
    assert f"Xid {number}" in finding.statement
    assert finding.confidence <= 0.6
    assert finding.severity is Severity.WARNING
    assert "dmesg" in finding.settles.change


@pytest.mark.parametrize(
    "text",
    [
        "not Xid 79",
        "there is no Xid 79 in dmesg",
        "no Xid errors were reported",
        "we did not see an Xid 13 here",
        "Xid 79 did not occur",
        "Xid 79 was not seen on this node",
        "if you see Xid 79, drain the node",
        "the docs explain Xid 31",
        "Xid 79 means that the card fell off the bus",
        "dmesg | grep -i xid",
        "looked for Xid 48 and found nothing",
        "xid errors: 0",
        "Xid 106",
        "Xid 999",
        "transaction xid 79af",
        "xid 79.5",
        "xid=13000",
    ],
)
def test_what_is_denied_supposed_explained_or_harmless_fires_nothing(text):
    assert told(text) is None


def test_beside_a_failure_a_broken_card_is_the_error_and_explains_what_only_follows():
    finding = told("Xid 79 came first", a_failure())
    assert finding.severity is Severity.ERROR
    assert finding.supersedes == ("MEM709",)
    assert told("Xid 13 came first", a_failure()).supersedes == ()


def test_the_kernels_own_log_is_asked_first():
    assert "The driver reported Xid 31" in told("Xid 79", kernel=a_kernel_log(an_xid(31))).statement
    assert "tells of Xid 79" in told("Xid 79", kernel=a_kernel_log()).statement
