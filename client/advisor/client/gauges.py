"""What is read beside the phases: the process's times and memory, the compiler's and the allocator's counters."""

import os
import resource
import sys
import time
from collections.abc import Callable
from typing import Any

from advisor.client.timeline import Gauges

READ_EVERY_NANOSECONDS = 250_000_000
"""Between two readings of what costs more than a microsecond: all of them together take about 0.2 ms."""

ANOMALY_MODE, PROFILER_RUNNING, GPU, DETERMINISTIC = 1, 2, 16, 32


class GaugeReader:
    """Reads the gauges of this process; all but the processor time are read four times a second and kept."""

    def __init__(self) -> None:
        self._read_at = 0
        self._cpu_seconds = time.process_time()
        self._switch_count = resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw
        self._page_bytes = os.sysconf("SC_PAGE_SIZE")
        self._flags, self._kept = 0, Gauges()[2:]

    def __call__(self, now: int) -> tuple[float, ...]:
        """The gauges in the order of Gauges; involuntary context switches are those since the last reading, given once."""
        cpu_seconds = time.process_time()
        since, self._cpu_seconds = cpu_seconds - self._cpu_seconds, cpu_seconds
        if now - self._read_at < READ_EVERY_NANOSECONDS:
            return (self._flags, since, *self._kept)
        self._read_at = now
        switches = resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw
        new_switches, self._switch_count = switches - self._switch_count, switches
        read = Gauges(**{**_compiler_counts(), **_device_memory()}, rss_bytes=self._resident_bytes(), flags=_switches())
        self._flags, self._kept = read.flags, read[2:]
        return (*read[:1], since, *read[2:-1], new_switches)

    def _resident_bytes(self) -> int:
        try:
            with open("/proc/self/statm", "rb") as file:  # noqa: PTH123 - pathlib costs more than the reading
                return int(file.read().split()[1]) * self._page_bytes
        except (OSError, ValueError, IndexError):
            return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _compiler_counts() -> dict[str, int]:
    """Graphs compiled and broken so far, where torch.compile is in use."""
    counters = getattr(sys.modules.get("torch._dynamo.utils"), "counters", None)
    if not counters:
        return {}
    return {
        "recompilation_count": int(counters["stats"].get("unique_graphs", 0)),
        "graph_break_count": sum(counters["graph_break"].values()),
    }


def _device_memory() -> dict[str, int]:
    """The caching allocator's figures of the current device, where CUDA is initialized already."""
    cuda = getattr(sys.modules.get("torch"), "cuda", None)
    if cuda is None or not cuda.is_initialized():
        return {}
    figures = cuda.memory_stats()
    return {
        "allocated_bytes": figures.get("allocated_bytes.all.current", 0),
        "allocated_peak_bytes": figures.get("allocated_bytes.all.peak", 0),
        "reserved_peak_bytes": figures.get("reserved_bytes.all.peak", 0),
        "retry_count": figures.get("num_alloc_retries", 0),
        "refused_count": figures.get("num_ooms", 0),
    }


def _switches() -> int:
    """Which costly modes are on."""
    torch = sys.modules.get("torch")
    if torch is None:
        return 0
    known: tuple[tuple[int, Callable[[], Any] | None], ...] = (
        (ANOMALY_MODE, getattr(torch, "is_anomaly_enabled", None)),
        (PROFILER_RUNNING, getattr(torch.autograd, "_profiler_enabled", None)),
        (DETERMINISTIC, getattr(torch, "are_deterministic_algorithms_enabled", None)),
        (GPU, getattr(torch.cuda, "is_initialized", None)),
    )
    return sum(bit for bit, is_on in known if is_on is not None and is_on())
