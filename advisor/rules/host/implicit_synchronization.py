"""The program reads results back from the device inside the step, and both sides lose time by it.

## What it means

Work for the device is queued, so that host and device run side by side. Some innocent lines need
a value now: `loss.item()`, `.cpu()`, `if tensor:`, `nonzero`, indexing with a mask, `print`. They
wait until the device has finished everything; then the device has to wait until the host has
issued something new.

## How it is recognized

Synchronizing calls inside the steps after which the device idles for at least 3% of the time. The
rule names the operator and, where Python frames were recorded, the line. The time that the host
spends waiting while the device computes is not counted: it costs nothing. An operator table or a
log shows only that the host waits, so the rule is then less sure. In a table without the device's
columns only the runtime's own calls show that there is a device to wait for; without them
`aten::item` and `aten::nonzero` are work of the processor.

## What to do

Keep values on the device and read them once in N steps.

## What it is confused with

A healthy, compute-bound loop that reads its loss once a step: the host waits long there, and the
device never idles. The profiler's own wait at the end of its window. Pageable copies, which also
block: INP103.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from advisor.analysis.table_shares import TableShare, cpu_share, has_device, self_cpu_total_seconds, self_device_total_seconds
from advisor.model.finding import Action, Finding, Observation, Severity
from advisor.rules.clues import mentioned_beside
from advisor.rules.rule import rule
from advisor.rules.samples import a_breakdown, a_case
from advisor.rules.step_evidence import certainty, per_step_text, step_impact, step_without
from advisor.rules.wording import count_text, ratio_text, seconds_text

if TYPE_CHECKING:
    from advisor.model.case import Case
    from advisor.model.failure import Failure, LogText
    from advisor.model.kernels import KernelMix
    from advisor.model.step_time import StepBreakdown
    from advisor.model.tables import OperatorTable
    from advisor.model.waits import Synchronizations, SynchronizationSite

LEAST_RATIO = 0.03
"""Of the window, idle because of reads: above the noise between runs (1-3%)."""

SATURATED_RATIO = 0.8
"""Of the host's time: a device that worked for this long was hardly kept waiting."""

LEAST_TABLE_RATIO = 0.10
"""Of a table's CPU time in waiting rows: the host waits at every healthy step's end too."""

NAMED_SITES = 3
"""Sites that the finding lists; the rest is in the sum."""

ACTIONS = (
    Action(
        title="Keep the value on the device and read it rarely",
        change=("running_loss += loss.detach() each step; if step % 50 == 0: print(running_loss.item())"),
        cost="the printed value comes later",
    ),
    Action(
        title="Replace what needs a value on the host",
        change=(
            "torch.where instead of if tensor: and of mask indexing; sizes known beforehand instead "
            "of nonzero(); gradient clipping with clip_grad_norm_(..., error_if_nonfinite=False)"
        ),
    ),
    Action(
        title="Find every such line",
        change='torch.cuda.set_sync_debug_mode("warn") for a few steps',
        cost="a warning at each",
    ),
)

_READS = re.compile(r"^aten::(?:item|_local_scalar_dense|nonzero|is_nonzero|masked_select)$").search
"""Operators that need a result of the device; the call that waits for it stands inside them."""

_WAITS = re.compile(r"aten::item|_local_scalar_dense|aten::nonzero|aten::is_nonzero|(?:Stream|Event|Device)Synchronize").search


@rule("HST102", "implicit-synchronization")
def implicit_synchronization(  # noqa: PLR0913, PLR0917 - a rule's needs are its parameters
    breakdown: StepBreakdown | None,
    waits: Synchronizations | None,
    mix: KernelMix | None,
    table: OperatorTable | None,
    log: LogText | None,
    failure: Failure | None,
) -> Finding | None:
    """Fire on idle time behind reads, else on a table's or a log's share of waiting."""
    if breakdown is not None:
        return _by_trace(breakdown, waits, mix) if waits is not None else None
    if table is not None and (found := _by_table(table)) is not None:
        return found
    return _by_log(log, table) if log is not None and failure is None else None


def _by_trace(breakdown: StepBreakdown, waits: Synchronizations, mix: KernelMix | None) -> Finding | None:
    lost = min(waits.exposed_seconds, breakdown.window_seconds)
    if lost < LEAST_RATIO * breakdown.window_seconds or not waits.sites:
        return None
    first = waits.sites[0]
    is_named = bool(first.operator or first.line)
    return Finding(
        statement=(
            f"The device idles {per_step_text(breakdown, lost)} because the program waits for results, most of all in {_name(first)}."
        ),
        severity=Severity.WARNING,
        confidence=certainty(0.85 if is_named else 0.7, breakdown, mix),
        observations=tuple(
            Observation(
                statement=(
                    f"{_name(site)}: {count_text(site.count, 'wait')}, the host stood "
                    f"{seconds_text(site.host_seconds)}, the device idled "
                    f"{seconds_text(site.exposed_seconds)} behind it"
                ),
                value=site.exposed_seconds,
                unit="seconds",
                source=waits.source,
            )
            for site in waits.sites[:NAMED_SITES]
        ),
        actions=(
            Action(
                title=ACTIONS[0].title,
                change=ACTIONS[0].change,
                cost=ACTIONS[0].cost,
                predicted=step_without(breakdown, lost),
            ),
            *ACTIONS[1:],
        ),
        impact=step_impact(breakdown, lost),
    )


