import pytest

from advisor.model.tables import OperatorRow
from advisor.model.waits import SynchronizationSite
from advisor.rules.host.implicit_synchronization import implicit_synchronization
from advisor.rules.samples import a_breakdown
from advisor.rules.samples_time import a_log_that_mentions, a_synchronizations, a_table


def waits(exposed, *, operator="aten::item", line="train.py(8): step", host=0.5):
    site = SynchronizationSite(
        operator=operator,
        call="cudaStreamSynchronize",
        line=line,
        count=10,
        host_seconds=host,
        exposed_seconds=exposed,
    )
    return a_synchronizations(count=10, host_seconds=host, exposed_seconds=exposed, sites=(site,))


def check(breakdown=None, synchronizations=None, table=None, log=None):
    return implicit_synchronization.check(breakdown, synchronizations, None, table, log, None)


@pytest.mark.parametrize(("exposed", "fires"), [(0.029, False), (0.031, True)])
def test_only_idle_time_of_the_device_counts_however_long_the_host_waits(exposed, fires):
    assert (check(a_breakdown(), waits(exposed)) is not None) is fires


def test_it_names_the_operator_and_the_line():
    statement = check(a_breakdown(), waits(0.2)).statement
    assert "aten::item (cudaStreamSynchronize) at train.py(8): step" in statement


def test_a_wait_without_operator_and_line_makes_it_less_sure():
    unnamed = check(a_breakdown(), waits(0.2, operator="", line=""))
    assert unnamed.confidence < check(a_breakdown(), waits(0.2)).confidence


@pytest.mark.parametrize(("seconds", "fires"), [(0.099, False), (0.101, True)])
def test_a_table_fires_by_the_share_of_rows_that_wait(seconds, fires):
    row = OperatorRow(name="aten::nonzero", calls=900, self_cpu_seconds=seconds)
    table = a_table(row, self_cpu_total_seconds=1.0, device="CUDA")
    assert (check(table=table) is not None) is fires


def test_the_one_wait_at_the_end_of_a_profile_is_not_the_programs():
    row = OperatorRow(name="cudaDeviceSynchronize", calls=1, self_cpu_seconds=0.6)
    assert check(table=a_table(row, self_cpu_total_seconds=1.0)) is None


def test_a_log_that_speaks_of_a_wait_is_believed_with_moderation():
    log = a_log_that_mentions("stream-synchronize", "cudaStreamSynchronize 40 ms a step")
    assert check(log=log).confidence == 0.65


def test_a_line_of_a_traceback_is_no_statement_about_time():
    log = a_log_that_mentions("item", "total += loss.item()", in_code=True)
    assert check(log=log) is None


@pytest.mark.parametrize(("seconds", "fires"), [(0.099, False), (0.101, True)])
def test_a_cut_table_still_shows_the_wait_inside_the_operator(seconds, fires):
    row = OperatorRow(name="aten::nonzero", calls=900, self_cpu_seconds=0.005, cpu_seconds=seconds)
    assert (check(table=a_table(row, self_cpu_total_seconds=1.0, device="CUDA")) is not None) is fires


READS = OperatorRow(name="aten::item", calls=900, self_cpu_seconds=0.01, cpu_seconds=0.4)


def test_on_the_processor_a_read_waits_for_nothing():
    assert check(table=a_table(READS, self_cpu_total_seconds=1.0)) is None


def test_calls_of_the_runtime_show_a_device_whose_columns_are_missing():
    calls = OperatorRow(name="cudaLaunchKernel", calls=4_000, self_cpu_seconds=0.1)
    assert check(table=a_table(READS, calls, self_cpu_total_seconds=1.0)) is not None
