"""JAX or TensorFlow has taken most of the device at its start, as they do by default.

## What it means

JAX reserves 75% of the device when it is first used (older versions 90%), TensorFlow nearly all of it.
Whatever else runs there, PyTorch, a second process, or TensorFlow as JAX's data pipeline, finds a
full device. Within the framework itself, a failure then means that its own pool is full.

## How it is recognized

A log of PyTorch with JAX or TensorFlow in it, in which 70 to 95% of the device is outside PyTorch's
allocator; or settings of preallocation in the text; or a RESOURCE_EXHAUSTED of XLA with nothing
else said, as a candidate.

## What to do

XLA_PYTHON_CLIENT_PREALLOCATE=false, or a smaller XLA_PYTHON_CLIENT_MEM_FRACTION, in the environment
before jax is imported. TensorFlow: set_memory_growth, or hide the GPU from it.

## What it is confused with

A computation that is too large fails with the same words: then the request is of the size of the pool
and preallocation is not to blame. Another process (MEM601) of any other kind.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.model.failure import Failure, FailureKind, LogText
from advisor.model.finding import Action, Finding, Impact, Observation, Severity
from advisor.rules.capacity import (
    is_capacity_failure,
    outside_bytes,
    severity_of,
    what_would_settle,
)
from advisor.rules.clues import Clue, in_frames, in_words, is_report, words
from advisor.rules.device_shares import is_oversubscribed
from advisor.rules.facts import bytes_fact, plain_fact
from advisor.rules.rule import rule
from advisor.rules.samples import GIB, MIB, a_case, a_failure, a_log
from advisor.rules.wording import bytes_text, ratio_text

if TYPE_CHECKING:
    from advisor.model.case import Case

LEAST_RATIO = 0.7
MOST_RATIO = 0.97
"""Share of the device between which a preallocated pool lies: 75% and 90% are JAX's defaults, TensorFlow takes nearly all."""

LARGE_REQUEST_BYTES = 2 * GIB
"""A single XLA buffer from which the computation itself is the likelier cause: pools keep the remaining 25% free of it."""

FRAMEWORKS = frozenset({"jax", "tensorflow", "flax"})

_XLA_KINDS = frozenset({FailureKind.XLA_RESOURCE_EXHAUSTED, FailureKind.TENSORFLOW_OUT_OF_MEMORY})
_SAID = words(
    "xla_python_client|tf_force_gpu|set_memory_growth|preallocat|pre-allocat",
    r"XLA_PYTHON_CLIENT_PREALLOCATE|XLA_PYTHON_CLIENT_MEM_FRACTION|TF_FORCE_GPU_ALLOW_GROWTH|set_memory_growth|pre-?allocat\w+",
)
_IN_EACH_OTHERS_WAY = words(
    "preallocat",
    r"preallocat\w*.{0,60}\bafter\b.{0,30}\bimport|(?:same|one|shared) (?:gpu|device).{0,60}preallocat"
    r"|preallocat.{0,60}(?:same|one|shared) (?:gpu|device)",
)
_FRAMES = words(
    "jax/|jaxlib/|tensorflow/",
    r"(?:site-packages/|^)(?:jax|jaxlib|tensorflow)/",
)
_OFF = {"0", "false"}


@rule("MEM606", "framework-preallocation")
def framework_preallocation(failure: Failure | None, log: LogText | None) -> Finding | None:
    """Most of the device is a preallocated pool."""
    if log is not None and (log.setting("XLA_PYTHON_CLIENT_PREALLOCATE") or "").lower() in _OFF:
        return None
    clue = in_words(_SAID, failure, log)
    if failure is None or not is_capacity_failure(failure):
        stated = in_words(_IN_EACH_OTHERS_WAY, None, log)
        return _said(stated) if stated is not None and failure is None and is_report(log) else None
    if failure.kind in _XLA_KINDS:
        return _of_xla(failure, clue)
    return _beside_pytorch(failure, log, clue)


