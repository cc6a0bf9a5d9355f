"""No regular expression may take more than linear time: a line of a stranger's log must not hang a diagnosis."""

import importlib
import pkgutil
import re
import signal

import pytest

PACKAGES = ("ingest", "analysis", "rules", "engine", "render", "cli")
ATOMS = (
    "a",
    "1",
    " ",
    "-",
    "_",
    ".",
    "/",
    "a ",
    "a-",
    "a.",
    "1.",
    "x1 ",
    '"',
    "(",
    "[",
    "GiB ",
    "a b",
    "\t",
    "a=",
    "%",
    "|",
    ": ",
    "0x",
    "aa1",
    "1,",
)
LINE_LENGTH = 4000
PATIENCE_SECONDS = 2.0
"""Of the processor, so that a busy machine fails no test: a linear search takes under a millisecond, an exponential one never ends."""


class TooSlow(Exception):  # noqa: N818 - reads as a sentence
    pass


def modules():
    for package in PACKAGES:
        root = importlib.import_module(f"advisor.{package}")
        for module in pkgutil.walk_packages(root.__path__, f"advisor.{package}."):
            if not module.name.endswith("reference_training"):
                yield module.name


def patterns_of(value):
    if isinstance(value, re.Pattern):
        yield value
    elif isinstance(value, list | tuple | set | frozenset):
        for item in value:
            yield from patterns_of(item)
    elif isinstance(value, dict):
        for item in (*value.keys(), *value.values()):
            yield from patterns_of(item)
    elif not isinstance(value, type) and isinstance(getattr(value, "compiled", None), re.Pattern):
        yield value.compiled
    elif not isinstance(value, type):
        for slot in getattr(type(value), "__slots__", None) or ():
            yield from patterns_of(getattr(value, slot, None))


@pytest.mark.skipif(not hasattr(signal, "SIGVTALRM"), reason="needs an alarm signal to stop a search that does not end")
@pytest.mark.parametrize("name", list(modules()))
def test_no_pattern_hangs_on_a_long_line(name):
    def give_up(*_: object) -> None:
        raise TooSlow

    before = signal.signal(signal.SIGVTALRM, give_up)
    try:
        for constant, value in list(vars(importlib.import_module(name)).items()):
            for pattern in patterns_of(value):
                for atom in ATOMS:
                    line = (atom * LINE_LENGTH)[:LINE_LENGTH] + "!"
                    signal.setitimer(signal.ITIMER_VIRTUAL, PATIENCE_SECONDS)
                    try:
                        pattern.search(line if isinstance(pattern.pattern, str) else line.encode())
                    except TooSlow:
                        pytest.fail(f"{name}.{constant} hangs on a line of {atom!r}: {pattern.pattern!r:.200}")
                    finally:
                        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    finally:
        signal.signal(signal.SIGVTALRM, before)
