import pytest

from advisor.model.tables import OperatorRow
from advisor.rules.host.launch_bound import launch_bound
from advisor.rules.samples import a_breakdown
from advisor.rules.samples_time import a_launch_profile, a_log_that_mentions, a_mix, a_table

SHORT = {"median_kernel_seconds": 6e-6, "starved_ratio": 0.6, "short_gap_seconds": 0.9}


def check(breakdown=None, launches=None, mix=None, table=None, log=None):
    return launch_bound.check(breakdown, launches, mix, table, log, None)


@pytest.mark.parametrize(("ratio", "fires"), [(0.149, False), (0.151, True)])
def test_it_fires_from_fifteen_percent_of_idle_time_on(ratio, fires):
    assert (check(a_breakdown(launch=ratio), a_launch_profile(**SHORT)) is not None) is fires


@pytest.mark.parametrize(("starved", "fires"), [(0.099, False), (0.101, True)])
def test_a_tenth_of_the_kernels_must_find_the_device_idle(starved, fires):
    launches = a_launch_profile(**(SHORT | {"starved_ratio": starved}))
    assert (check(a_breakdown(launch=0.4), launches) is not None) is fires


@pytest.mark.parametrize(("graphs", "fires"), [(0.51, False), (0.49, True)])
def test_kernels_out_of_graphs_are_not_launch_bound(graphs, fires):
    launches = a_launch_profile(graph_kernel_ratio=graphs, **SHORT)
    assert (check(a_breakdown(launch=0.4), launches) is not None) is fires


@pytest.mark.parametrize(("median", "fires"), [(51e-6, False), (49e-6, True)])
def test_long_kernels_are_not_what_launches_cannot_keep_up_with(median, fires):
    launches = a_launch_profile(**(SHORT | {"median_kernel_seconds": median}))
    assert (check(a_breakdown(launch=0.4), launches) is not None) is fires


def test_without_recorded_launches_it_does_not_judge():
    assert check(a_breakdown(launch=0.9), None, a_mix()) is None


def test_a_profiler_that_records_python_frames_makes_it_less_sure():
    plain = check(a_breakdown(launch=0.4), a_launch_profile(**SHORT))
    framed = check(a_breakdown(launch=0.4), a_launch_profile(has_python=True, **SHORT))
    assert framed.confidence < plain.confidence


@pytest.mark.parametrize(("cpu", "fires"), [(0.49, False), (0.51, True)])
def test_a_table_fires_where_the_host_works_five_times_as_long_as_the_device(cpu, fires):
    table = a_table(self_cpu_total_seconds=cpu, self_device_total_seconds=0.1, device="CUDA")
    assert (check(table=table) is not None) is fires


def test_a_table_whose_cpu_time_is_waiting_is_not_launch_bound():
    waiting = OperatorRow(name="cudaStreamSynchronize", calls=9, self_cpu_seconds=0.31)
    table = a_table(waiting, self_cpu_total_seconds=1.0, self_device_total_seconds=0.1, device="CUDA")
    assert check(table=table) is None


def test_a_table_without_device_time_says_nothing_about_launches():
    assert check(table=a_table(self_cpu_total_seconds=5.0)) is None


def test_a_few_long_gaps_are_not_made_by_launches():
    launches = a_launch_profile(**(SHORT | {"short_gap_seconds": 0.1}))
    assert check(a_breakdown(launch=0.8), launches) is None


def test_the_profilers_own_recording_is_not_counted():
    inflated = a_launch_profile(profiler_seconds=0.1, **SHORT)
    assert check(a_breakdown(launch=0.24), inflated) is None
    assert check(a_breakdown(launch=0.26), inflated).impact.step_ratio == pytest.approx(0.16)


@pytest.mark.parametrize("name", ["Optimizer.step#AdamW.step", "model_inference", "aten::convolution", "cudaLaunchKernel"])
def test_a_table_of_the_processors_time_alone_is_never_launch_bound(name):
    row = OperatorRow(name=name, calls=3_000, self_cpu_seconds=0.9, cpu_seconds=0.9)
    assert check(table=a_table(row, self_cpu_total_seconds=1.0)) is None


def test_a_row_of_a_table_is_no_complaint_about_launches():
    line = "cudaLaunchKernel   10.00%   100.000ms   10.00%   100.000ms   20.000us   5000"
    log = a_log_that_mentions("launch-overhead", line)
    table = a_table(OperatorRow(name="cudaLaunchKernel", calls=5_000, self_cpu_seconds=0.1), self_cpu_total_seconds=1.0)
    assert check(table=table, log=log) is None
    said = a_log_that_mentions("launch-overhead", "the profile says that we are launch bound")
    assert check(table=table, log=said) is not None
