"""Look at the trainer, its container and its host: a few small files of the kernel, a fraction of a millisecond."""

import os
import time
from typing import Any

from advisor.client.host_record import HostSample
from advisor.client.sidecar.control_groups import V1_CPU, V1_MEMORY, ControlGroup, group_of
from advisor.client.sidecar.watch import Watch

NO_LIMIT_BYTES = 1 << 60
"""Version 1 writes a number near 2^63 where there is no limit."""

TIGHT_RATIO = 0.8
TIGHT_BYTES = 4 * 1024**3
"""Of a control group's limit, and of the host: what a trainer with its workers may take in a few seconds."""

MOST_CHILDREN = 256
"""Children whose memory is looked at: workers of a loader are a few dozen."""


MOST_PAGES = 256
"""Pieces of a file of the kernel that are read; mount tables of container hosts are the longest."""


def text_of(path: str) -> str:
    """A file of the kernel; empty where it cannot be read."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return ""
    pieces: list[bytes] = []
    try:
        while len(pieces) < MOST_PAGES and (piece := os.read(descriptor, 1 << 16)):  # one reading gives a page or so
            pieces.append(piece)
        return b"".join(pieces).decode("utf-8", "replace")
    except OSError:
        return ""
    finally:
        os.close(descriptor)


def number_of(text: str) -> int | None:
    """The number that a text is; None for "max" and what is none."""
    word = text.strip()
    return int(word) if word.isdecimal() else None


def field_of(text: str, name: str) -> int | None:
    """The number behind a name at a line's begin ("oom_kill 3", "MemAvailable:  1024 kB")."""
    for line in text.splitlines():
        words = line.split()
        if len(words) > 1 and words[0] == name:
            return number_of(words[1])
    return None


def is_tight(sample: HostSample) -> bool:
    """Whether the group or the host may be out of memory soon."""
    used, limit, left = sample.group_bytes, sample.group_limit_bytes, sample.available_bytes
    return (used is not None and limit is not None and used > TIGHT_RATIO * limit) or (left is not None and left < TIGHT_BYTES)


class HostLook:
    """Looks at one trainer's surroundings."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._page_bytes, self._ticks = os.sysconf("SC_PAGE_SIZE"), os.sysconf("SC_CLK_TCK")
        groups, mounts = text_of(f"/proc/{watch.pid}/cgroup"), text_of("/proc/self/mountinfo")
        self.memory = group_of(V1_MEMORY, groups, mounts)
        self.cpu = group_of(V1_CPU, groups, mounts)

    def look(self) -> HostSample:
        """What there is now; of a dead trainer only what belongs to its group and host."""
        meminfo = text_of("/proc/meminfo")
        load = text_of("/proc/loadavg").split()
        return HostSample(
            time.monotonic_ns(),
            time.time_ns(),
            available_bytes=_kib(field_of(meminfo, "MemAvailable:")),
            swap_free_bytes=_kib(field_of(meminfo, "SwapFree:")),
            host_oom_kill_count=field_of(text_of("/proc/vmstat"), "oom_kill"),
            load=float(load[0]) if load else None,
            throttled_seconds=_throttled_seconds(self.cpu),
            **_pressures(),
            **_memory_of(self.memory),
            **self._trainer(),
        )

    def _trainer(self) -> dict[str, Any]:
        status = self._watch.status()
        if status is None or not status.resident_pages:
            return {}
        children = text_of(f"/proc/{self._watch.pid}/task/{self._watch.pid}/children").split()
        sizes = [text_of(f"/proc/{child}/statm").split() for child in children[:MOST_CHILDREN]]
        try:
            usable = len(os.sched_getaffinity(self._watch.pid))
        except OSError:
            usable = os.cpu_count() or 1
        return {
            "rss_bytes": status.resident_pages * self._page_bytes,
            "cpu_seconds": status.cpu_ticks / self._ticks,
            "thread_count": status.thread_count,
            "child_count": len(children),
            "child_rss_bytes": sum(int(size[1]) * self._page_bytes for size in sizes if len(size) > 1),
            "usable_cpu_count": usable,
        }


def _kib(number: int | None) -> int | None:
    return None if number is None else number * 1024


def _memory_of(group: ControlGroup | None) -> dict[str, Any]:
    """Use and limit of the group, or the one around it, that has the least room; kills in the group itself."""
    if group is None:
        return {}
    if group.version == 1:
        names = ("memory.usage_in_bytes", "memory.limit_in_bytes", "memory.max_usage_in_bytes", "memory.oom_control")
    else:
        names = ("memory.current", "memory.max", "memory.peak", "memory.events")
    use, limit, peak, events = names
    found: dict[str, Any] = {"group_oom_kill_count": field_of(text_of(f"{group.folders[0]}/{events}"), "oom_kill")}
    tightest: tuple[int, str, int, int] | None = None
    for folder in group.folders:
        most, used = number_of(text_of(f"{folder}/{limit}")), number_of(text_of(f"{folder}/{use}"))
        if most is not None and used is not None and most < NO_LIMIT_BYTES and (tightest is None or most - used < tightest[0]):
            tightest = most - used, folder, used, most
    if tightest is not None:
        _, folder, used, most = tightest
        found |= {"group_bytes": used, "group_limit_bytes": most, "group_peak_bytes": number_of(text_of(f"{folder}/{peak}"))}
    return found


def _throttled_seconds(group: ControlGroup | None) -> float | None:
    if group is None:
        return None
    text = text_of(f"{group.folders[0]}/cpu.stat")
    microseconds, nanoseconds = field_of(text, "throttled_usec"), field_of(text, "throttled_time")
    if microseconds is not None:
        return microseconds / 1e6
    return None if nanoseconds is None else nanoseconds / 1e9


def _pressures() -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in ("cpu", "memory", "io"):
        text = text_of(f"/proc/pressure/{name}")
        found[f"{name}_pressure_ratio"] = _average(text, "some")
        if name != "cpu":
            found[f"{name}_stall_ratio"] = _average(text, "full")
    return found


def _average(pressure: str, kind: str) -> float | None:
    """The share of the last ten seconds, from a line "some avg10=1.23 avg60=... total=..."."""
    for line in pressure.splitlines():
        if line.startswith(f"{kind} avg10="):
            try:
                return round(float(line.split()[1].partition("=")[2]) / 100, 4)
            except ValueError:
                return None
    return None
