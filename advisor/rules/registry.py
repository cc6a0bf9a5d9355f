"""All rules: one sorted tuple, and each is loaded when something asks for it.

A log's diagnosis must answer in a fraction of a second, so the registry knows each rule's needs by name and rules about evidence that a
case cannot have are never imported. `scripts/register_rules.py` writes the table from the files; a test compares them.
"""

import functools
import importlib

from advisor.model.dataclass import dataclass
from advisor.rules.entries import ENTRIES
from advisor.rules.rule import Rule


@dataclass(frozen=True, slots=True)
class Entry:
    """A rule that is not loaded yet.

    Attributes:
        code / name: the public contract.
        module: the file that holds it.
        required / optional: the kinds of evidence that it needs, by name.
    """

    code: str
    name: str
    module: str
    required: tuple[str, ...]
    optional: tuple[str, ...]

    def load(self) -> Rule:
        """The rule itself."""
        return rule_of(self.module)


def rule_of(module: str) -> Rule:
    """The one rule that a module defines.

    Raises:
        ImportError: it defines none, or several.
    """
    loaded = importlib.import_module(module)
    found = [value for value in vars(loaded).values() if isinstance(value, Rule) and value.check.__module__ == module]
    if len(found) != 1:
        raise ImportError(f"{module} defines {len(found)} rules: a rule file defines one")
    return found[0]


REGISTRY: tuple[Entry, ...] = tuple(Entry(*entry) for entry in ENTRIES)
"""Sorted by code."""


@functools.cache
def all_rules() -> tuple[Rule, ...]:
    """Every rule, loaded, sorted by code."""
    return tuple(entry.load() for entry in REGISTRY)


def find(code_or_name: str) -> Rule | None:
    """The rule of a code or a name, in any case; None where there is none."""
    wanted = code_or_name.strip().lower()
    return next((entry.load() for entry in REGISTRY if wanted in (entry.code.lower(), entry.name)), None)
