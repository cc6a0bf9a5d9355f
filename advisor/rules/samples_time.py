"""Builders of the measures of time that rules' own cases are made of, beside those of `samples`."""

from typing import Any

from advisor.model.ceilings import DeviceCeilings, Figure
from advisor.model.evidence import Source
from advisor.model.failure import LogText, Mention
from advisor.model.kernels import AttentionMix, DecodeSigns, KernelMix, LaunchProfile, MatmulShape, OperatorCosts
from advisor.model.step_time import Bound
from advisor.model.tables import OperatorRow, OperatorTable
from advisor.model.waits import (
    Communication,
    CopyGroup,
    CopyProfile,
    DriverAllocations,
    InputWait,
    OptimizerSteps,
    StepTimes,
    Synchronizations,
)
from advisor.rules.samples import TRACE

HOST = Source(path="trace.json.gz", where="host")
TABLE = Source(path="profile.txt")

WINDOW: dict[str, Any] = {"window_seconds": 1.0, "step_count": 10}
"""The window of `samples.a_breakdown`: ten steps of 0.1 s."""

Fields = Any
"""The fields of the record that a builder makes."""


def a_mix(**fields: Fields) -> KernelMix:
    """The kernels of a healthy training step in bf16 on an A100: two thirds matrix products."""
    base: dict[str, Any] = {
        "source": TRACE,
        "device_index": 0,
        "device_name": "NVIDIA A100-SXM4-80GB",
        "capability": "8.0",
        **WINDOW,
        "kernel_count": 5_000,
        "device_seconds": 0.9,
        "median_kernel_seconds": 60e-6,
        "seconds": (("matmul", 0.6), ("attention", 0.12), ("elementwise", 0.1), ("copy", 0.08)),
        "counts": (("matmul", 2_000), ("attention", 400), ("elementwise", 2_000), ("copy", 600)),
        "tensor_core_seconds": 0.6,
        "fused_attention_count": 400,
    }
    return KernelMix(**(base | fields))


def a_launch_profile(**fields: Fields) -> LaunchProfile:
    """Launches that run well ahead of the device."""
    base: dict[str, Any] = {
        "source": TRACE,
        "device_index": 0,
        **WINDOW,
        "kernel_count": 5_000,
        "launch_count": 5_000,
        "median_kernel_seconds": 60e-6,
        "median_launch_seconds": 5e-6,
        "median_launch_interval_seconds": 9e-6,
        "median_queue_seconds": 12e-3,
        "starved_ratio": 0.02,
        "starved_seconds": 0.01,
        "short_gap_seconds": 0.01,
    }
    return LaunchProfile(**(base | fields))


def an_input_wait(**fields: Fields) -> InputWait:
    """A loader with workers that is always ahead."""
    base: dict[str, Any] = {
        "source": HOST,
        "loader": "_MultiProcessingDataLoaderIter",
        "is_single_process": False,
        "count": 10,
        "wait_seconds": 0.008,
        "exposed_seconds": 0.002,
        "longest_seconds": 0.001,
        **WINDOW,
    }
    return InputWait(**(base | fields))


def a_copy_group(**fields: Fields) -> CopyGroup:
    """Ten pinned copies of a batch to the device, hidden behind compute."""
    base: dict[str, Any] = {
        "name": "Memcpy HtoD (Pinned -> Device)",
        "direction": "HtoD",
        "is_pageable": False,
        "count": 10,
        "device_seconds": 0.03,
        "exposed_seconds": 0.001,
        "moved_bytes": 600_000_000,
        "largest_bytes": 60_000_000,
        "large_count": 10,
    }
    return CopyGroup(**(base | fields))


def a_copy_profile(*groups: CopyGroup) -> CopyProfile:
    """The copies of device 0."""
    return CopyProfile(source=TRACE, device_index=0, **WINDOW, groups=groups)


def a_synchronizations(**fields: Fields) -> Synchronizations:
    """A host that waits for nothing."""
    base: dict[str, Any] = {
        "source": HOST,
        **WINDOW,
        "count": 0,
        "host_seconds": 0.0,
        "exposed_seconds": 0.0,
    }
    return Synchronizations(**(base | fields))


