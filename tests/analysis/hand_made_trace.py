"""Small traces, event by event, read by the reader that real ones go through."""

import io
import json

from advisor.ingest.kineto import read_kineto
from advisor.model.step_time import PARTS, Bound, StepBreakdown
from advisor.model.trace import KinetoTrace

HOST = 1
"""The host's thread that runs the loop."""

A100 = {
    "id": 0,
    "name": "NVIDIA A100-SXM4-80GB",
    "computeMajor": 8,
    "computeMinor": 0,
    "totalGlobalMem": 85_000_000_000,
}


class HandMadeTrace:
    """Times in microseconds; a launch and its kernel are one call."""

    def __init__(self, *, device: dict | None = A100) -> None:
        self.events = []
        self.devices = [device] if device else []
        self.correlation = 0

    def event(self, category, name, start, duration, *, pid=100, tid=HOST, **arguments):  # noqa: PLR0913 - an event's own keys
        self.events.append(
            {
                "ph": "X",
                "cat": category,
                "name": name,
                "pid": pid,
                "tid": tid,
                "ts": start,
                "dur": duration,
                "args": arguments,
            }
        )
        return self

    def step(self, number, start, duration):
        return self.event("user_annotation", f"ProfilerStep#{number}", start, duration)

    def annotation(self, name, start, duration):
        return self.event("user_annotation", name, start, duration)

    def operator(self, name, start, duration, *, external_id=None, dims=None, types=None, **more):  # noqa: PLR0913 - an event's own keys
        arguments = {} if external_id is None else {"External id": external_id}
        if dims is not None:
            arguments |= {"Input Dims": dims, "Input type": types, **more.pop("arguments", {})}
        return self.event("cpu_op", name, start, duration, **more, **arguments)

    def call(self, name, start, duration, *, external_id=None, tid=HOST):
        self.correlation += 1
        arguments = {} if external_id is None else {"External id": external_id}
        return self.event("cuda_runtime", name, start, duration, tid=tid, correlation=self.correlation, **arguments)

    def kernel(  # noqa: PLR0913 - an event's own keys
        self,
        name,
        start,
        duration,
        *,
        launched=None,
        launch_name="cudaLaunchKernel",
        launch_duration=5,
        external_id=None,
        category="kernel",
        stream=7,
        tid=HOST,
        **arguments,
    ):
        """A kernel, launched (10 µs earlier by default) by a call of its own; launched=False for none."""
        if launched is not False:
            at = start - 10 if launched is None else launched
            self.call(launch_name, at, launch_duration, external_id=external_id, tid=tid)
        else:
            self.correlation += 1
        return self.event(
            category,
            name,
            start,
            duration,
            pid=0,
            tid=stream,
            device=0,
            stream=stream,
            correlation=self.correlation,
            **({} if external_id is None else {"External id": external_id}),
            **arguments,
        )

    def graph(self, start, kernels):
        """One replay that issues several kernels: (name, start, duration) each."""
        self.call("cudaGraphLaunch", start, 20)
        for name, begun, duration in kernels:
            self.event(
                "kernel",
                name,
                begun,
                duration,
                pid=0,
                tid=7,
                device=0,
                stream=7,
                correlation=self.correlation,
            )
        return self

    def copy(self, name, start, duration, size, **more):
        return self.kernel(
            name,
            start,
            duration,
            launch_name="cudaMemcpyAsync",
            category="gpu_memcpy",
            bytes=size,
            **more,
        )

    def read(self) -> KinetoTrace:
        document = {"deviceProperties": self.devices, "traceEvents": self.events}
        return read_kineto(io.BytesIO(json.dumps(document).encode()), "trace.json")


def a_breakdown_of(trace: KinetoTrace, *, window_seconds=1e-3, step_count=2) -> StepBreakdown:
    """What the measures need of a breakdown: the device, the window and the steps."""
    devices = trace.active_devices()
    return StepBreakdown(
        source=trace.source,
        device_index=devices[0] if devices else None,
        window_seconds=window_seconds,
        step_count=step_count,
        step_seconds=window_seconds / step_count if step_count else None,
        busy_ratio=None,
        parts=dict.fromkeys(PARTS, 0.0),
        seconds=dict.fromkeys(PARTS, 0.0),
        bound=Bound.UNKNOWN,
    )
