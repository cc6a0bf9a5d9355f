import pytest

from advisor.analysis.quoted_table import quoted_table
from advisor.rules.samples_time import a_log_that_mentions


def quoted(text):
    return quoted_table(a_log_that_mentions("profiler", text))


def test_a_row_is_quoted_with_its_name_its_share_and_its_time():
    (row,) = quoted("the loader: enumerate(DataLoader)#_MyIter._...   41.50%   12.5s   42%").rows
    assert row.name == "enumerate(DataLoader)#_MyIter._..."
    assert (row.self_cpu_ratio, row.self_cpu_seconds) == (pytest.approx(0.415), 12.5)


def test_several_rows_may_stand_in_one_line_with_their_calls():
    table = quoted("cudaMalloc 20.0% 3.0s 30 calls | aten::to 10.0% 150.0ms 9000 calls")
    assert [(row.name, row.calls) for row in table.rows] == [("cudaMalloc", 30), ("aten::to", 9000)]
    assert table.is_cut


def test_the_last_lines_of_a_table_are_its_totals():
    table = quoted("Self CPU time total: 2.5ms / Self CUDA time total: 25.0us")
    assert table.self_cpu_total_seconds == pytest.approx(2.5e-3)
    assert table.self_device_total_seconds == pytest.approx(25e-6)
    assert (table.device, table.rows) == ("CUDA", ())


@pytest.mark.parametrize("text", ["loss 0.25, 40% done", "GPU util 35%", "took 3.2s"])
def test_percentages_and_times_alone_are_no_table(text):
    assert quoted(text) is None
