"""A GPU's memory had errors that it could not correct, or a repair of it is pending or has failed.

## What it means

ECC memory corrects single flipped bits and detects what it cannot correct. An uncorrectable error
ends the programs that used the page. The card then replaces the faulty row by a spare one (older
cards retire the page), which takes effect at the next reset. A card whose spare rows are used up
can no longer be repaired.

## How it is recognized

By the card's own counters: uncorrectable errors since the driver was loaded, a pending or a failed
remapping, and on older cards the pages retired for double-bit errors, of which a card has 64 at
most. Rows that were remapped and are in force are a repaired card and fire nothing, and so does a
history of errors on a card that has been reset since.

## What to do

Reset the card (or reboot) to put the repair into force, then run the job again. Exchange a card
whose remapping failed, or that has new errors after a reset.

## What it is confused with

An illegal address in the program's own kernels ends it with similar words (Xid 13 or 31, see
DEV106) and leaves these counters at zero. Correctable errors are harmless. Cards without ECC
cannot tell.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.hardware.xids import XIDS, XidClass
from advisor.model.finding import Action, Finding, Observation, RuledOut, Severity
from advisor.rules.facts import count_fact, plain_fact
from advisor.rules.gpu_facts import MOST_FACTS, gpu_source, gpu_text
from advisor.rules.rule import rule
from advisor.rules.samples import a_case
from advisor.rules.wording import count_text

if TYPE_CHECKING:
    from advisor.model.case import Case
    from advisor.model.node import GpuReading, KernelEvent, KernelLog, NodeReading

PAGE_LIMIT = 64
"""Pages that a card can retire at most (NVIDIA, GPU memory error management: row remapping against
page retirement)."""

MANY_PAGES = 32
"""Retired for double-bit errors: half of what the card can retire, so that its exchange should be
planned."""


@rule("DEV105", "memory-errors")
def memory_errors(reading: NodeReading, kernel: KernelLog | None) -> Finding | None:
    """Fire on the gravest of what any card's counters say."""
    faulty = sorted((gpu for gpu in reading.gpus if _gravity(gpu)), key=lambda gpu: (-_gravity(gpu), gpu.index))
    if not faulty:
        return None
    worst = faulty[0]
    events = _events(kernel, worst)
    others = f" Others: GPU {', '.join(str(gpu.index) for gpu in faulty[1:9])}." if faulty[1:] else ""
    return Finding(
        statement=f"{gpu_text(worst)}: {_words(worst)}.{others}",
        severity=_severity(worst),
        confidence=0.9 if events else 0.85 if _gravity(worst) >= _PENDING else 0.7,
        observations=(
            *(fact for gpu in faulty[:MOST_FACTS] for fact in _facts(reading, gpu)),
            *(
                plain_fact(f"Xid {event.xid}: {_meaning(event)}", kernel.source.at(f"line {event.line}"))
                for event in events[:3]
                if kernel is not None
            ),
        ),
        actions=_actions(worst),
        settles=None if worst.remap_failed else _settles(worst),
        ruled_out=_ruled_out(kernel, events),
        supersedes=("DEV106",) if events and _only_memory(kernel) else (),
    )


_RETIRED, _MANY_RETIRED, _PENDING, _UNCORRECTED, _FAILED = 1, 2, 3, 4, 5


def _gravity(gpu: GpuReading) -> int:
    """0 for a card that is in order, else one of the grades above."""
    if gpu.remap_failed:
        return _FAILED
    if gpu.ecc_uncorrected:
        return _UNCORRECTED
    if gpu.remap_pending:
        return _PENDING
    if gpu.retired_pages:
        return _MANY_RETIRED if gpu.retired_pages >= MANY_PAGES else _RETIRED
    return 0


def _severity(gpu: GpuReading) -> Severity:
    gravity = _gravity(gpu)
    if gravity >= _UNCORRECTED:
        return Severity.ERROR
    return Severity.INFO if gravity == _RETIRED else Severity.WARNING


def _words(gpu: GpuReading) -> str:
    parts = []
    if gpu.remap_failed:
        parts.append("the repair of its memory failed, no spare row is left for it")
    if gpu.ecc_uncorrected:
        errors = count_text(gpu.ecc_uncorrected, "uncorrectable memory error")
        parts.append(f"{errors} since the driver was loaded, each of which ends the programs that used the page")
    if gpu.remap_pending:
        parts.append("a repair of its memory waits for a reset of the card")
    if gpu.retired_pages:
        pages = count_text(gpu.retired_pages, "page")
        parts.append(f"{pages} of its memory retired for double-bit errors, of at most {PAGE_LIMIT}")
    return "; ".join(parts)


