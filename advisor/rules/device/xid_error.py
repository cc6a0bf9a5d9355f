"""The NVIDIA driver reported an error (an Xid) in the kernel log.

## What it means

An Xid is the driver's error number. Some accuse the program (an illegal address in a kernel), some
the card (memory that cannot be corrected, a processor of the card that does not answer, a card
that fell off the bus), some only follow from another. The number decides whether to read the code
or to take the card out of service.

## How it is recognized

By the number, looked up in NVIDIA's catalog (docs.nvidia.com/deploy/xid-errors):

| class | Xids |
|---|---|
| the program | 11, 13, 25, 31, 32, 43, 69, 80 |
| the card's memory | 48, 63, 64, 92, 94, 95, 140, 156, 157, 160, 161, 168, 171, 172 |
| the card or its driver | 46, 54, 62, 79, 109, 110, 119, 120, 143, 158, 167, 169 |
| a link | 74, 121, 136, 137, 144 to 150, 155 |
| either | copy engines (39 to 41, 70 to 72, ...), video (60, 68, ...), 8, 44, 151 |
| follows from another | 45, 154 |
| harmless | 14, 37, 38, 66, 67, 93, 106, 107, 141, 162, 163 |

The gravest class of the log decides; harmless ones fire nothing. The log does not tell which job
an Xid belongs to: compare its time and process with the failure's. Without a kernel log, a text that
tells of an Xid by its number is believed with moderation: the numbers of an outage of another day, or
of another card, are told in the same words.

## What to do

The program's: run it with CUDA_LAUNCH_BLOCKING=1 or under compute-sanitizer. The card's: reset it,
and exchange it when the error returns.

## What it is confused with

Xid 13 and 31 come from faulty cards too: on one card only, with a program that is known to be
sound. Xid 43 and 45 also appear when a program is ended from outside.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.hardware.xids import XIDS, XidClass
from advisor.model.finding import Action, Finding, Severity
from advisor.rules.clues import quoted
from advisor.rules.facts import count_fact, plain_fact
from advisor.rules.rule import rule
from advisor.rules.samples import a_case
from advisor.rules.xid_words import told_xids

if TYPE_CHECKING:
    from collections.abc import Sequence

    from advisor.model.case import Case
    from advisor.model.failure import Failure, LogText
    from advisor.model.node import KernelEvent, KernelLog

GRAVEST_FIRST = (
    XidClass.DEVICE,
    XidClass.MEMORY,
    XidClass.LINK,
    XidClass.APPLICATION,
    XidClass.UNCLEAR,
    XidClass.CONSEQUENCE,
)
"""A fault of the card explains those of the programs on it, not the other way round."""

MILD_XIDS = frozenset({63, 92})
"""A repair that succeeded, and errors that were corrected: a reset will do, nothing failed by
them."""

MOST_LISTED = 8
"""Different Xids that are listed one by one."""


@rule("DEV106", "xid-error")
def xid_error(kernel: KernelLog | None, log: LogText | None, failure: Failure | None) -> Finding | None:
    """Fire on the gravest class of Xid in the kernel's log, else on those that a text tells of."""
    if kernel is not None and any(event.xid is not None for event in kernel.events):
        return _by_kernel(kernel)
    return _by_words(log, failure) if log is not None else None


def _by_words(log: LogText, failure: Failure | None) -> Finding | None:
    told = [(number, mention) for number, mention in told_xids(log) if not _is_harmless(number)]
    if not told:
        return None
    number, _ = min(told, key=lambda pair: _gravity(XIDS[pair[0]].accused))
    accused = XIDS[number].accused
    is_mild = {each for each, _ in told} <= MILD_XIDS
    severity = _severity(accused, is_mild=is_mild)
    return Finding(
        statement=f"The text tells of Xid {number}: {_meaning(number)}. It accuses {accused.value}; the kernel's log would prove it.",
        severity=severity if failure is not None else min(severity, Severity.WARNING),
        confidence=_TOLD_CONFIDENCE.get(accused, 0.35),
        observations=tuple(
            plain_fact(f'Xid {each}: {_meaning(each)}; the text: "{quoted(mention.text)}"', log.source.at(f"line {mention.line}"))
            for each, mention in sorted(told, key=lambda pair: _gravity(XIDS[pair[0]].accused))[:MOST_LISTED]
        ),
        actions=_actions(accused, None),
        settles=Action(
            title="Save what proves it, and diagnose these files",
            change="sudo dmesg -T > dmesg.txt; nvidia-smi -q > nvidia-smi.txt",
        ),
        # A card that fails explains a worker that does not answer and errors that its kernels report.
        supersedes=("MEM709",) if severity is Severity.ERROR else (),
    )


def _by_kernel(kernel: KernelLog) -> Finding | None:
    told = [event for event in kernel.events if event.xid is not None and not _is_harmless(event.xid)]
    if not told:
        return None
    accused = min((_accused(event) for event in told), key=_gravity)
    chosen = [event for event in told if _accused(event) is accused]
    first = chosen[0]
    is_mild = {event.xid for event in told} <= MILD_XIDS
    return Finding(
        statement=_statement(kernel, first, accused, chosen),
        severity=_severity(accused, is_mild=is_mild),
        confidence=_CONFIDENCE.get(accused, 0.4) if accused is not None else 0.4,
        observations=tuple(
            count_fact(
                f"Xid {number}, {_times_text(kernel, number)}: {_meaning(number)}, first {_whom_text(event)}",
                _times(kernel, number),
                kernel.source.at(f"line {event.line}"),
            )
            for number, event in list(_firsts(told).items())[:MOST_LISTED]
        ),
        actions=_actions(accused, first),
        settles=Action(
            title="Compare time and process of the first Xid with the failure's",
            change="sudo dmesg -T | grep -i xid",
        ),
    )


