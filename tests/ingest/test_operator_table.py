import pytest

from advisor.ingest.operator_table import NO_DEVICE_COLUMNS, looks_like_operator_table, read_operator_table

MODERN = [
    *("Name", "Self CPU %", "Self CPU", "CPU total %", "CPU total", "CPU time avg"),
    *("Self CUDA", "Self CUDA %", "CUDA total", "CUDA time avg"),
]
WIDTH = 12


def a_table(headings, rows, *, name_width=40, footer=("Self CPU time total: 1.500s",), widths=None):
    """A table as PyTorch prints it: right-aligned, columns of one width, two blanks between."""
    wide = widths or {}
    sizes = [name_width, *(wide.get(heading, WIDTH) for heading in headings[1:])]
    rule = "  ".join("-" * size for size in sizes) + "  "
    lines = ["  ".join(cell.rjust(size) for cell, size in zip(cells, sizes, strict=True)) + "  " for cells in (headings, *rows)]
    return "\n".join([rule, lines[0], rule, *lines[1:], rule, *footer, ""]).encode()


def a_row(name="aten::mm", calls="12"):
    return [
        name,
        "10.00%",
        "150.000ms",
        "20.00%",
        "300.000ms",
        "25.000ms",
        "1.200s",
        "40.00%",
        "1.300s",
        "108.333ms",
        calls,
    ]


def read(text):
    return read_operator_table(text, "log.txt")


def test_a_modern_table_is_read_with_its_footer():
    table = read(
        a_table(
            [*MODERN, "# of Calls"],
            [a_row(), a_row("aten::add", "7")],
            footer=("Self CPU time total: 1.500s", "Self CUDA time total: 3.000s"),
        )
    )
    assert [row.name for row in table.rows] == ["aten::mm", "aten::add"]
    row = table.rows[0]
    assert (row.calls, row.self_cpu_seconds, row.cpu_seconds) == (12, 0.15, 0.3)
    assert (row.self_device_seconds, row.device_seconds) == (1.2, 1.3)
    assert (row.self_cpu_ratio, row.cpu_ratio, row.self_device_ratio) == (0.1, 0.2, 0.4)
    assert (table.device, table.self_cpu_total_seconds, table.self_device_total_seconds) == (
        "CUDA",
        1.5,
        3.0,
    )
    assert (table.is_cut, table.gaps) == (False, ())


def test_memory_shapes_and_flops_are_read_in_their_units():
    headings = [
        *MODERN,
        "CPU Mem",
        "Self CPU Mem",
        "CUDA Mem",
        "Self CUDA Mem",
        "# of Calls",
        "Input Shapes",
        "Total MFLOPs",
    ]
    row = [
        *a_row()[:-1],
        "0 b",
        "-4 b",
        "6.00 Mb",
        "2.00 Kb",
        "12",
        "[[32, 64], [64, 8], []]",
        "1234.500",
    ]
    (read_row,) = read(a_table(headings, [row], widths={"Input Shapes": 40})).rows
    assert (read_row.self_cpu_bytes, read_row.self_device_bytes) == (-4, 2048)
    assert read_row.input_shapes == "[[32, 64], [64, 8], []]"
    assert read_row.flops == 1234.5e6


def test_a_cell_that_is_empty_does_not_shift_the_others():
    headings = ["Name", "Overload Name", *MODERN[1:], "# of Calls"]
    table = read(a_table(headings, [["aten::mm", "", *a_row()[1:]], ["aten::add", "Tensor", *a_row()[1:]]]))
    assert [(row.name, row.calls) for row in table.rows] == [("aten::mm", 12), ("aten::add", 12)]


@pytest.mark.parametrize("device", ["XPU", "MPS", "PrivateUse1", "MTIA"])
def test_the_device_is_named_by_the_headings(device):
    headings = [heading.replace("CUDA", device) for heading in (*MODERN, "# of Calls")]
    table = read(a_table(headings, [a_row()]))
    assert (table.device, table.rows[0].self_device_seconds) == (device, 1.2)


def test_a_table_without_device_columns_has_no_device_and_says_what_it_cannot_tell():
    headings = [*MODERN[:6], "# of Calls"]
    table = read(a_table(headings, [[*a_row()[:6], "3"]]))
    assert (table.device, table.rows[0].device_seconds, table.rows[0].calls) == ("", None, 3)
    assert table.gaps == (NO_DEVICE_COLUMNS,)


def test_names_with_blanks_and_cut_names_stay_as_printed():
    names = [
        "enumerate(DataLoader)#_SingleProcess...",
        "void at::native::(anonymous namespace)::...",
    ]
    table = read(a_table([*MODERN, "# of Calls"], [a_row(name) for name in names], name_width=46))
    assert [row.name for row in table.rows] == names


