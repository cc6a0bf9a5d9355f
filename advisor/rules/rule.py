"""The decorator that turns a pure function and its page into a rule."""

import inspect
import sys
import types
import typing
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from types import ModuleType

from advisor.model.case import Case
from advisor.model.finding import Finding

SECTIONS = ("What it means", "How it is recognized", "What to do", "What it is confused with")
"""The headings of a rule's page, in order; `advisor-cli explain` and docs/rules/ print them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """One parameter of a rule: a kind of evidence or a measure.

    Attributes:
        parameter: its name in the function.
        kind: the type.
        optional: whether the rule can do without (`X | None`).
        many: whether it takes all of that kind (`tuple[X, ...]`) instead of the primary one.
    """

    parameter: str
    kind: type
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
        return inspect.cleandoc(self.module.__doc__ or "")

    @property
    def summary(self) -> str:
        """The first line of the page."""
        return self.page.splitlines()[0] if self.page else ""

    @cached_property
    def needs(self) -> tuple[Need, ...]:
        """The function's annotations, read as needs."""
        hints = typing.get_type_hints(self.check)
        hints.pop("return", None)
        return tuple(_need(parameter, hint) for parameter, hint in hints.items())

    def fires(self) -> Case:
        """The case in which the rule fires; its page's example."""
        return typing.cast("Case", self.module.fires())

    def clean(self) -> Case:
        """The healthy look-alike in which it does not."""
        return typing.cast("Case", self.module.clean())


def _need(parameter: str, hint: object) -> Need:
    optional = False
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        chosen = [part for part in typing.get_args(hint) if part is not type(None)]
        if len(chosen) != 1:
            raise TypeError(f"{parameter}: a need is one kind, or one kind or None")
        hint, optional = chosen[0], True
    many = typing.get_origin(hint) is tuple
    if many:
        hint = typing.get_args(hint)[0]
    if not isinstance(hint, type):
        raise TypeError(f"{parameter}: {hint!r} is not a kind of evidence")
    return Need(parameter=parameter, kind=hint, optional=optional, many=many)


def rule(code: str, name: str) -> Callable[[Callable[..., Finding | None]], Rule]:
    """Make a rule of a function; its file must also define `fires()` and `clean()`, each returning a Case."""

    def decorate(check: Callable[..., Finding | None]) -> Rule:
        return Rule(code=code, name=name, check=check)

    return decorate
