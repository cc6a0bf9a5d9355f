"""An allocator setting that was given did not take effect, or contradicts another one.

## What it means

The allocator reads its settings once, when it is first used. A variable that is set later in the
script, has another name, or belongs to another platform changes nothing, and no error is raised.

## How it is recognized

The settings recorded in a snapshot lack what the log shows as given; the log says that a setting is
not supported; the variable's name is one that this build does not read; a limit is reported that the
given setting would have lifted; or two settings exclude each other.

## What to do

Give the setting in the environment before python starts, under the name that this build reads, and
check it where it is recorded: torch.cuda.memory._snapshot()["allocator_settings"].

## What it is confused with

The advice in every out-of-memory message to set expandable_segments is printed whether it is set or
not. A setting that is in effect and does not help is MEM401 or a full device.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from advisor.model.failure import Failure, FailureKind, LogText
from advisor.model.finding import Action, Finding, Observation, Severity
from advisor.rules.allocator_advice import EXPANDABLE, VARIABLES
from advisor.rules.clues import in_words, is_report, words
from advisor.rules.facts import plain_fact
from advisor.rules.rule import rule
from advisor.rules.samples import GIB, MIB, a_case, a_failure, a_log, a_record

if TYPE_CHECKING:
    from collections.abc import Iterator

    from advisor.model.case import Case
    from advisor.model.memory import AllocatorRecord

RECORDED = {
    "expandable_segments": "expandable_segments",
    "garbage_collection_threshold": "garbage_collection_threshold",
    "max_split_size_mb": "max_split_size",
}
"""A setting's name as given, and as a snapshot records it."""

UNUSED_BY_ASYNC = ("expandable_segments", "garbage_collection_threshold", "max_split_size_mb")
"""Settings of PyTorch's own allocator that backend:cudaMallocAsync replaces."""

MPS_LIMIT = "PYTORCH_MPS_HIGH_WATERMARK_RATIO"

_LIKE_A_VARIABLE = re.compile(r"^PYTORCH_(?!NO_)\w*ALLOC\w*$")
_UNSUPPORTED = words(
    "not supported",
    r"expandable_?segments?\b.{0,40}\bnot supported",
)
_TOO_LATE = words(
    "import",
    r"(?:\benv\w*|variable|ALLOC_CONF|WATERMARK_RATIO).{0,60}\bafter\b.{0,30}\bimport",
)

Doubt = tuple[float, Observation]
"""How sure it is that a setting is without effect, and the fact that says so."""


@rule("MEM406", "allocator-setting-not-applied")
def allocator_setting_not_applied(log: LogText, record: AllocatorRecord | None, failure: Failure | None) -> Finding | None:
    """A setting of the log is not in effect."""
    doubts = [
        *_not_recorded(log, record),
        *_not_read(log, record, failure),
        *_excluded(log),
        *_contradicted(log, failure),
        *_said(log, failure),
    ]
    if not doubts:
        return None
    score, surest = max(doubts, key=lambda doubt: doubt[0])
    return Finding(
        statement=f"A memory setting was given and is without effect: {surest.statement}.",
        severity=Severity.WARNING,
        confidence=score,
        observations=tuple(fact for _, fact in sorted(doubts, key=lambda doubt: -doubt[0])),
        actions=(
            Action(
                title="Set it in the environment before python starts",
                change="PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True python train.py  # PYTORCH_ALLOC_CONF since torch 2.9; "
                "in a notebook or a launcher: before the first import of torch",
            ),
        ),
        settles=Action(
            title="Ask the allocator what it uses",
            change='torch.cuda.memory._snapshot()["allocator_settings"]  # torch 2.3 and later',
        ),
    )


def _pairs(log: LogText) -> Iterator[tuple[str, str, str]]:
    """(variable, name, value) of the allocator settings that the log prints."""
    for variable in VARIABLES:
        for pair in (log.setting(variable) or "").strip("'\" ").split(","):
            name, _, value = pair.partition(":")
            if name.strip() and value.strip():
                yield variable, name.strip(), value.strip()


def _not_recorded(log: LogText, record: AllocatorRecord | None) -> Iterator[Doubt]:
    settings = dict(record.allocator_settings) if record is not None else {}
    for variable, name, value in _pairs(log):
        recorded = settings.get(RECORDED.get(name, ""))
        if recorded is None or record is None or _same(name, value, recorded):
            continue
        text = f"the log gives {variable}={name}:{value}, the snapshot records {RECORDED[name]}={recorded}"
        yield 0.85, plain_fact(text, record.source)


def _same(name: str, given: str, recorded: str) -> bool:
    if name == EXPANDABLE:
        return given.lower() == recorded.lower()
    try:
        factor = MIB if name.endswith("_mb") else 1
        return float(given) * factor == float(recorded)
    except ValueError:
        return True  # not comparable: nothing is claimed


def _not_read(log: LogText, record: AllocatorRecord | None, failure: Failure | None) -> Iterator[Doubt]:
    on_cuda = failure is not None and failure.backend == "CUDA"
    for name, _ in log.settings:
        unknown = bool(_LIKE_A_VARIABLE.match(name)) and name not in VARIABLES
        foreign = name == "PYTORCH_HIP_ALLOC_CONF" and on_cuda
        # A snapshot tells directly what is in effect; where one is at hand the name is not argued about.
        if (unknown or foreign) and (record is None or not record.allocator_settings):
            reads = "is not a variable that PyTorch reads" if unknown else "is read by ROCm builds alone"
            yield 0.75, plain_fact(f"{name} {reads}", log.source)


def _excluded(log: LogText) -> Iterator[Doubt]:
    given = {name: value for _, name, value in _pairs(log)}
    if given.get("backend", "").lower() == "cudamallocasync":
        for name in UNUSED_BY_ASYNC:
            if name in given:
                yield (
                    0.8,
                    plain_fact(
                        f"backend:cudaMallocAsync replaces the allocator that {name} is a setting of",
                        log.source,
                    ),
                )


def _contradicted(log: LogText, failure: Failure | None) -> Iterator[Doubt]:
    if failure is None or failure.kind is not FailureKind.UNIFIED_MEMORY_LIMIT or failure.allowed_bytes is None:
        return
    ratio = (log.setting(MPS_LIMIT) or "").strip("'\" ")
    if ratio in {"0", "0.0"}:
        yield (
            0.8,
            plain_fact(
                f"the log gives {MPS_LIMIT}={ratio}, which lifts the limit, and the message still names one",
                failure.source,
            ),
        )


def _said(log: LogText, failure: Failure | None) -> Iterator[Doubt]:
    unsupported, late = in_words(_UNSUPPORTED, failure, log), in_words(_TOO_LATE, failure, log)
    if unsupported is not None:
        yield 0.9, unsupported.observation("the log says that it is not supported")
    if late is not None and (failure is not None or is_report(log)):
        yield 0.55, late.observation("the text says that it was set after the import")


def fires() -> Case:
    """The launcher's log shows expandable segments; the snapshot of the same run does not."""
    return a_case(
        a_log(settings=(("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True"),)),
        a_record(allocator_settings=(("PYTORCH_CUDA_ALLOC_CONF", ""), (EXPANDABLE, "False"))),
    )


def clean() -> Case:
    """The setting is in effect, and the message advises it all the same."""
    return a_case(
        a_failure(
            requested_bytes=2 * GIB,
            detail="If reserved but unallocated memory is large try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
        ),
        a_log(settings=(("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True"),)),
        a_record(allocator_settings=((EXPANDABLE, "True"),)),
    )
