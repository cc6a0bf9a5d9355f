"""CUDA graphs keep private memory pools that nothing else can use.

## What it means

A captured graph replays with fixed addresses, so its memory stays reserved for it as long as the
graph lives. Every shape that is captured adds a graph, and unless they share a pool, a pool.
torch.compile(mode="reduce-overhead") and inference engines capture one graph a batch size.

## How it is recognized

"allocated in private pools" in the message (torch 2.4 and later; older messages count such memory as
unallocated), or segments of private pools in a snapshot: at least 10% of the device, or at least the
refused request and 5%. Without figures, a capture in the traceback makes it a candidate.

## What to do

Capture fewer sizes, let the graphs share one pool, mark changing dimensions as dynamic, or do without
graphs where memory is short.

## What it is confused with

A few MiB in private pools are cuBLAS workspaces of a capture. A KV cache (MEM301) is not in a private
pool and fails at the engine's start too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.model.dataclass import dataclass
from advisor.model.finding import Action, Finding, Impact, Observation, Severity
from advisor.rules.capacity import is_capacity_failure, severity_of, what_would_settle
from advisor.rules.clues import anywhere, in_frames, words
from advisor.rules.facts import bytes_fact
from advisor.rules.rule import rule
from advisor.rules.samples import GIB, MIB, a_case, a_failure
from advisor.rules.wording import bytes_text, ratio_text

if TYPE_CHECKING:
    from advisor.model.case import Case
    from advisor.model.evidence import Source
    from advisor.model.failure import Failure, LogText
    from advisor.model.memory import AllocatorRecord, MemoryLedger

DEVICE_RATIO = 0.1
"""Share of the device in private pools that is worth reclaiming by itself."""

DECIDING_RATIO = 0.05
"""Share of the device in private pools that counts where the refused request is smaller than they are."""

CAPTURE = words(
    "graph|capture_model|_capture_begin|capture_end|reduce-overhead|enforce_eager",
    r"cuda[ _-]?graph|capture_model|graph_capture|_capture_begin|capture_end|cudagraph_trees|reduce-overhead|enforce_eager",
)
"""A capture in a frame, or graphs in the words of the log."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pools:
    held: int
    device: int | None
    source: Source


@rule("MEM405", "cuda-graph-pools")
def cuda_graph_pools(
    failure: Failure | None,
    record: AllocatorRecord | None,
    ledger: MemoryLedger | None,
    log: LogText | None,
) -> Finding | None:
    """Private pools are a good part of the device."""
    pools = _pools(failure, record, ledger)
    if pools is not None and _is_large(pools, failure, record):
        return _by_figures(pools, failure, record)
    known_small = pools is not None and pools.held > 0
    if failure is None or not is_capacity_failure(failure) or known_small:
        return None
    frame = in_frames(CAPTURE, failure)
    clue = frame or anywhere(CAPTURE, failure, log)
    if clue is None:
        return None
    fact = clue.observation("a graph is captured" if frame else "the text speaks of CUDA graphs")
    return Finding(
        statement="The request was refused "
        + ("while a CUDA graph was being captured" if frame else "in a program that captures CUDA graphs")
        + "; each captured shape keeps its memory, and this message does not tell how much.",
        severity=severity_of(failure),
        confidence=0.6 if frame else 0.35,
        observations=(fact,),
        actions=_actions(),
        settles=what_would_settle(failure),
    )


def _pools(failure: Failure | None, record: AllocatorRecord | None, ledger: MemoryLedger | None) -> _Pools | None:
    if record is not None and record.private_pool_bytes:
        device = ledger.device_bytes if ledger is not None else None
        return _Pools(held=record.private_pool_bytes, device=device, source=record.source)
    if failure is not None and failure.private_pool_bytes is not None:
        return _Pools(held=failure.private_pool_bytes, device=failure.total_bytes, source=failure.source)
    return None


def _is_large(pools: _Pools, failure: Failure | None, record: AllocatorRecord | None) -> bool:
    if not pools.device:
        return False
    if pools.held >= DEVICE_RATIO * pools.device:
        return True
    requested = _requested(failure, record)
    decides = requested is not None and pools.held >= requested
    return decides and pools.held >= DECIDING_RATIO * pools.device


def _requested(failure: Failure | None, record: AllocatorRecord | None) -> int | None:
    if failure is not None and failure.requested_bytes is not None:
        return failure.requested_bytes
    return record.oom_requested_bytes if record is not None else None


def _by_figures(pools: _Pools, failure: Failure | None, record: AllocatorRecord | None) -> Finding:
    share = f", {ratio_text(pools.held / pools.device)} of the device" if pools.device else ""
    requested = _requested(failure, record)
    facts: list[Observation] = [bytes_fact(f"{bytes_text(pools.held)} is in private pools{share}", pools.held, pools.source)]
    if requested is not None:
        facts.append(bytes_fact(f"{bytes_text(requested)} was refused", requested, pools.source))
    severity = severity_of(failure)
    if failure is None and record is not None and record.oom_count:
        severity = Severity.ERROR
    return Finding(
        statement=f"CUDA graphs keep {bytes_text(pools.held)} in private pools{share}; nothing else can use it.",
        severity=severity,
        confidence=0.8 if requested is not None and pools.held >= requested else 0.6,
        observations=tuple(facts),
        actions=_actions(),
        settles=what_would_settle(failure) if record is None else None,
        impact=Impact(recoverable_bytes=pools.held),
    )


def _actions() -> tuple[Action, ...]:
    return (
        Action(
            title="Capture fewer sizes",
            change='vLLM: compilation_config={"cudagraph_capture_sizes": [1, 8, 32]} or enforce_eager=True; SGLang: --cuda-graph-max-bs 32',
            cost="sizes without a graph pay their launches again: slower decode at small batches",
        ),
        Action(
            title="Let changing dimensions be dynamic",
            change='torch._dynamo.mark_dynamic(x, 1)  # or torch.compile(mode="default"), which captures no graphs',
            cost="more launches a step",
        ),
        Action(
            title="Let the graphs share one pool",
            change="pool = torch.cuda.graph_pool_handle(); torch.cuda.graph(g, pool=pool)",
            cost="graphs of one pool must be replayed in the order of their capture, one at a time",
        ),
    )


def fires() -> Case:
    """A graph for each of forty batch sizes: 11 GiB in private pools."""
    return a_case(
        a_failure(
            requested_bytes=600 * MIB,
            free_bytes=300 * MIB,
            allocated_bytes=76 * GIB,
            reserved_unallocated_bytes=500 * MIB,
            private_pool_bytes=11 * GIB,
        )
    )


def clean() -> Case:
    """46 MiB in private pools on a full 15.8 GiB device: the workspaces of a capture."""
    return a_case(
        a_failure(
            requested_bytes=546 * MIB,
            free_bytes=300 * MIB,
            total_bytes=int(15.77 * GIB),
            allocated_bytes=int(14.1 * GIB),
            reserved_unallocated_bytes=400 * MIB,
            private_pool_bytes=46 * MIB,
        )
    )
