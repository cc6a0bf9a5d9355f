"""Which analysis makes which measure, from which evidence.

The functions are named, not imported: a log is diagnosed without loading numpy. A test compares this table with their annotations.
"""

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from advisor.model.ceilings import DeviceCeilings
from advisor.model.evidence import Evidence
from advisor.model.failure import Failure
from advisor.model.memory import AllocatorRecord, MemoryLedger
from advisor.model.node import NodeReading
from advisor.model.snapshot import AllocatorSnapshot
from advisor.model.step_time import StepBreakdown
from advisor.model.trace import KinetoTrace


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """One analysis.

    Attributes:
        makes: the kind that it makes (it returns one, a tuple of them with the primary first, or None).
        needs: required kinds, then optional ones, in the order of its parameters.
        optional: how many of the last needs are optional.
        function: "module:function".
    """

    makes: type[Evidence]
    needs: tuple[type[Evidence], ...]
    function: str
    optional: int = 0

    def load(self) -> Callable[..., Any]:
        """Import the function."""
        module, _, name = self.function.partition(":")
        loaded: Callable[..., Any] = getattr(importlib.import_module(module), name)
        return loaded


MEASURES: tuple[Measure, ...] = (
    Measure(makes=MemoryLedger, needs=(AllocatorSnapshot,), function="advisor.analysis.memory_ledger:memory_ledger"),
    Measure(makes=MemoryLedger, needs=(Failure,), function="advisor.analysis.text_ledger:text_ledger"),
    Measure(makes=AllocatorRecord, needs=(AllocatorSnapshot,), function="advisor.analysis.allocator_record:allocator_record"),
    Measure(makes=StepBreakdown, needs=(KinetoTrace,), function="advisor.analysis.step_breakdown:step_breakdown"),
    Measure(makes=DeviceCeilings, needs=(KinetoTrace,), function="advisor.analysis.device_identity:traced_ceilings"),
    Measure(makes=DeviceCeilings, needs=(NodeReading,), function="advisor.analysis.device_identity:node_ceilings"),
)
"""In order of preference: the first that yields something is the primary one of its kind."""