def _facts(reading: NodeReading, gpu: GpuReading) -> tuple[Observation, ...]:
    source = gpu_source(reading, gpu)
    counted = (
        ("uncorrectable error", " since the driver was loaded", gpu.ecc_uncorrected),
        ("uncorrectable error", " over the card's life", gpu.ecc_uncorrected_lifetime),
        ("row", " remapped for uncorrectable errors", gpu.remapped_rows),
        ("page", " retired for double-bit errors", gpu.retired_pages),
    )
    facts = [count_fact(f"GPU {gpu.index}: {count_text(number, noun)}{rest}", number, source) for noun, rest, number in counted if number]
    if gpu.remap_pending:
        facts.append(plain_fact(f"GPU {gpu.index}: remapping or retirement is pending", source))
    if gpu.remap_failed:
        facts.append(plain_fact(f"GPU {gpu.index}: remapping failed", source))
    return tuple(facts)


def _actions(worst: GpuReading) -> tuple[Action, ...]:
    reset = Action(
        title="Reset the card, which puts a pending repair into force, and run again",
        change=(f"end its jobs, then sudo nvidia-smi --gpu-reset -i {worst.index} (or reboot the node)"),
        cost="all jobs on the card",
    )
    replace = Action(
        title="Exchange the card",
        change=("run NVIDIA's field diagnostic (or dcgmi diag -r 3) and return the card with its result"),
        cost="one card less until then",
    )
    gravity = _gravity(worst)
    if gravity == _FAILED:
        return (replace,)
    if gravity == _RETIRED:
        return (
            Action(
                title="Watch the count; the card is in order while it does not grow",
                change=f"nvidia-smi -i {worst.index} -q -d PAGE_RETIREMENT",
            ),
        )
    return (replace,) if gravity == _MANY_RETIRED else (reset, replace)


def _settles(worst: GpuReading) -> Action:
    return Action(
        title="Read the counters again after a reset: a card that is well keeps them at 0",
        change=f"nvidia-smi -i {worst.index} -q -d ECC,ROW_REMAPPER,PAGE_RETIREMENT",
    )


def _events(kernel: KernelLog | None, gpu: GpuReading) -> list[KernelEvent]:
    """Xids about memory of this card (of any card where the addresses do not tell)."""
    if kernel is None:
        return []
    return [
        event
        for event in kernel.events
        if event.xid in XIDS
        and XIDS[event.xid].accused is XidClass.MEMORY
        and (event.bus_id is None or gpu.bus_id is None or _same_bus(event.bus_id, gpu.bus_id))
    ]


def _same_bus(logged: str, read: str) -> bool:
    """Whether "0000:19:00" of the kernel and "00000000:19:00.0" of nvidia-smi are one address."""
    return read.lower().split(".")[0].endswith(logged.lower().split(".")[0].split(":", 1)[-1])


def _meaning(event: KernelEvent) -> str:
    return XIDS[event.xid].meaning if event.xid is not None else ""


def _only_memory(kernel: KernelLog | None) -> bool:
    classes = {XIDS[event.xid].accused for event in (kernel.events if kernel else ()) if event.xid is not None and event.xid in XIDS}
    return classes <= {XidClass.MEMORY, XidClass.CONSEQUENCE, XidClass.HARMLESS}


def _ruled_out(kernel: KernelLog | None, events: list[KernelEvent]) -> tuple[RuledOut, ...]:
    if kernel is None or not events or not _only_memory(kernel):
        return ()
    return (RuledOut(code="MEM709", because="the card's own counters show the fault, no kernel is to blame"),)


def fires() -> Case:
    """Two uncorrectable errors, their repair pending, the kernel's messages beside them."""
    from advisor.rules.samples_node import a_gpu, a_kernel_log, a_node_reading, an_xid

    return a_case(
        a_node_reading(a_gpu(ecc_uncorrected=2, ecc_uncorrected_lifetime=2, remapped_rows=1, remap_pending=True)),
        a_kernel_log(an_xid(48), an_xid(63, line=813)),
    )


def clean() -> Case:
    """A repaired card: a row remapped long ago, nothing since the driver was loaded."""
    from advisor.rules.samples_node import a_gpu, a_node_reading

    return a_case(a_node_reading(a_gpu(ecc_uncorrected_lifetime=1, remapped_rows=1)))
