"""The layout of a run's ring and spool: one place, read by the trainer, its sidecar and whoever diagnoses a run.

A run's spool is a folder; each rank has its own inside it:

    <root>/<run id>/rank-00000/
        ring            what the trainer writes each step: a file of fixed records, mapped into its memory
        run.json        what attach() knew at once of the run
        record.json     what took longer to find out: git, packages, hashes (written by the sidecar)
        steps           records drained from the ring, the same layout, oldest first
        failure-N.json  an exception or a refused allocation, with its traceback
        end.json        how the trainer ended
        ...             evidence as files: profiles, snapshots, registries

The ring is a header of one page and slots of one size. The trainer is its only writer. A record is written whole, its sequence number
first and last: a reader that finds them different saw a record in the making. All numbers are little-endian.
"""

import struct
from typing import Any, NamedTuple

MAGIC = b"ADVRING1"
VERSION = 1

HEADER_BYTES = 4096
RECORD_BYTES = 192
SLOT_COUNT = 8192
"""1.5 MiB: two minutes of 15 ms steps, should the sidecar be dead; it drains the ring every second."""

HEADER = struct.Struct("<8sIIIIQQQQ16s")
"""Magic, version, record bytes, slots, trainer's pid, its start (clock ticks since boot), wall and monotonic nanoseconds of one moment,
rank (2^64 - 1 where there is none), and the host's boot id."""

NO_RANK = 2**64 - 1

CURSOR = struct.Struct("<Q")
CURSOR_OFFSET = 1024
"""How many records were ever written; record n lies in slot n modulo the slots."""

STATE = struct.Struct("<IIQQ")
STATE_OFFSET = 1088
"""What the trainer does now: phase (index into PHASES), flags, step, monotonic nanoseconds since when."""

ENDED = 1
"""Flag of the state: the interpreter came to its regular end."""

PHASES = (
    "other",
    "data_wait",
    "forward",
    "backward",
    "optimizer",
    "evaluation",
    "generation",
    "checkpoint",
    "logging",
    "collective",
)
"""The parts of a step; "other" is what none of the others took."""

STEP_KIND = 1
METRIC_KIND = 2
EVENT_KIND = 3

PREFIX = struct.Struct("<QHHI")
"""Sequence number (from 1), kind, version of the kind, unused."""

SUFFIX = struct.Struct("<Q")
SUFFIX_OFFSET = RECORD_BYTES - SUFFIX.size
"""The sequence number once more."""

STEP = struct.Struct("<QQd12f8I4Q5I")
"""The fields of Step, in order, the phases' seconds by PHASES."""

METRIC = struct.Struct("<QQdB120s")
"""Step, monotonic nanoseconds, value, bytes of the name, the name in UTF-8."""

EVENT = struct.Struct("<QQB24sB120s")
"""Step, monotonic nanoseconds, bytes of the kind, the kind, bytes of the text, the text in UTF-8."""


class Step(NamedTuple):
    """One optimizer step; zero stands for what was not seen.

    Attributes:
        step: counted from 1.
        end_nanoseconds: of the monotonic clock.
        seconds: from the end of the step before.
        phases: seconds of each phase, in the order of PHASES; they sum to `seconds`.
        gc_seconds / gc_count: garbage collections in the step.
        recompilation_count / graph_break_count: of torch.compile, since the start.
        backward_count: backward passes (micro-batches).
        batch_count: batches that loaders gave.
        sample_count / token_count: of the batches of the step.
        shape_digest: a hash of the batches' shapes.
        cpu_seconds: the process's processor time, all its threads.
        rss_bytes: resident memory, read at intervals.
        allocated_peak_bytes / reserved_peak_bytes / allocated_bytes: of the GPU's caching allocator; the last at the end of the step.
        retry_count / refused_count: the allocator's retries and out-of-memory errors, since the start.
        worker_count: processes of the loader that last gave a batch.
        flags: of STEP_FLAGS.
        context_switch_count: involuntary ones, in the step.
    """

    step: int
    end_nanoseconds: int
    seconds: float
    phases: tuple[float, ...]
    gc_seconds: float
    cpu_seconds: float
    gc_count: int
    recompilation_count: int
    graph_break_count: int
    backward_count: int
    batch_count: int
    sample_count: int
    token_count: int
    shape_digest: int
    rss_bytes: int
    allocated_peak_bytes: int
    reserved_peak_bytes: int
    allocated_bytes: int
    retry_count: int
    refused_count: int
    worker_count: int
    flags: int
    context_switch_count: int


STEP_FLAGS = {
    1: "anomaly_mode",
    2: "profiler_running",
    4: "grad_enabled_in_evaluation",
    8: "synchronized_every_micro_batch",
    16: "gpu",
    32: "deterministic_algorithms",
    64: "without_optimizer",
    128: "without_loader",
    256: "unfinished",
}
"""What was switched on during a step, or was missing, by bit; "unfinished" is what was left of a step when the training ended."""


class Metric(NamedTuple):
    """A figure that the training logged."""

    step: int
    nanoseconds: int
    value: float
    name: str


class Event(NamedTuple):
    """Something that happened: its kind ("phase", "note", "dropped") and a text."""

    step: int
    nanoseconds: int
    kind: str
    text: str


Record = Step | Metric | Event
"""What a slot may hold."""


def step_values(step: Step) -> tuple[Any, ...]:
    """The fields in the order of STEP."""
    return (*step[:3], *step.phases, *step[4:])


def step_of(values: tuple[Any, ...]) -> Step:
    """The record of unpacked values."""
    phases_end = 3 + len(PHASES)
    return Step._make((*values[:3], values[3:phases_end], *values[phases_end:]))
