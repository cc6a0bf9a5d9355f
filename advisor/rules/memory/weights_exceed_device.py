"""The weights alone do not fit into the device's memory.

## What it means

A model needs its number of parameters times the bytes of one: 2 in bf16, 4 in fp32, 1 or 0.5
quantized. Where that is more than the device has, the program fails while it loads the model, before
a single step, and no batch size changes that.

## How it is recognized

The request failed while the model was loaded or moved to the device. Where the size of the model is
known, by its declared shape or by its name in the log, arithmetic says so outright. Allocated bytes
beyond the device's capacity (Windows lets the driver spill into host memory) speak for it too.

## What to do

Load a quantized or smaller model, load in bf16 if it was fp32, or split the model over devices.

## What it is confused with

Somebody else's memory on the same device (MEM601). Loading in fp32 what is meant to run in bf16
(MEM105). A checkpoint that is loaded onto the device beside the model (MEM107).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.model.dataclass import dataclass
from advisor.model.failure import Failure, LogText, Phase
from advisor.model.finding import Action, Finding, Impact, Prediction, Verification
from advisor.rules.blocks import block_fact, is_attributed, ledger_severity
from advisor.rules.capacity import (
    SMALL_DEVICE_BYTES,
    failure_fact,
    generic,
    is_capacity_failure,
    live_after_loading,
    ruled_out_by_figures,
    severity_of,
)
from advisor.rules.model_size import (
    ModelSize,
    arithmetic_fact,
    device_count,
    keeps_weights_on_host,
    model_size,
    weight_bytes_per_parameter,
)
from advisor.rules.rule import rule
from advisor.rules.samples import GIB, a_case, a_failure, a_log
from advisor.rules.shortage import told_of_refusal
from advisor.rules.wording import bytes_text, parameters_text

if TYPE_CHECKING:
    from advisor.model.case import Case
    from advisor.model.memory import AllocatorRecord, MemoryLedger
    from advisor.model.transformer import TransformerShape

PRIOR_BY_PHASE = {
    Phase.LOADING: 0.6,
    Phase.ENGINE_START: 0.45,
    Phase.UNKNOWN: 0.25,
    Phase.GENERATION: 0.25,
    Phase.FORWARD: 0.15,
}
"""Score by phase where nothing else is known. A program that has trained a step has loaded its
weights, so the later phases are missing."""

LOADING_FULL_SCORE = 0.8
"""Score where loading fails and what is live already takes most of the device."""

FULL_RATIO = 0.8
"""Share of the device that live memory must take at a failure in loading: less, and something else
holds the device."""

OVERSUBSCRIBED_RATIO = 1.05
"""Live bytes over capacity from which the driver has spilled into host memory: more than rounding."""

OVERSUBSCRIBED_SCORE = 0.55
"""A program that spills gigabytes before it fails is one whose weights never fitted; half the time."""

SMALL_DEVICE_BONUS = 0.1
"""Added on a device of at most 4.5 GiB, which the weights of today's models fill by themselves."""

NAMED_SCORE = 0.75
"""Score of arithmetic on a size read from the model's name in the log: the precision is presumed."""

SHAPE_SCORE = 0.93
"""Score of arithmetic on a declared shape, or on a name where the failure came while loading, too."""


