"""Paragraphs and columns fit their width and lose nothing."""

from itertools import pairwise

from hypothesis import example, given
from hypothesis import strategies as st

from advisor.render.layout import cells, colored_text, columns, paragraph, plain_text

TEXTS = st.text(st.sampled_from("ab -/wide\n界é"), max_size=60)


def lines_of(*spans, width=20, **options):
    return plain_text(paragraph(*spans, width=width, **options)).splitlines()


@given(text=TEXTS, more=TEXTS, width=st.integers(4, 30), indent=st.integers(0, 2))
@example(text="one two", more="", width=7, indent=0)
def test_a_paragraph_fits_its_width_and_keeps_every_word(text, more, width, indent):
    lines = lines_of((text, "bold"), (more, ""), width=width, indent=indent)
    assert all(cells(line) <= width for line in lines)
    assert "".join("".join(lines).split()) == "".join((text + more).split())


@given(text=st.lists(st.text("abc", min_size=1, max_size=8), min_size=1).map(" ".join), width=st.integers(8, 30))
def test_words_that_fit_a_line_are_broken_only_between(text, width):
    lines = lines_of((text, ""), width=width)
    assert " ".join(lines).split() == text.split()
    assert all(len(line) + 1 + len(after.split()[0]) > width for line, after in pairwise(lines))


def test_a_line_of_exactly_the_width_is_not_broken():
    assert lines_of(("one two", ""), width=7) == ["one two"]
    assert lines_of(("one two three", ""), width=7) == ["one two", "three"]


def test_further_lines_are_indented_below_the_text_behind_the_mark():
    assert lines_of(("one two", ""), width=8, indent=2, mark="-") == ["  - one", "    two"]


def test_a_path_wider_than_the_line_is_folded():
    assert lines_of(("see /a/very/long/path", ""), width=8) == ["see", "/a/very/", "long/pat", "h"]


def test_wide_characters_take_two_columns():
    assert lines_of(("界界界界", ""), width=6) == ["界界界", "界"]


def test_a_style_survives_the_break():
    first, second = paragraph(("one ", ""), ("two", "bold"), width=4)
    assert (first[-1], second[-1]) == (("one", ""), ("two", "bold"))


def test_a_newline_breaks_the_line_and_its_indent_stays():
    assert lines_of(("if x:\n    y()", "")) == ["if x:", "    y()"]


def test_a_tab_takes_the_columns_it_is_counted_with():
    assert lines_of(("\ty()", "")) == ["    y()"]


def test_columns_are_aligned_and_give_way_where_the_width_asks():
    rows = [(("activations", ""), ("5 GiB", ""), ("#" * 20, "dim")), (("free", ""), ("12 MiB", ""), ("", "dim"))]
    assert plain_text(columns(rows, width=50)).splitlines() == ["  activations   5 GiB  " + "#" * 20, "  free         12 MiB"]
    assert plain_text(columns(rows, width=25)).splitlines() == ["  activations   5 GiB", "  free         12 MiB"]
    assert max(map(len, plain_text(columns(rows, width=12)).splitlines())) <= 12


def test_colors_change_no_character():
    lines = [(("  ", ""), ("[red] is text", "bold red")), (("plain", ""),)]
    text = colored_text(lines)
    assert "\x1b[1;31m[red] is text" in text
    assert "plain\n" in text
