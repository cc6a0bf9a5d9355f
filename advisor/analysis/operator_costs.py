"""A trace's operators → time, FLOPs and bytes by recorded shapes, against the device's ceilings."""

from typing import TYPE_CHECKING

import numpy as np

from advisor.analysis.device_timeline import SECOND_NS, device_timeline
from advisor.analysis.distinct import distinct
from advisor.analysis.kernel_names import read_kernel_name
from advisor.analysis.nesting import parents, self_durations
from advisor.analysis.operator_rows import operators_of
from advisor.analysis.operator_work import Work, is_modelled, operator_work
from advisor.model.ceilings import DeviceCeilings
from advisor.model.dataclass import dataclass, field
from advisor.model.kernels import MatmulShape, OperatorCosts
from advisor.model.step_time import Bound, OperatorCost, StepBreakdown
from advisor.model.trace import Category, KinetoTrace

if TYPE_CHECKING:
    from advisor.model.trace import Flags, Indices

OPERATOR_COUNT = 20
"""Operators that are listed, by the report's contract."""

SHAPE_COUNT = 40
"""Shapes of products that are listed."""

MODELLED_COUNT = 5_000
"""Distinct calls whose shapes are read, those with most time first: more would cost seconds."""

WHOLE_RATIO = 0.99
"""Of an operator's time in modelled calls, from which its figures stand for all of it."""

Key = tuple[int, int, int, int]
"""Codes of name, shapes, types and concrete inputs: calls with the same key do the same work."""


@dataclass
class _Kind:
    """All calls with one key."""

    calls: int = 0
    seconds: float = 0.0
    on_tensor_cores: bool = False


@dataclass
class _Sum:
    """All calls of one name."""

    seconds: float = 0.0
    calls: int = 0
    flops: float | None = None
    moved_bytes: float | None = None
    modelled_seconds: float = 0.0
    works: list[tuple[Work, _Kind]] = field(default_factory=list)


def operator_costs(trace: KinetoTrace, breakdown: StepBreakdown, ceilings: DeviceCeilings | None) -> OperatorCosts | None:
    """The operators of the breakdown's device, or of the host where no device was recorded.

    Device time counts for the innermost operator around the launch; kernels out of graphs, or
    without a recorded operator, stand under their own names. FLOPs are known for the operators
    of `operator_work` whose shapes are recorded.
    """
    on_device = breakdown.device_index is not None
    if on_device:
        sums, kinds = _device_sums(trace, int(breakdown.device_index or 0))
    else:
        sums, kinds = _host_sums(trace)
    if not sums:
        return None
    unshaped = _add_work(trace, sums, kinds)
    known = ceilings if on_device else None
    flops = [each.flops for each in sums.values() if each.flops]
    dtype = _main_dtype(sums)
    peak = known.dense_peaks.get(dtype) if known is not None else None
    ordered = sorted(sums.items(), key=lambda item: -item[1].seconds)
    return OperatorCosts(
        source=trace.source.at(f"device {breakdown.device_index}" if on_device else "host"),
        rank=trace.rank,
        is_device_time=on_device,
        device_name=known.name if known is not None else "",
        window_seconds=breakdown.window_seconds,
        step_count=breakdown.step_count,
        total_seconds=sum(each.seconds for each in sums.values()),
        modelled_seconds=sum(each.modelled_seconds for each in sums.values()),
        flops=sum(flops) if flops else None,
        operators=tuple(_cost(name, each, known) for name, each in ordered[:OPERATOR_COUNT]),
        matmuls=_matmuls(sums, known),
        unshaped_count=unshaped,
        peak_flops=peak.value if peak is not None else None,
        peak_dtype=dtype if peak is not None else "",
        peak_source=peak.source if peak is not None else "",
    )