def _of_xla(failure: Failure, clue: Clue | None) -> Finding:
    requested = failure.requested_bytes
    large = requested is not None and requested >= LARGE_REQUEST_BYTES
    score = 0.65 if clue is not None else 0.25 if large else 0.45
    facts = [_refused(failure)]
    if clue is not None:
        facts.append(clue.observation("the text speaks of preallocation"))
    return Finding(
        statement="XLA could not get memory. By default each process takes 75% of its device at the start, so a second "
        "process, or a second "
        "framework in this one, finds it full.",
        severity=severity_of(failure),
        confidence=score,
        observations=tuple(facts),
        actions=_actions(),
        settles=_settles() if clue is not None else what_would_settle(failure),
    )


def _beside_pytorch(failure: Failure, log: LogText | None, clue: Clue | None) -> Finding | None:
    frame = in_frames(_FRAMES, failure)
    named = sorted(FRAMEWORKS & set(log.frameworks)) if log is not None else []
    outside, total = outside_bytes(failure), failure.total_bytes
    if not (named or frame or clue) or outside is None or not total or is_oversubscribed(failure):
        return None
    if not LEAST_RATIO * total <= outside <= MOST_RATIO * total:
        return None
    text = f"{bytes_text(outside)} of the device, {ratio_text(outside / total)}, is outside PyTorch's allocator"
    facts = [bytes_fact(text, outside, failure.source)]
    if log is not None and named:
        facts.append(plain_fact(f"{' and '.join(named)} is in use", log.source))
    facts.extend(found.observation("the log shows it") for found in (frame, clue) if found is not None)
    return Finding(
        statement=f"{ratio_text(outside / total)} of the device is held outside PyTorch, which is what JAX and TensorFlow take by default, "
        "and one of them is in use.",
        severity=severity_of(failure),
        confidence=0.85,
        observations=tuple(facts),
        actions=_actions(),
        settles=_settles(),
        impact=Impact(recoverable_bytes=outside),
        supersedes=("MEM601", "MEM602"),
    )


def _said(clue: Clue) -> Finding:
    return Finding(
        statement="The text speaks of memory that JAX or TensorFlow takes in advance.",
        severity=Severity.WARNING,
        confidence=0.55,
        observations=(clue.observation("the text speaks of preallocation"),),
        actions=_actions(),
        settles=_settles(),
    )


def _refused(failure: Failure) -> Observation:
    if failure.requested_bytes is None:
        return plain_fact("XLA's allocator refused a request", failure.source)
    text = f"XLA's allocator refused {bytes_text(failure.requested_bytes)}"
    return bytes_fact(text, failure.requested_bytes, failure.source)


def _actions() -> tuple[Action, ...]:
    return (
        Action(
            title="Do not take the memory in advance",
            change="XLA_PYTHON_CLIENT_PREALLOCATE=false  # in the environment, before jax is imported; "
            "or XLA_PYTHON_CLIENT_MEM_FRACTION=0.4 for two processes",
            cost="allocations go to the driver: somewhat slower, and it can fragment",
        ),
        Action(
            title="Keep TensorFlow off the GPU, or let it grow",
            change='tf.config.set_visible_devices([], "GPU")  # for a data pipeline; else tf.config.experimental.set_memory_growth(gpu, '
            "True)",
        ),
    )


def _settles() -> Action:
    return Action(
        title="See who holds the device before the first step",
        change="nvidia-smi  # right after the start: 75 to 95% used means that it was taken in advance",
    )


def fires() -> Case:
    """A PyTorch model in a process that also imports JAX: 60 of 80 GiB are outside its allocator."""
    return a_case(
        a_failure(
            requested_bytes=2 * GIB,
            free_bytes=1 * GIB,
            allocated_bytes=18 * GIB,
            reserved_unallocated_bytes=200 * MIB,
        ),
        a_log(frameworks=("jax", "transformers")),
    )


def clean() -> Case:
    """JAX is imported for its arrays, preallocation is off, and PyTorch itself fills the device."""
    return a_case(
        a_failure(
            requested_bytes=2 * GIB,
            free_bytes=1 * GIB,
            allocated_bytes=75 * GIB,
            reserved_unallocated_bytes=1 * GIB,
        ),
        a_log(frameworks=("jax",)),
    )
