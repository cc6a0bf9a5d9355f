"""What the host and the trainer's container looked like during a run: the lines of the file `host`, one JSON object each.

The sidecar adds a line every few seconds. The file is bounded: when it is full, every second line of its older half is dropped, so that
the last minutes are dense and the first hours still there. A field that could not be read is left out of its line.
"""

import json
from typing import NamedTuple

HOST = "host"
"""Name of the file in the folder of a rank."""


class HostSample(NamedTuple):
    """One look at the trainer, its container and its host; None is what could not be read.

    Attributes:
        nanoseconds: of the monotonic clock, as in the ring.
        wall_nanoseconds: since 1970.
        rss_bytes: the trainer's resident memory.
        cpu_seconds: processor time of the trainer since its start, all its threads, without its children.
        thread_count: of the trainer.
        child_count: processes the trainer's main thread started and that live (workers of loaders).
        child_rss_bytes: their resident memory, summed; pages shared since a fork count in each, so this is an upper bound.
        usable_cpu_count: processors the trainer's main thread may run on.
        group_bytes / group_limit_bytes: memory of the control group that has the least room, and its limit; None without a limit.
        group_peak_bytes: the most that group ever used, where the kernel keeps it.
        group_oom_kill_count: processes the kernel killed for want of memory in the trainer's own control group, ever.
        host_oom_kill_count: the same in the whole system, since its boot.
        available_bytes: memory the kernel thinks it can give (MemAvailable).
        swap_free_bytes: of the host.
        throttled_seconds: time the control group's processes were held back by its limit of processor time, ever.
        cpu_pressure_ratio / memory_pressure_ratio / io_pressure_ratio: share of the last ten seconds in which some task of the system
            waited for it (PSI, "some avg10").
        memory_stall_ratio / io_stall_ratio: the same for all tasks at once ("full avg10").
        load: runnable and blocked tasks of the host, averaged over a minute.
    """

    nanoseconds: int
    wall_nanoseconds: int
    rss_bytes: int | None = None
    cpu_seconds: float | None = None
    thread_count: int | None = None
    child_count: int | None = None
    child_rss_bytes: int | None = None
    usable_cpu_count: int | None = None
    group_bytes: int | None = None
    group_limit_bytes: int | None = None
    group_peak_bytes: int | None = None
    group_oom_kill_count: int | None = None
    host_oom_kill_count: int | None = None
    available_bytes: int | None = None
    swap_free_bytes: int | None = None
    throttled_seconds: float | None = None
    cpu_pressure_ratio: float | None = None
    memory_pressure_ratio: float | None = None
    io_pressure_ratio: float | None = None
    memory_stall_ratio: float | None = None
    io_stall_ratio: float | None = None
    load: float | None = None


def line_of(sample: HostSample) -> bytes:
    """The sample as a line of the file."""
    known = {name: value for name, value in sample._asdict().items() if value is not None}
    return json.dumps(known, separators=(",", ":"), allow_nan=False).encode() + b"\n"


def read_host(data: bytes) -> tuple[HostSample, ...]:
    """The samples of a file, oldest first; lines that are none (torn by a kill, of another version) are left out."""
    found = []
    for line in data.split(b"\n"):
        try:
            values = json.loads(line)
            sample = HostSample(**{name: value for name, value in values.items() if name in HostSample._fields})
        except (ValueError, TypeError, AttributeError, RecursionError):
            continue
        if all(value is None or (isinstance(value, int | float) and not isinstance(value, bool)) for value in sample):
            found.append(sample)
    return tuple(found)
