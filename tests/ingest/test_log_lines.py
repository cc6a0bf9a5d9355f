from hypothesis import given
from hypothesis import strategies as st

from advisor.ingest.log_lines import HEAD_BYTES, LINE_REACH_BYTES, TAIL_BYTES, LogLines


@given(st.lists(st.text(alphabet="ab \t", max_size=5), max_size=20))
def test_lines_are_counted_as_split_counts_them(lines: list[str]) -> None:
    log = LogLines("\n".join(lines).encode())

    expected = "\n".join(lines).split("\n")
    assert log.line_count == len(expected) - (expected[-1] == "")


def test_a_line_is_found_by_any_position_in_it() -> None:
    log = LogLines(b"one\ntwo words\nthree")

    assert [log.line_at(position).text for position in (0, 4, 12, 14)] == [
        "one",
        "two words",
        "two words",
        "three",
    ]
    assert log.line_at(5).number == 2


def test_lines_above_and_below_are_walked() -> None:
    log = LogLines(b"a\n\nb\nc\nd\n")
    line = log.line_at(log.raw.index(b"c"))

    assert [above.text for above in log.upward(line, 9)] == ["b", "", "a"]
    assert [below.text for below in log.after(line, 1)] == ["d"]
    assert [above.number for above in log.upward(line, 9)] == [3, 2, 1]


def test_a_needle_is_found_once_a_line_and_from_both_ends() -> None:
    log = LogLines(b"x x\n" * 100)

    places, is_all = log.find(b"x", 10, everywhere=True)

    assert [place // 4 for place in places] == [0, 1, 2, 3, 4, 95, 96, 97, 98, 99]
    assert not is_all
    assert log.find(b"x", 400, everywhere=True)[1]


def test_the_middle_of_a_large_log_is_left_out_where_that_is_wanted() -> None:
    filler = b"." * 99 + b"\n"
    middle = HEAD_BYTES + TAIL_BYTES
    log = LogLines(filler * (HEAD_BYTES // 100 + 10) + b"needle\n" + filler * (middle // 100) + b"needle\n")

    assert len(log.find(b"needle", 10, everywhere=True)[0]) == 2
    assert len(log.find(b"needle", 10, everywhere=False)[0]) == 1


def test_a_carriage_return_ends_a_line_but_counts_none_where_newlines_do() -> None:
    log = LogLines(b"10%\r20%\rerror here\nnext\n")

    line = log.line_at(log.raw.index(b"error"))
    assert (line.text, line.number) == ("error here", 1)
    assert log.line_count == 2


def test_a_very_long_line_is_cut_around_what_was_found() -> None:
    log = LogLines(b"x" * 100_000 + b"needle" + b"y" * 100_000)

    line = log.line_at(100_000)

    assert "needle" in line.text
    assert len(line.text) <= 2 * LINE_REACH_BYTES