def _device_sums(trace: KinetoTrace, device: int) -> tuple[dict[str, _Sum], dict[Key, _Kind]]:
    timeline = device_timeline(trace, device)
    rows, seconds = timeline.rows, timeline.duration_ns / SECOND_NS
    operator = operators_of(trace, rows, timeline.launch)
    operator[timeline.from_graph] = -1
    known = operator >= 0
    sums: dict[str, _Sum] = {}
    _count(trace, sums, rows[~known], seconds[~known], np.ones(int((~known).sum()), dtype=bool))
    is_first = _first_of_each(operator[known])
    _count(trace, sums, operator[known], seconds[known], is_first)
    tensor_cores = np.fromiter((read_kernel_name(name).uses_tensor_cores for name in trace.names), bool, len(trace.names))[trace.name[rows]]
    kinds = _kinds(trace, operator[known], seconds[known], is_first, tensor_cores[known])
    return sums, kinds


def _first_of_each(operator: "Indices") -> "Flags":
    """One row for each operator: one that launches several kernels was called once."""
    order = operator.argsort(kind="stable")
    is_first = np.zeros(len(order), dtype=bool)
    is_first[order[:1]] = True
    is_first[order[1:]] = operator[order[1:]] != operator[order[:-1]]
    return is_first


def _host_sums(trace: KinetoTrace) -> tuple[dict[str, _Sum], dict[Key, _Kind]]:
    rows = trace.of_category(Category.OPERATOR)
    if not len(rows):
        return {}, {}
    parent = parents(trace.thread[rows], trace.start_ns[rows], trace.ends_ns(rows))
    seconds = self_durations(parent, trace.duration_ns[rows]) / SECOND_NS
    every = np.ones(len(rows), dtype=bool)
    sums: dict[str, _Sum] = {}
    _count(trace, sums, rows, seconds, every)
    modelled = np.fromiter((is_modelled(name) for name in trace.names), bool, len(trace.names))
    is_inner = modelled[trace.name[rows]]
    # A wrapper (linear around addmm) does no work of its own beside the operator inside it.
    around = parent[is_inner]
    wraps = np.zeros(len(rows), dtype=bool)
    while len(around := around[around >= 0]):
        wraps[around] = True
        around = parent[distinct(around)]
    inner = is_inner & ~wraps
    return sums, _kinds(trace, rows[inner], seconds[inner], every[inner], ~every[inner])


def _count(
    trace: KinetoTrace,
    sums: dict[str, _Sum],
    rows: "Indices",
    seconds: "np.typing.NDArray[np.float64]",
    is_call: "Flags",
) -> None:
    """Add up time and calls by name."""
    size = len(trace.names)
    spent = np.bincount(trace.name[rows], weights=seconds, minlength=size)
    calls = np.bincount(trace.name[rows], weights=is_call, minlength=size)
    for code in calls.nonzero()[0].tolist():
        each = sums.setdefault(trace.names[code], _Sum())
        each.seconds += float(spent[code])
        each.calls += int(calls[code])


def _kinds(
    trace: KinetoTrace,
    rows: "Indices",
    seconds: "np.typing.NDArray[np.float64]",
    is_call: "Flags",
    on_tensor_cores: "Flags",
) -> dict[Key, _Kind]:
    """Calls of modelled operators by what decides their work."""
    modelled = np.fromiter((is_modelled(name) for name in trace.names), bool, len(trace.names))
    chosen = modelled[trace.name[rows]]
    rows, seconds = rows[chosen], seconds[chosen]
    is_call, on_tensor_cores = is_call[chosen], on_tensor_cores[chosen]
    codes = np.stack((trace.name[rows], trace.shapes[rows], trace.types[rows], trace.inputs[rows]), axis=1)
    order = np.lexsort(codes.T)
    is_new = np.ones(len(order), dtype=bool)
    is_new[1:] = (codes[order[1:]] != codes[order[:-1]]).any(axis=1)
    keys = codes[order[is_new]]
    position = np.empty(len(order), dtype=np.intp)
    position[order] = np.cumsum(is_new) - 1
    spent = np.bincount(position, weights=seconds, minlength=len(keys))
    calls = np.bincount(position, weights=is_call, minlength=len(keys))
    cores = np.bincount(position, weights=on_tensor_cores, minlength=len(keys))
    return {
        (key[0], key[1], key[2], key[3]): _Kind(
            calls=int(calls[place]),
            seconds=float(spent[place]),
            on_tensor_cores=bool(cores[place]),
        )
        for place, key in enumerate(keys.tolist())
    }


