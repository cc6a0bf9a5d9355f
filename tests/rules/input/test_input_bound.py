import pytest

from advisor.model.finding import Severity
from advisor.model.tables import OperatorRow
from advisor.rules.input.input_bound import input_bound
from advisor.rules.samples import a_breakdown, a_failure
from advisor.rules.samples_time import a_log_that_mentions, a_mix, a_table, an_input_wait

LOADER = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"


def check(breakdown=None, wait=None, mix=None, *, table=None, log=None, failure=None):  # noqa: PLR0913 - the needs of the rule
    return input_bound.check(breakdown, wait, mix, table, log, failure)


@pytest.mark.parametrize(("ratio", "fires"), [(0.0999, False), (0.1001, True), (0.6, True)])
def test_a_tenth_of_the_window_idle_in_the_loader_fires(ratio, fires):
    assert (check(a_breakdown(input_wait=ratio), an_input_wait()) is not None) is fires


def test_idle_time_without_a_loader_in_the_trace_is_never_called_waiting_for_input():
    assert check(a_breakdown(input_wait=0.5), None) is None


def test_what_could_be_won_is_the_idle_time_of_a_step_and_the_rest_is_the_predicted_step():
    finding = check(a_breakdown(input_wait=0.25), an_input_wait())
    assert finding.impact.step_ratio == pytest.approx(0.25)
    assert finding.impact.recoverable_seconds_per_step == pytest.approx(0.025)
    assert finding.actions[0].predicted.step_seconds == pytest.approx(0.075)
    assert finding.severity is Severity.WARNING


def test_on_a_cpu_the_loop_itself_stands_still():
    breakdown = a_breakdown(device_index=None, parts={}, seconds={}, busy_ratio=None)
    finding = check(breakdown, an_input_wait(wait_seconds=0.4, exposed_seconds=None))
    assert "stands still" in finding.statement


def test_a_fragment_of_a_trace_is_no_proof():
    few = a_mix(kernel_count=149)
    assert check(a_breakdown(input_wait=0.5), an_input_wait(), few).confidence == 0.5
    enough = a_mix(kernel_count=150)
    assert check(a_breakdown(input_wait=0.5), an_input_wait(), enough).confidence > 0.5


@pytest.mark.parametrize(("seconds", "fires"), [(0.099, False), (0.101, True)])
def test_a_table_fires_by_its_share_of_all_cpu_time(seconds, fires):
    table = a_table(OperatorRow(name=LOADER, calls=10, self_cpu_seconds=seconds), self_cpu_total_seconds=1.0)
    assert (check(table=table) is not None) is fires


def test_a_cut_table_is_judged_by_its_printed_percentages():
    row = OperatorRow(name=LOADER, calls=100, self_cpu_seconds=78.6, self_cpu_ratio=0.886)
    finding = check(table=a_table(row, is_cut=True))
    assert finding.confidence > 0.8
    assert "of all CPU time" in finding.statement


@pytest.mark.parametrize(
    ("text", "confidence"),
    [
        ("time: 0.500 data_time: 0.300", 0.8),
        ("time: 0.500 data_time: 0.030", None),
        ("data_time per batch 0.2 s", 0.45),
        ("data_time per batch 0.2 s; GPU idle 60-80%", 0.7),
        ("loss: 0.2", None),
    ],
)
def test_a_log_is_read_for_the_wait_that_it_prints(text, confidence):
    finding = check(log=a_log_that_mentions("data-time", text))
    assert (finding.confidence if finding else None) == confidence


def test_the_log_of_a_failure_is_not_asked_why_it_is_slow():
    log = a_log_that_mentions("data-time", "time: 0.500 data_time: 0.300")
    assert check(log=log, failure=a_failure()) is None


def test_a_table_without_a_device_speaks_of_no_device():
    row = OperatorRow(name=LOADER, calls=10, self_cpu_seconds=0.4)
    assert "device" not in check(table=a_table(row, self_cpu_total_seconds=1.0)).statement
    assert "device" in check(table=a_table(row, self_cpu_total_seconds=1.0, device="CUDA")).statement


def test_a_wait_for_the_first_batch_alone_is_warm_up():
    warmed_up = {"steady_step_count": 9, "steady_window_seconds": 0.2, "steady_lost_seconds": 0.001}
    assert check(a_breakdown(input_wait=0.6), an_input_wait(**warmed_up)) is None