def test_a_table_of_torch_1_0_has_no_self_device_time():
    headings = [
        "Name",
        "Self CPU total %",
        "Self CPU total",
        "CPU total %",
        "CPU total",
        "CPU time avg",
        "CUDA total %",
        "CUDA total",
        "CUDA time avg",
        "Number of Calls",
    ]
    row = [
        "conv2d",
        "5.00%",
        "1.500ms",
        "6.00%",
        "2.000ms",
        "2.000ms",
        "7.00%",
        "3.000ms",
        "3.000ms",
        "1",
    ]
    table = read(a_table(headings, [row]))
    assert table.rows[0].device_seconds == 0.003
    assert table.rows[0].self_device_seconds is None


def test_the_rates_of_torch_1_8_are_not_taken_for_totals():
    table = read(a_table([*MODERN, "# of Calls", "GFLOPS"], [[*a_row(), "55.000"]]))
    assert table.rows[0].flops is None
    assert any("rate" in gap for gap in table.gaps)


def test_markdown_is_read():
    text = b"""
Name | Self CPU % | Self CPU | CPU total % | CPU total | CPU time avg | # of Calls
-- | -- | -- | -- | -- | -- | --
aten::mm | 4.93% | 5.875s | 6.82% | 8.119s | 1.660ms | 4890
aten::copy_ | 0.23% | 276.372ms | 0.79% | 940.697ms | 19.377us | 48548
"""
    table = read(text)
    assert [(row.name, row.calls) for row in table.rows] == [
        ("aten::mm", 4890),
        ("aten::copy_", 48548),
    ]
    assert table.is_cut


def test_a_table_inside_a_log_with_prefixes_is_found_and_placed():
    body = a_table([*MODERN, "# of Calls"], [a_row(), a_row("aten::add")]).splitlines()
    text = b"step 1\nstep 2\n" + b"".join(b"[rank0]: " + line + b"\n" for line in body) + b"step 3 loss 2.0\n"
    table = read(text)
    assert [row.name for row in table.rows] == ["aten::mm", "aten::add"]
    assert str(table.source) == "log.txt: line 4"
    assert table.self_cpu_total_seconds == 1.5


def test_lines_of_the_stack_below_a_row_are_no_rows():
    headings = [*MODERN, "# of Calls", "Source Location"]
    first, second = (
        [*a_row(), "model.py(12): forward"],
        [*a_row("aten::add"), "<built-in method add>"],
    )
    continuation = ["", *[""] * (len(headings) - 2), "train.py(40): step"]
    table = read(a_table(headings, [first, continuation, continuation, second], widths={"Source Location": 30}))
    assert [row.name for row in table.rows] == ["aten::mm", "aten::add"]
    assert table.gaps == ()


def test_rows_without_a_heading_are_read_by_their_shape_and_that_is_said():
    rows = "\n".join("  ".join(a_row(name)) for name in ("aten::mm", "aten::add")).encode()
    table = read(rows)
    assert [(row.name, row.self_device_seconds) for row in table.rows] == [
        ("aten::mm", 1.2),
        ("aten::add", 1.2),
    ]
    assert table.is_cut
    assert "inferred" in table.gaps[0]


def test_a_row_that_breaks_off_keeps_what_stands_before_the_cut():
    text = a_table([*MODERN, "# of Calls"], [a_row(), a_row("aten::add")], footer=())
    cut = text[: text.rindex(b"40.00%") + 3]
    table = read(cut)
    assert [row.name for row in table.rows] == ["aten::mm", "aten::add"]
    assert (
        table.rows[1].self_device_seconds,
        table.rows[1].self_device_ratio,
        table.rows[1].calls,
    ) == (1.2, None, None)
    assert "is torn" in table.gaps[0]


def test_of_two_tables_the_first_is_read_and_the_other_is_said():
    text = a_table([*MODERN, "# of Calls"], [a_row()]) + a_table([*MODERN, "# of Calls"], [a_row("aten::add")])
    table = read(text)
    assert [row.name for row in table.rows] == ["aten::mm"]
    assert table.gaps == ("1 more tables follow; the first is read",)


@pytest.mark.parametrize(
    "text",
    [
        b"epoch 1: 45% 120.5ms 3 it/s\n",
        b"Self CPU usage was high and CPU total was 3\n",
        b"progress  10%  1.5s  done\n",
        b"",
    ],
)
def test_a_log_without_a_table_has_none(text):
    assert read(text) is None


def test_the_cheap_test_agrees_on_a_table():
    assert looks_like_operator_table(a_table([*MODERN, "# of Calls"], [a_row()]))
    assert not looks_like_operator_table(b"step 1 loss 2.0\n")