def a_step_times(*durations_seconds: float, **fields: Fields) -> StepTimes:
    """Steps of these durations."""
    ordered = sorted(durations_seconds)
    base: dict[str, Any] = {
        "source": HOST,
        "marked_by": "ProfilerStep",
        "durations_seconds": durations_seconds,
        "median_seconds": ordered[len(ordered) // 2],
    }
    return StepTimes(**(base | fields))


def a_driver_allocations(**fields: Fields) -> DriverAllocations:
    """A cache that filled in the first step and never asked the driver again."""
    base: dict[str, Any] = {
        "source": HOST,
        **WINDOW,
        "alloc_count": 30,
        "free_count": 0,
        "seconds": 0.02,
        "steady_step_count": 9,
        "steady_alloc_count": 0,
        "steady_free_count": 0,
        "steady_seconds": 0.0,
    }
    return DriverAllocations(**(base | fields))


def an_optimizer(**fields: Fields) -> OptimizerSteps:
    """A fused AdamW: a handful of kernels a step."""
    base: dict[str, Any] = {
        "source": HOST,
        "name": "AdamW",
        "count": 10,
        "host_seconds": 0.02,
        "device_seconds": 0.04,
        "exposed_seconds": 0.0,
        "kernel_count": 60,
        "multi_tensor_count": 60,
        "fused_count": 60,
        **WINDOW,
    }
    return OptimizerSteps(**(base | fields))


def an_attention(**fields: Fields) -> AttentionMix:
    """Fused attention throughout."""
    base: dict[str, Any] = {
        "source": TRACE,
        "unfused_count": 0,
        "unfused_seconds": 0.0,
        "fused_count": 400,
        "math_count": 0,
        "scores_bytes": None,
        "device_seconds": 0.9,
    }
    return AttentionMix(**(base | fields))


def a_communication(**fields: Fields) -> Communication:
    """Collectives of eight ranks, hidden behind the backward pass."""
    base: dict[str, Any] = {
        "source": TRACE,
        "device_index": 0,
        "world_size": 8,
        **WINDOW,
        "device_seconds": 0.3,
        "exposed_seconds": 0.02,
        "groups": (),
    }
    return Communication(**(base | fields))


def a_decode(**fields: Fields) -> DecodeSigns:
    """A training step: nothing in it shows generation."""
    base: dict[str, Any] = {
        "source": TRACE,
        "mark": "",
        "sequence_count": None,
        "step_count": 0,
        "has_prefill": False,
        "paged_attention_count": 0,
        "vector_matmul_seconds": 0.0,
        "matmul_seconds": 0.6,
        "attention_seconds": 0.12,
        "device_seconds": 0.9,
    }
    return DecodeSigns(**(base | fields))


def operator_costs(**fields: Fields) -> OperatorCosts:
    """Operators of a step that reaches 45% of an A100's bf16 peak."""
    base: dict[str, Any] = {
        "source": TRACE,
        "is_device_time": True,
        "device_name": "A100 SXM 80GB",
        **WINDOW,
        "total_seconds": 0.9,
        "modelled_seconds": 0.8,
        "flops": 0.45 * 312e12,
        "operators": (),
        "matmuls": (a_product(flops=fields.get("flops", 0.45 * 312e12)),),
        "peak_flops": 312e12,
        "peak_dtype": "bf16",
        "peak_source": "the catalogue",
    }
    return OperatorCosts(**(base | fields))


def a_product(**fields: Fields) -> MatmulShape:
    """A large bf16 product of a training step, at 60% of an A100's peak."""
    base: dict[str, Any] = {
        "operator": "aten::mm",
        "batch_count": 1,
        "rows": 8192,
        "columns": 4096,
        "inner": 4096,
        "dtype": "bf16",
        "calls": 500,
        "device_seconds": 0.6,
        "flops": 0.45 * 312e12,
        "moved_bytes": 500 * 2.0 * (8192 * 4096 * 2 + 4096 * 4096),
        "attained_ratio": 0.6,
        "bound": Bound.COMPUTE,
    }
    return MatmulShape(**(base | fields))


def a_figure(value: float) -> Figure:
    """A verified figure of a catalogue."""
    return Figure(value=value, source="the vendor's datasheet", verified=True)


def a_ceiling(**fields: Fields) -> DeviceCeilings:
    """An A100 of 80 GB."""
    base: dict[str, Any] = {
        "source": Source(path="the hardware catalogue"),
        "name": "A100 SXM 80GB",
        "matched_name": "NVIDIA A100-SXM4-80GB",
        "vendor": "NVIDIA",
        "architecture": "Ampere",
        "capability": "8.0",
        "sm_count": 108,
        "memory_bytes": 80_000_000_000,
        "bandwidth": a_figure(2.039e12),
        "dense_peaks": {
            "fp32": a_figure(19.5e12),
            "tf32": a_figure(156e12),
            "fp16": a_figure(312e12),
            "bf16": a_figure(312e12),
        },
        "measured_peaks": {},
    }
    return DeviceCeilings(**(base | fields))


def a_table(*rows: OperatorRow, **fields: Fields) -> OperatorTable:
    """An operator table of these rows."""
    base: dict[str, Any] = {"source": TABLE, "rows": rows}
    return OperatorTable(**(base | fields))


def a_log_that_mentions(topic: str, text: str, line: int = 12, *, in_code: bool = False) -> LogText:
    """A log of 200 lines with one line of interest."""
    mention = Mention(topic=topic, line=line, text=text, in_code=in_code)
    return LogText(source=Source(path="train.log"), line_count=200, mentions=(mention,))