_CONFIDENCE = {
    XidClass.DEVICE: 0.85,
    XidClass.MEMORY: 0.85,
    XidClass.LINK: 0.75,
    XidClass.APPLICATION: 0.65,
    XidClass.UNCLEAR: 0.5,
    XidClass.CONSEQUENCE: 0.4,
}

_TOLD_CONFIDENCE = {XidClass.DEVICE: 0.6, XidClass.MEMORY: 0.6, XidClass.LINK: 0.55, XidClass.APPLICATION: 0.45, XidClass.UNCLEAR: 0.4}
"""Of an Xid that a text tells of: never settled, since nothing says when it was and on which card."""


def _is_harmless(xid: int) -> bool:
    return xid in XIDS and XIDS[xid].accused is XidClass.HARMLESS


def _accused(event: KernelEvent) -> XidClass | None:
    """None for a number that the catalog does not have."""
    return XIDS[event.xid].accused if event.xid is not None and event.xid in XIDS else None


def _gravity(accused: XidClass | None) -> int:
    return GRAVEST_FIRST.index(accused) if accused in GRAVEST_FIRST else len(GRAVEST_FIRST)


def _meaning(xid: int) -> str:
    return XIDS[xid].meaning if xid in XIDS else "not in the catalog that this version knows"


def _times(kernel: KernelLog, xid: int) -> int:
    return kernel.counts.get(f"xid {xid}", sum(event.xid == xid for event in kernel.events))


def _times_text(kernel: KernelLog, xid: int) -> str:
    times = _times(kernel, xid)
    return "once" if times == 1 else f"{times:,} times"


def _whom_text(event: KernelEvent) -> str:
    by = f" by {event.process} ({event.pid})" if event.process else ""
    at = f" at {event.timestamp}" if event.timestamp else ""
    return f"on {event.bus_id or 'an unnamed card'}{by}{at}"


def _firsts(told: Sequence[KernelEvent]) -> dict[int, KernelEvent]:
    found: dict[int, KernelEvent] = {}
    for event in sorted(told, key=lambda event: (_gravity(_accused(event)), event.line)):
        if event.xid is not None:
            found.setdefault(event.xid, event)
    return found


def _statement(kernel: KernelLog, first: KernelEvent, accused: XidClass | None, chosen: Sequence[KernelEvent]) -> str:
    xid = first.xid or 0
    whom = f" It accuses {accused.value}." if accused is not None else ""
    cards = sorted({event.bus_id for event in chosen if event.bus_id})
    where = f" on {cards[0]}" if len(cards) == 1 else f" on {len(cards)} cards" if cards else ""
    return f"The driver reported Xid {xid} {_times_text(kernel, xid)}{where}: {_meaning(xid)}.{whom}"


def _severity(accused: XidClass | None, *, is_mild: bool) -> Severity:
    if accused in (XidClass.DEVICE, XidClass.MEMORY, XidClass.LINK) and not is_mild:
        return Severity.ERROR
    return Severity.WARNING


def _actions(accused: XidClass | None, first: KernelEvent | None) -> tuple[Action, ...]:
    card = first.bus_id if first is not None and first.bus_id else "BUS_ID"
    reset = Action(
        title="Drain the node and reset the card",
        change=(f"end its jobs, then sudo nvidia-smi --gpu-reset -i {card}; reboot the node if that fails"),
        cost="all jobs on the card",
    )
    exchange = Action(
        title="Exchange what is faulty when the error returns",
        change="dcgmi diag -r 3; nvidia-bug-report.sh; return the card with their results",
        cost="one card less until then",
    )
    sanitize = Action(
        title="Find the kernel that fails",
        change=("CUDA_LAUNCH_BLOCKING=1 python train.py, or compute-sanitizer python train.py on a short run"),
        cost="the run is slower, under compute-sanitizer by 10 times and more",
    )
    other_card = Action(
        title="Run the same program on another card",
        change=("CUDA_VISIBLE_DEVICES=OTHER python train.py: an error that stays behind is the card's"),
    )
    if accused is XidClass.LINK:
        links = Action(
            title="Look at the links, reseat cards, bridges and baseboard",
            change="nvidia-smi nvlink --status; nvidia-smi nvlink --errorcounters",
            cost="work at the machine",
        )
        return (links, reset, exchange)
    if accused in (XidClass.DEVICE, XidClass.MEMORY):
        return (reset, exchange)
    return (sanitize, other_card)


def fires() -> Case:
    """A card whose system processor stopped answering."""
    from advisor.rules.samples_node import a_kernel_log, an_xid

    return a_case(a_kernel_log(an_xid(119, pid=4242, process="python")))


def clean() -> Case:
    """A kernel log with the driver's test message alone."""
    from advisor.rules.samples_node import a_kernel_log, an_xid

    return a_case(a_kernel_log(an_xid(106)))
