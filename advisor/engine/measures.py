"""Which analysis makes which measure, from which evidence.

Kinds and functions are named, not imported: a log is diagnosed without loading numpy. A test compares this table with the functions'
annotations.
"""

import importlib
from collections.abc import Callable
from typing import Any

from advisor.model.dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """One analysis.

    Attributes:
        makes: the kind that it makes (it returns one, a tuple of them with the primary first, or None).
        needs: the kinds that it takes, in the order of its parameters; "X?" is optional, "X*" all that there are, if any.
        function: "module:function".
    """

    makes: str
    needs: tuple[str, ...]
    function: str

    @property
    def required(self) -> tuple[str, ...]:
        """The kinds without which it cannot run."""
        return tuple(need for need in self.needs if not need.endswith(("?", "*")))

    def load(self) -> Callable[..., Any]:
        """Import the function."""
        module, _, name = self.function.partition(":")
        loaded: Callable[..., Any] = getattr(importlib.import_module(f"advisor.analysis.{module}"), name)
        return loaded


_TIMED = ("KinetoTrace", "StepBreakdown")

MEASURES: tuple[Measure, ...] = (
    Measure(
        makes="MemoryLedger",
        needs=("AllocatorSnapshot", "Failure*", "KinetoTrace?", "NodeReading?", "DeviceCeilings*"),
        function="device_ledger:device_ledger",
    ),
    Measure(makes="MemoryLedger", needs=("Failure",), function="text_ledger:text_ledger"),
    Measure(
        makes="MemoryLedger",
        needs=("MemorySummary", "Failure*", "KinetoTrace?", "NodeReading?", "DeviceCeilings*"),
        function="summary_ledger:summary_ledger",
    ),
    Measure(makes="AllocatorRecord", needs=("AllocatorSnapshot",), function="allocator_record:allocator_record"),
    Measure(makes="StepBreakdown", needs=("KinetoTrace",), function="step_breakdown:step_breakdown"),
    Measure(makes="KernelMix", needs=_TIMED, function="kernel_mix:kernel_mix"),
    Measure(makes="LaunchProfile", needs=_TIMED, function="launch_profile:launch_profile"),
    Measure(makes="Synchronizations", needs=_TIMED, function="synchronizations:synchronizations"),
    Measure(makes="CopyProfile", needs=_TIMED, function="copies:copies"),
    Measure(makes="InputWait", needs=_TIMED, function="input_wait:input_wait"),
    Measure(makes="Communication", needs=_TIMED, function="communication:communication"),
    Measure(makes="DriverAllocations", needs=_TIMED, function="driver_allocations:driver_allocations"),
    Measure(makes="OptimizerSteps", needs=_TIMED, function="optimizer_steps:optimizer_steps"),
    Measure(makes="AttentionMix", needs=_TIMED, function="attention_mix:attention_mix"),
    Measure(makes="OperatorTable", needs=("LogText",), function="quoted_table:quoted_table"),
    Measure(makes="StepTimes", needs=("KinetoTrace",), function="step_times:step_times"),
    Measure(makes="OperatorCosts", needs=(*_TIMED, "DeviceCeilings?"), function="operator_costs:operator_costs"),
    Measure(makes="DecodeSigns", needs=(*_TIMED, "OperatorCosts?"), function="decode_signs:decode_signs"),
    Measure(makes="LoopTimes", needs=("RunSteps",), function="loop_times:loop_times"),
    Measure(makes="DeviceCeilings", needs=("KinetoTrace",), function="device_identity:traced_ceilings"),
    Measure(makes="DeviceCeilings", needs=("NodeReading",), function="device_identity:node_ceilings"),
)
"""In order of preference: the first that yields something is the primary one of its kind."""
