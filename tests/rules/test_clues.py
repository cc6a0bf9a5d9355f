"""Where words are looked for, and how a pattern without regard to case is matched."""

import importlib
import pkgutil
import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import advisor.rules
from advisor.model.failure import Frame, Mention
from advisor.rules.clues import Words, anywhere, in_frames, in_words, search, words
from advisor.rules.samples import a_failure, a_log


def _all_words() -> list[tuple[str, Words]]:
    """Every pattern with needles that a module of the rules defines."""
    found = []
    for info in pkgutil.walk_packages(advisor.rules.__path__, "advisor.rules."):
        module = importlib.import_module(info.name)
        found += [(f"{info.name.rpartition('.')[2]}.{name}", value) for name, value in vars(module).items() if isinstance(value, Words)]
    return found


@pytest.mark.parametrize("each", [pytest.param(each, id=name) for name, each in _all_words()])
def test_what_a_pattern_matches_has_one_of_its_needles(each: Words) -> None:
    @settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
    @given(text=st.from_regex(each.compiled, alphabet=st.characters(min_codepoint=32, max_codepoint=126)))
    def matches(text: str) -> None:
        if each.compiled.search(text.lower()):
            assert each.search(text) is not None, text

    matches()


PATTERNS = (
    r"\bout of memory\b|OOM\w*",
    r"(?P<Name>GPU)\s+\S+ (?P=Name)",
    r"[A-C]+\d|\Bx\B",
    r"without\s+(?:torch\.)?No_Grad",
)


@pytest.mark.parametrize("pattern", PATTERNS)
@given(text=st.text(alphabet="aAbBcCxX oOmM1 GgPpUu_", max_size=40))
def test_lower_case_matching_finds_what_ignorecase_finds(pattern: str, text: str) -> None:
    match = re.compile(pattern, re.IGNORECASE).search(text)
    assert search(Words(("",), pattern), text) == (match.group() if match else None)


@pytest.mark.parametrize("text", ["CUDA OOM'ed", "GPU abc gpu", "Without torch.no_grad"])
def test_what_is_found_is_spelled_as_in_the_text(text: str) -> None:
    found = [search(Words(("",), pattern), text) for pattern in PATTERNS]
    assert any(found)
    assert all(each is None or each in text for each in found)


def test_letters_that_grow_in_lower_case_do_no_harm() -> None:
    assert search(words("oom", "oom"), "\u0130\u0130 OOM") == "oom"


def test_the_innermost_frame_comes_first_and_code_before_prose() -> None:
    outer = Frame(filename="a.py", line=1, function="f", code="loss = one()")
    inner = Frame(filename="b.py", line=2, function="g", code="loss = two()")
    failure = a_failure(frames=(outer, inner))
    pattern = re.compile("loss")
    clue = in_frames(pattern, failure)
    assert clue is not None
    assert clue.source.where == "b.py:2 in g"
    assert in_frames(re.compile("one"), failure, innermost=1) is None
    prose = Mention(topic="loss", line=1, text="the loss is high")
    code = Mention(topic="loss", line=9, text="loss.backward()", in_code=True)
    words = in_words(pattern, None, a_log(mentions=(prose, code)))
    assert words is not None
    assert words.in_code
    found = anywhere(pattern, failure, a_log(mentions=(prose,)))
    assert found == clue


def test_a_line_under_several_topics_is_read_once() -> None:
    line = [Mention(topic=topic, line=3, text="Adam OOM") for topic in ("adam", "oom")]
    clue = in_words(re.compile("adam", re.IGNORECASE), None, a_log(mentions=tuple(line)))
    assert clue is not None
    assert clue.source.where == "line 3"