def _name(site: SynchronizationSite) -> str:
    what = f"{site.operator} ({site.call})" if site.operator else site.call
    return f"{what} at {site.line}" if site.line else what


def _by_table(table: OperatorTable) -> Finding | None:
    if not has_device(table):
        return None
    share = _largest(cpu_share(table, _WAITS), _inclusive_share(table))
    if share is None or share.ratio < LEAST_TABLE_RATIO or _is_the_profilers(table, share) or _is_saturated(table):
        return None
    calls = f" in {count_text(share.calls, 'call')}" if share.calls else ""
    return Finding(
        statement=(
            f"The host spends {seconds_text(share.seconds)}{calls}, {ratio_text(share.ratio)} of its "
            f"time, waiting for the device in {', '.join(share.names[:NAMED_SITES])}."
        ),
        severity=Severity.WARNING,
        confidence=0.5,
        observations=(
            Observation(
                statement=f"rows that wait for the device: {seconds_text(share.seconds)}",
                value=share.ratio,
                unit="ratio",
                source=table.source,
            ),
        ),
        actions=ACTIONS,
        settles=Action(
            title="Record a trace to see whether the device idles behind these waits",
            change="torch.profiler with activities=[CPU, CUDA] and with_stack=True for two steps",
        ),
    )


def _is_saturated(table: OperatorTable) -> bool:
    """Whether the device worked for about as long as the host: then a host that waits for it loses nothing."""
    device, host = self_device_total_seconds(table), self_cpu_total_seconds(table)
    return device is not None and host is not None and device >= SATURATED_RATIO * host


def _inclusive_share(table: OperatorTable) -> TableShare | None:
    """The operator that reads a result and takes most of the CPU time, the waiting call inside it included."""
    total = self_cpu_total_seconds(table)
    rows = [row for row in table.rows if _READS(row.name) and row.cpu_seconds]
    if not rows or not total:
        return None
    row = max(rows, key=lambda each: each.cpu_seconds or 0.0)
    seconds = row.cpu_seconds or 0.0
    ratio = min(1.0, row.cpu_ratio if row.cpu_ratio is not None else seconds / total)
    return TableShare(names=(row.name,), seconds=seconds, calls=row.calls, ratio=ratio, is_of_listed=False)


def _largest(*shares: TableShare | None) -> TableShare | None:
    known = [share for share in shares if share is not None]
    return max(known, key=lambda share: share.ratio, default=None)


def _is_the_profilers(table: OperatorTable, share: TableShare) -> bool:
    """Whether it is only the one wait with which the profiler (or a benchmark) ends its window."""
    total = self_cpu_total_seconds(table)
    return total is not None and all("DeviceSynchronize" in name for name in share.names) and (share.calls or 0) <= len(share.names) + 1


def _by_log(log: LogText, table: OperatorTable | None) -> Finding | None:
    mention = mentioned_beside(table, log, "stream-synchronize") or mentioned_beside(table, log, "item")
    if mention is None or mention.in_code:
        return None
    return Finding(
        statement=("By the log, the program waits for the device inside the step, for a value that it reads back."),
        severity=Severity.WARNING,
        confidence=0.65 if mention.topic == "stream-synchronize" else 0.45,
        observations=(
            Observation(
                statement=f"the log says: {mention.text.strip()}",
                source=log.source.at(f"line {mention.line}"),
            ),
        ),
        actions=ACTIONS,
        settles=Action(
            title="Record a trace to see whether the device idles behind these waits",
            change="torch.profiler with activities=[CPU, CUDA] and with_stack=True for two steps",
        ),
    )


def fires() -> Case:
    """`loss.item()` in each step; then the device waits 12 ms for new work."""
    from advisor.model.waits import SynchronizationSite
    from advisor.rules.samples_time import a_synchronizations

    return a_case(
        a_breakdown(synchronization=0.12),
        a_synchronizations(
            count=10,
            host_seconds=0.5,
            exposed_seconds=0.12,
            sites=(
                SynchronizationSite(
                    operator="aten::item",
                    call="cudaStreamSynchronize",
                    line="train.py(88): train_epoch",
                    count=10,
                    host_seconds=0.5,
                    exposed_seconds=0.12,
                ),
            ),
        ),
    )


def clean() -> Case:
    """The same `loss.item()`, for which the host waits as long, while the device computes."""
    from advisor.model.waits import SynchronizationSite
    from advisor.rules.samples_time import a_synchronizations

    return a_case(
        a_breakdown(synchronization=0.005),
        a_synchronizations(
            count=10,
            host_seconds=0.5,
            exposed_seconds=0.005,
            sites=(
                SynchronizationSite(
                    operator="aten::item",
                    call="cudaStreamSynchronize",
                    line="train.py(88): train_epoch",
                    count=10,
                    host_seconds=0.5,
                    exposed_seconds=0.005,
                ),
            ),
        ),
    )
