"""The layout of a run's ring and spool: one place, read by the trainer, its sidecar and whoever diagnoses a run.

A run's spool is a folder; each rank has its own inside it:

    <root>/<run id>/rank-00000/
        ring            what the trainer writes each step: a file of fixed records, mapped into its memory
        run.json        what attach() knew at once of the run
        record.json     what took longer to find out: git, packages, hashes (written by the sidecar)
        steps           records drained from the ring, the same layout, oldest first
        failure-N.json  an exception or a refused allocation, with its traceback
        end.json        how the trainer ended (end_record.py)
        host            what memory, processors and waiting were like, every few seconds (host_record.py)
        index.jsonl     the files that do not change any more, with their hashes
        dropped.json    how much evidence was dropped to keep the spool small
        sidecar.log     what the sidecar had to say
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
"""What the trainer does now, in three words of 64 bits: phase (index into PHASES) and flags, step, monotonic nanoseconds since when."""

ENDED = 1
"""Flag of the state: the interpreter came to its regular end."""

DETACHED = 2
"""Flag of the state: the trainer let go of the ring, and goes on unwatched; its sidecar leaves."""

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

STEP = struct.Struct("<QQQ10ff8If4Q5I")
"""The fields of Step in order, times in nanoseconds, the phases' by PHASES."""

STEP_RECORD = struct.Struct(PREFIX.format + STEP.format[1:])
"""Prefix and fields in one: a step is written in every step."""

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
        gc_seconds: of garbage collections in the step; `gc_count` is how many.
        backward_count: backward passes (micro-batches).
        batch_count: batches that loaders gave.
        sample_count: of the batches of the step; `token_count` their tokens.
        shape_digest: a hash of the batches' shapes.
        worker_count: processes of the loader that last gave a batch.
        flags: of STEP_FLAGS.
        cpu_seconds: the process's processor time, all its threads.
        rss_bytes: resident memory; this and what follows is read a few times a second and kept meanwhile.
        allocated_peak_bytes: of the GPU's caching allocator, as are `reserved_peak_bytes` and `allocated_bytes`.
        retry_count: the allocator's retries since the start; `refused_count` its out-of-memory errors.
        recompilation_count: graphs of torch.compile since the start; `graph_break_count` its breaks.
        context_switch_count: involuntary ones since the last reading.
    """

    step: int
    end_nanoseconds: int
    seconds: float
    phases: tuple[float, ...]
    gc_seconds: float
    gc_count: int
    backward_count: int
    batch_count: int
    sample_count: int
    token_count: int
    shape_digest: int
    worker_count: int
    flags: int
    cpu_seconds: float
    rss_bytes: int
    allocated_peak_bytes: int
    reserved_peak_bytes: int
    allocated_bytes: int
    retry_count: int
    refused_count: int
    recompilation_count: int
    graph_break_count: int
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


NANO = 1e-9


def step_of(values: tuple[Any, ...]) -> Step:
    """The record of unpacked values."""
    end = 3 + len(PHASES)
    step, moment, nanoseconds = values[:3]
    phases = tuple([spent * NANO for spent in values[3:end]])
    gc_nanoseconds, *counts = values[end : end + 9]
    cpu_seconds, *gauges = values[end + 9 :]
    return Step._make((step, moment, nanoseconds * NANO, phases, gc_nanoseconds * NANO, *counts, cpu_seconds, *gauges))