def _add_work(trace: KinetoTrace, sums: dict[str, _Sum], kinds: dict[Key, _Kind]) -> int:
    """Read the shapes of the costliest kinds; returns how many calls could not be modelled."""
    unshaped = 0
    ordered = sorted(kinds.items(), key=lambda item: -item[1].seconds)
    for place, ((name, shapes, types, inputs), kind) in enumerate(ordered):
        work = None
        if place < MODELLED_COUNT and shapes >= 0 and types >= 0:
            work = operator_work(
                trace.names[name],
                trace.shape_texts[shapes],
                trace.type_texts[types],
                trace.input_texts[inputs] if inputs >= 0 else "[]",
            )
        if work is None:
            unshaped += kind.calls
            continue
        if work.dtype == "fp32" and kind.on_tensor_cores:
            work = Work(flops=work.flops, moved_bytes=work.moved_bytes, dtype="tf32", product=work.product)
        each = sums[trace.names[name]]
        each.flops = (each.flops or 0.0) + work.flops * kind.calls
        each.moved_bytes = (each.moved_bytes or 0.0) + work.moved_bytes * kind.calls
        each.modelled_seconds += kind.seconds
        each.works.append((work, kind))
    return unshaped


def _cost(name: str, each: _Sum, ceilings: DeviceCeilings | None) -> OperatorCost:
    """An operator's row; figures only where nearly all of its calls are modelled."""
    attained, bound = _against_roofline(each.works, ceilings)
    # Figures of a part of the calls would look like those of all.
    is_whole = each.modelled_seconds >= WHOLE_RATIO * each.seconds
    return OperatorCost(
        name=name,
        device_seconds=each.seconds,
        calls=each.calls,
        flops=each.flops if is_whole else None,
        moved_bytes=each.moved_bytes if is_whole else None,
        attained_ratio=attained if is_whole else None,
        bound=bound if is_whole else Bound.UNKNOWN,
    )


def _against_roofline(works: list[tuple[Work, _Kind]], ceilings: DeviceCeilings | None) -> tuple[float | None, Bound]:
    """Least time by the roofline over time taken, at most 1, and which ceiling asks for most of it.

    Caches can beat the bytes' floor; the ratio then says that nothing is left to win.
    """
    if ceilings is None or ceilings.bandwidth is None or not works:
        return None, Bound.UNKNOWN
    computing = moving = taken = least = 0.0
    for work, kind in works:
        peak = ceilings.dense_peaks.get(work.dtype)
        if peak is None:
            if work.flops:
                return None, Bound.UNKNOWN
            compute_seconds = 0.0
        else:
            compute_seconds = work.flops * kind.calls / peak.value
        move_seconds = work.moved_bytes * kind.calls / ceilings.bandwidth.value
        computing += compute_seconds
        moving += move_seconds
        least += max(compute_seconds, move_seconds)
        taken += kind.seconds
    bound = Bound.COMPUTE if computing >= moving else Bound.MEMORY
    return (min(1.0, least / taken) if taken else None), bound


def _matmuls(sums: dict[str, _Sum], ceilings: DeviceCeilings | None) -> tuple[MatmulShape, ...]:
    found = []
    for name, each in sums.items():
        for work, kind in each.works:
            if work.product is None:
                continue
            attained, bound = _against_roofline([(work, kind)], ceilings)
            batch, rows, columns, inner = work.product
            found.append(
                MatmulShape(
                    operator=name,
                    batch_count=batch,
                    rows=rows,
                    columns=columns,
                    inner=inner,
                    dtype=work.dtype,
                    calls=kind.calls,
                    device_seconds=kind.seconds,
                    flops=work.flops * kind.calls,
                    moved_bytes=work.moved_bytes * kind.calls,
                    attained_ratio=attained,
                    bound=bound,
                )
            )
    return tuple(sorted(found, key=lambda shape: -shape.device_seconds)[:SHAPE_COUNT])


def _main_dtype(sums: dict[str, _Sum]) -> str:
    """The format in which most FLOPs were done; empty without any."""
    done: dict[str, float] = {}
    for each in sums.values():
        for work, kind in each.works:
            if work.dtype:
                done[work.dtype] = done.get(work.dtype, 0.0) + work.flops * kind.calls
    return max(done, key=lambda dtype: done[dtype], default="")