@rule("MEM101", "weights-exceed-device")
def weights_exceed_device(
    failure: Failure | None,
    log: LogText | None,
    ledger: MemoryLedger | None,
    record: AllocatorRecord | None,
    shape: TransformerShape | None,
) -> Finding | None:
    """Parameters × bytes exceed the capacity, or the failure came while loading."""
    if is_attributed(ledger):
        return _from_ledger(ledger, failure, record)
    if failure is None or not is_capacity_failure(failure) or failure.phase not in PRIOR_BY_PHASE:
        return None
    size = model_size(failure, log, shape)
    sums = _exceeding(failure, log, shape, size)
    if sums is not None and size is not None:
        is_sure = shape is not None or failure.phase is Phase.LOADING
        score = SHAPE_SCORE if is_sure else NAMED_SCORE
        fact = f"{parameters_text(size.parameter_count)} parameters × {sums.bytes_per_parameter:g} bytes"
        facts = [size.fact, arithmetic_fact(fact, sums.total_bytes, size.fact)]
        statement = sums.statement(failure)
    else:
        score, facts = _prior(failure), []
        statement = (
            "It failed while the model was being loaded: the weights do not fit into the device."
            if failure.phase is Phase.LOADING
            else "The weights may be too large for the device; the message does not say."
        )
    return Finding(
        statement=statement,
        severity=severity_of(failure),
        confidence=score,
        observations=(failure_fact(failure), *facts),
        actions=_actions(failure.total_bytes, size),
        settles=None if sums is not None else live_after_loading(),
        ruled_out=ruled_out_by_figures(failure),
        supersedes=("MEM102", "MEM201") if sums is not None else (),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Weights:
    """The bytes of all weights, which do not fit into the devices that share them."""

    bytes_per_parameter: float
    total_bytes: float
    device_count: int

    def statement(self, failure: Failure) -> str:
        each = self.total_bytes / self.device_count
        shared = f", {bytes_text(each)} on each of {self.device_count} devices" if self.device_count > 1 else ""
        return (
            f"The weights alone take {bytes_text(self.total_bytes)}{shared}, and the device has "
            f"{bytes_text(failure.total_bytes or 0)}: no batch size makes that fit."
        )


def _exceeding(failure: Failure, log: LogText | None, shape: TransformerShape | None, size: ModelSize | None) -> _Weights | None:
    """The weights, where a device's part of them exceeds its capacity."""
    if size is None or not failure.total_bytes or keeps_weights_on_host(failure, log):
        return None
    found = _Weights(
        bytes_per_parameter=(each := weight_bytes_per_parameter(failure, log, shape)),
        total_bytes=size.parameter_count * each,
        device_count=device_count(failure, log),
    )
    return found if found.total_bytes / found.device_count > failure.total_bytes else None


def _from_ledger(ledger: MemoryLedger, failure: Failure | None, record: AllocatorRecord | None) -> Finding | None:
    """A snapshot in which weights, and nothing that training adds, fill the device."""
    severity = ledger_severity(ledger, failure, record)
    weights = ledger.entry("weights")
    if severity is None or not ledger.device_bytes or weights < FULL_RATIO * ledger.device_bytes:
        return None
    if ledger.entry("gradients") or ledger.entry("optimizer_states"):
        return None
    return told_of_refusal(
        Finding(
            statement=f"The weights take {bytes_text(weights)} of the device's {bytes_text(ledger.device_bytes)}.",
            severity=severity,
            confidence=0.9,
            observations=(block_fact(ledger, "weights"),),
            actions=_actions(ledger.device_bytes, None),
            impact=Impact(recoverable_bytes=weights // 2),
        ),
        ledger,
        failure,
        record,
    )


def _prior(failure: Failure) -> float:
    prior = PRIOR_BY_PHASE[failure.phase]
    total, live = failure.total_bytes, failure.allocated_bytes
    if total is not None and live is not None and live > OVERSUBSCRIBED_RATIO * total:
        return max(prior, OVERSUBSCRIBED_SCORE)
    if failure.phase is Phase.LOADING and total and live is not None:
        full = live + (failure.requested_bytes or 0) >= FULL_RATIO * total
        return LOADING_FULL_SCORE if full else generic(prior, failure)
    if total is not None and total <= SMALL_DEVICE_BYTES:
        prior += SMALL_DEVICE_BONUS
    return generic(prior, failure)


def _actions(device_bytes: int | None, size: ModelSize | None) -> tuple[Action, ...]:
    def fits(bytes_per_parameter: float) -> tuple[Prediction, Verification]:
        if size is None or not device_bytes:
            return Prediction(), Verification.NONE
        weights = int(size.parameter_count * bytes_per_parameter)
        return (
            Prediction(peak_bytes=weights, fits=weights < device_bytes),
            Verification.ARITHMETIC,
        )

    quantized, by_quantizing = fits(0.5)
    half, by_half = fits(2.0)
    return (
        Action(
            title="Load in bf16 if it was fp32",
            change="from_pretrained(..., torch_dtype=torch.bfloat16)",
            cost="nothing for inference on cards with bf16",
            predicted=half,
            verified_by=by_half,
        ),
        Action(
            title="Load the weights in 4 bits",
            change="from_pretrained(..., quantization_config=BitsAndBytesConfig(load_in_4bit=True))",
            cost="some accuracy, and dequantization in every layer",
            predicted=quantized,
            verified_by=by_quantizing,
        ),
        Action(
            title="Split the model over devices, or keep part of it on the host",
            change='from_pretrained(..., device_map="auto")  # an engine: tensor_parallel_size=N',
            cost="more devices, or slow layers on the host",
        ),
    )


def fires() -> Case:
    """A 70B model is loaded in bf16 onto one card of 80 GiB."""
    return a_case(
        a_failure(
            phase=Phase.LOADING,
            requested_bytes=448 * 1024**2,
            allocated_bytes=int(78.4 * GIB),
            reserved_unallocated_bytes=int(0.1 * GIB),
            free_bytes=int(0.2 * GIB),
        ),
        a_log(settings=(("model_name_or_path", "example/model-70b"),)),
    )


def clean() -> Case:
    """The same model fails in backward: its weights are loaded, so something else does not fit."""
    return a_case(
        a_failure(phase=Phase.BACKWARD, requested_bytes=2 * GIB, allocated_bytes=70 * GIB),
        a_log(settings=(("model_name_or_path", "example/model-7b"),)),
    )
