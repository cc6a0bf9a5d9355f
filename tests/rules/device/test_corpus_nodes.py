"""The device rules on real nodes: healthy ones fire nothing, each finding has its reason."""

import pytest
from corpus_location import corpus

from advisor.engine.advise import advise
from advisor.ingest.exporter_metrics import read_exporter_metrics
from advisor.ingest.kernel_log import read_kernel_log
from advisor.ingest.nvidia_smi_csv import read_nvidia_smi_csv
from advisor.ingest.nvidia_smi_listing import read_nvidia_smi_listing
from advisor.ingest.nvidia_smi_text import read_nvidia_smi_text
from advisor.ingest.nvidia_smi_xml import read_nvidia_smi_xml
from advisor.model.case import Case
from advisor.model.finding import Severity
from advisor.rules.device.clock_below_max import clock_below_max
from advisor.rules.device.hardware_slowdown import hardware_slowdown
from advisor.rules.device.memory_errors import memory_errors
from advisor.rules.device.pcie_link_degraded import pcie_link_degraded
from advisor.rules.device.power_cap import power_cap
from advisor.rules.device.thermal_throttle import thermal_throttle
from advisor.rules.device.xid_error import xid_error

RULES = (
    thermal_throttle,
    power_cap,
    hardware_slowdown,
    clock_below_max,
    memory_errors,
    xid_error,
    pcie_link_degraded,
)

READERS = (
    read_nvidia_smi_xml,
    read_nvidia_smi_text,
    read_nvidia_smi_csv,
    read_exporter_metrics,
    read_nvidia_smi_listing,
    read_kernel_log,
)

EXPECTED = {
    # 629 illegal accesses of kernels (Xid 13) and the programs that they ended (Xid 43).
    "dmesg.decode.iso.log.0": ("DEV106", Severity.WARNING, "Xid 13"),
    # An uncorrectable error (48), its row marked (63), the programs that used it ended (94).
    "dmesg-time-format-iso.log": ("DEV106", Severity.ERROR, "Xid 48"),
    # The card's own processor does not answer (119): the log itself advises a reset.
    "dmesg-with-xid-119.log": ("DEV106", Severity.ERROR, "Xid 119"),
}
"""What fires, by the end of the file's name, and why. On all other files nothing fires.

Among them: eight cards of which two run at their default power limit with the cap active, idle
cards with links at generation 1 or at 8 of 16 lanes, an idle card that reports the power cap, and
cards at full load with 85% of a clock that they never reach.
"""


def evidence_of(path):
    text = path.read_bytes()
    return next(found for reader in READERS if (found := reader(text, path.name)) is not None)


def nodes():
    return [path for path in sorted(corpus().glob("node/*/*")) if path.is_file()]


def test_healthy_nodes_fire_nothing_and_faults_fire_what_they_are():
    seen = set()
    for path in nodes():
        report = advise(Case(evidence=(evidence_of(path),)), RULES)
        assert report.faulted == ()
        found = [(item.code, item.finding.severity, item.finding.statement) for item in report.diagnoses]
        ending = next((ending for ending in EXPECTED if path.name.endswith(ending)), None)
        if ending is None:
            assert found == [], path.name
            continue
        seen.add(ending)
        code, severity, words = EXPECTED[ending]
        assert [(item[0], item[1]) for item in found] == [(code, severity)], path.name
        assert words in found[0][2]
    assert seen == set(EXPECTED)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
def test_a_rules_own_cases_hold_through_the_engine(rule):
    fired = advise(rule.fires(), (rule,))
    assert [item.code for item in fired.diagnoses] == [rule.code]
    assert fired.faulted == ()
    clean = advise(rule.clean(), (rule,))
    assert (clean.diagnoses, clean.faulted, clean.skipped) == ((), (), ())
