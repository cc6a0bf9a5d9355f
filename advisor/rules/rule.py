"""The decorator that turns a pure function and its page into a rule."""

from __future__ import annotations

import re
import sys
from functools import cached_property
from types import ModuleType
from typing import TYPE_CHECKING, cast

from advisor.model.dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable

    from advisor.model.case import Case
    from advisor.model.finding import Finding

SECTIONS = ("What it means", "How it is recognized", "What to do", "What it is confused with")
"""The headings of a rule's page, in order; `advisor-cli explain` and docs/rules/ print them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """One parameter of a rule: a kind of evidence or a measure.

    Attributes:
        parameter: its name in the function.
        kind: its name; naming it imports nothing.
        optional: whether the rule can do without (`X | None`).
        many: whether it takes all of that kind (`tuple[X, ...]`) instead of the primary one.
    """

    parameter: str
    kind: str
    optional: bool
    many: bool


@dataclass(frozen=True)
class Rule:
    """A rule: its code and name (a public contract), its function, its page and its two cases."""

    code: str
    name: str
    check: Callable[..., Finding | None]

    @property
    def module(self) -> ModuleType:
        """The file that holds the rule."""
        return sys.modules[self.check.__module__]

    @property
    def page(self) -> str:
        """The module's docstring: the rule's page in markdown."""
        import inspect  # noqa: PLC0415 - slow to load, and only pages need it

        return inspect.cleandoc(self.module.__doc__ or "")

    @property
    def summary(self) -> str:
        """The first line of the page."""
        return self.page.splitlines()[0] if self.page else ""

    @cached_property
    def needs(self) -> tuple[Need, ...]:
        """The function's annotations, read as needs."""
        hints = {name: hint for name, hint in self.check.__annotations__.items() if name != "return"}
        return tuple(_need(parameter, hint) for parameter, hint in hints.items())

    def fires(self) -> Case:
        """The case in which the rule fires; its page's example."""
        return cast("Case", self.module.fires())

    def clean(self) -> Case:
        """The healthy look-alike in which it does not."""
        return cast("Case", self.module.clean())


_NEED = re.compile(r"(?:tuple\[(?P<many>\w+), \.\.\.\]|(?P<one>\w+))(?P<optional> \| None)?")
"""What an annotation may be: `X`, `X | None`, `tuple[X, ...]`."""


def _need(parameter: str, hint: object) -> Need:
    text = hint if isinstance(hint, str) else getattr(hint, "__name__", str(hint))
    match = _NEED.fullmatch(text)
    if match is None:
        raise TypeError(f"{parameter}: a need is X, X | None or tuple[X, ...], and not {text}")
    return Need(
        parameter=parameter,
        kind=match["many"] or match["one"],
        optional=match["optional"] is not None,
        many=match["many"] is not None,
    )


def rule(code: str, name: str) -> Callable[[Callable[..., Finding | None]], Rule]:
    """Make a rule of a function; its file must also define `fires()` and `clean()`, each returning a Case."""

    def decorate(check: Callable[..., Finding | None]) -> Rule:
        return Rule(code=code, name=name, check=check)

    return decorate
