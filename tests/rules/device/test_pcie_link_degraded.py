import pytest

from advisor.model.finding import Severity
from advisor.model.node import KernelEvent, KernelEventKind
from advisor.rules.device.pcie_link_degraded import EXPOSED_COPY_RATIO, pcie_link_degraded
from advisor.rules.samples import a_breakdown
from advisor.rules.samples_node import a_gpu, a_kernel_log, a_node_reading, an_idle_gpu


def check(*gpus, kernel=None, breakdown=None):
    return pcie_link_degraded.check(a_node_reading(*gpus), kernel, breakdown)


def test_an_idle_link_sleeps_and_is_healthy():
    assert check(an_idle_gpu(pcie_generation=1, pcie_width=8)) is None


def test_a_loaded_link_at_its_best_is_healthy():
    assert check(a_gpu()) is None


def test_a_link_that_is_not_in_the_reading_is_unknown():
    assert check(a_gpu(pcie_width=None), a_gpu(max_pcie_generation=None)) is None


@pytest.mark.parametrize(
    ("fields", "severity"),
    [
        ({"pcie_width": 8}, Severity.INFO),
        ({"pcie_generation": 4}, Severity.INFO),
        ({"pcie_width": 4}, Severity.WARNING),
        ({"pcie_generation": 3}, Severity.WARNING),
        ({"pcie_generation": 1}, Severity.WARNING),
    ],
)
def test_a_quarter_of_the_bandwidth_is_a_warning_and_half_a_note(fields, severity):
    assert check(a_gpu(**fields)).severity is severity


@pytest.mark.parametrize(
    ("copies", "severity"),
    [(EXPOSED_COPY_RATIO, Severity.WARNING), (EXPOSED_COPY_RATIO - 0.01, Severity.INFO)],
)
def test_half_a_link_is_a_loss_where_the_job_waits_for_copies(copies, severity):
    finding = check(a_gpu(pcie_width=8), breakdown=a_breakdown(exposed_copies=copies))
    assert finding.severity is severity
    assert finding.impact.step_ratio == pytest.approx(copies * 0.5)


def test_the_kernels_errors_make_it_surer():
    event = KernelEvent(kind=KernelEventKind.PCIE_ERROR, line=3, text="AER: error received: 0000:19:00.0")
    finding = check(a_gpu(pcie_width=8), kernel=a_kernel_log(event))
    assert finding.confidence == 0.9
    assert "AER" in finding.observations[-1].statement
