"""Kernel messages that matter to a GPU job: dmesg, journalctl, syslog, pstore dumps."""

import re
from collections import Counter
from collections.abc import Iterator

from advisor.ingest.oom_kill import OomDump, mentions_oom
from advisor.model.dataclass import dataclass, field
from advisor.model.evidence import Source
from advisor.model.node import KernelEvent, KernelEventKind, KernelLog

LINE_BYTES = 4000
"""The kernel cuts its own messages at about 1,000 bytes; longer lines are cut."""

EVENT_LIMIT = 200
ALIKE_LIMIT = 8
"""Events kept of one kind, Xid, device and process: a faulting kernel prints hundreds, and they
must not push out the others."""

KEY_LIMIT = 4096
"""Different events that are told apart; a hostile log may name millions of processes."""

TEXT_LIMIT = 400

_LEVEL = r"(?:<\d{1,3}>)?(?:[a-z]{2,8}\s{0,4}:[a-z]{2,7}\s{0,4}:\s{1,2})?"
_STAMPS = (
    r"\[[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4}\]",
    r"\[\s{0,8}\d{1,9}\.\d{3,9}\]",
    r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?",
    r"[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d(?:\.\d{1,6})?",
)
_PREFIX = re.compile(
    rf"{_LEVEL}(?P<stamp>{'|'.join(_STAMPS)})\s{{0,4}}(?:(?P<host>\S{{1,80}}) kernel: "
    rf")?(?:\[\s{{0,8}}\d{{1,9}}\.\d{{3,9}}\]\s)?"
)
_KERNEL_LINE = re.compile(
    rb"(?m)^(?:<\d{1,3}>\[\s{0,8}\d{1,9}\.\d{3,9}\] "
    rb"|\[\s{0,8}\d{1,9}\.\d{6}\] "
    rb"|\[[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4}\] "
    rb"|(?:kern|user|daemon|syslog)\s{0,4}:(?:emerg|alert|crit|err|warn|notice|info|debug)\s{0,4}: "
    rb"|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d,\d{6}[+-]\d\d:\d\d "
    rb"|(?:[A-Z][a-z]{2} [ \d]\d|\d{4}-\d\d-\d\dT)[ \d:.,+-]{8,30} \S{1,80} kernel: )"
)
_TELLING = (b"NVRM: Xid (", b"Killed process ", b"invoked oom-killer", b"oom-kill:constraint=")
"""Words of the kernel alone: a log that has them has kernel messages pasted in."""

_HEAD_BYTES = 64 * 1024
"""How much of a text decides whether it is a kernel log from its first line on."""

_KEYWORDS = (
    *(b"Xid", b"oom-kill", b"Killed process", b"Kill process", b"as a result of limit of"),
    *(b"memory: usage", b"AER:", b"PCIe", b"pciehp", b"NVLink", b"nvlink", b"NVLINK"),
    *(
        b"fallen off the bus",
        b"RmInitAdapter",
        b"segfault at",
        b"general protection",
        b"retraining",
    ),
)
"""A line without any of them is not looked at; found by search, so that other lines cost
nothing."""

_BLOCK_BYTES = 1 << 20

_CANDIDATE_LIMIT = 60_000
"""Lines with a keyword that are read; a month of a faulting card prints fewer."""

_XID = re.compile(
    r"NVRM: (?:GPU at )?Xid \((?P<device>[^)]{1,80})\): (?P<xid>\d{1,4})(?:, "
    r"pid='?(?P<pid>\d{1,10}|<unknown>)'?)?"
    r"(?:, name=(?P<name>[^,]{1,80}))?"
)
_SXID = re.compile(r"SXid \((?P<device>[^)]{1,80})\): (?P<sxid>\d{1,6})")
_BUS = re.compile(r"(?<![0-9A-Fa-f:.])((?:[0-9A-Fa-f]{4,8}:)?[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}(?:\.[0-9A-Fa-f])?)(?![0-9A-Fa-f:])")
_AER = re.compile(r"AER: .{0,60}error|PCIe Bus Error: severity=", re.IGNORECASE)
_LINK = re.compile(
    r"limited by .{1,40} x\d{1,2} link|pciehp: .{0,60}(?:Link Down|Card not present)|retraining "
    r"non-functional",
    re.IGNORECASE,
)
_NVLINK_FAULT = re.compile(r"error|fail|link down|inactive|degrad|fatal|timed? ?out|\blost\b", re.IGNORECASE)
_LOST = re.compile(r"fallen off the bus|RmInitAdapter failed")
_FAULT = re.compile(
    r"(?:traps: )?(?P<name>\S[^\[\]]{0,40})\[(?P<pid>\d{1,10})\][: ].{0,4}(?:segfault at|general "
    r"protection)"
)


def looks_like_kernel_log(head: bytes) -> bool:
    """Whether a text is a kernel log, or a text with kernel messages pasted in."""
    start = head[:_HEAD_BYTES]
    lines = max(1, start.count(b"\n"))
    stamped = sum(1 for _ in _KERNEL_LINE.finditer(start))
    return stamped >= max(1, lines // 2) or any(words in head for words in _TELLING)


def read_kernel_log(text: bytes, path: str) -> KernelLog | None:
    """Read the messages that matter; None where the text is no kernel log and holds none of them.

    A kernel log without any such message is evidence too: it has no events.
    """
    found = _Found()
    gaps: list[str] = []
    for taken, (number, line) in enumerate(_candidates(text)):
        if taken >= _CANDIDATE_LIMIT:
            gaps.append(f"only messages before line {number:,} are read: the log has too many")
            break
        found.take(line[:LINE_BYTES].decode("utf-8", "replace").rstrip(), number)
    found.close()
    if not found.counts and not looks_like_kernel_log(text[:_HEAD_BYTES]):
        return None
    left_out = sum(found.counts[kind.value] for kind in KernelEventKind) - len(found.events)
    if left_out:
        gaps.append(f"{left_out:,} events like those kept are only counted")
    return KernelLog(
        source=Source(path=path),
        gaps=tuple(gaps),
        events=tuple(found.events),
        line_count=text.count(b"\n") + (not text.endswith(b"\n") and bool(text)),
        counts=dict(found.counts),
    )


def _candidates(text: bytes) -> Iterator[tuple[int, bytes]]:
    """Lines with a keyword, with their numbers from 1.

    Block by block, so that memory stays small.
    """
    number, start = 1, 0
    while start < len(text):
        end = text.rfind(b"\n", start, start + _BLOCK_BYTES) + 1
        if end <= start or start + _BLOCK_BYTES >= len(text):
            following = text.find(b"\n", start + _BLOCK_BYTES) + 1
            end = len(text) if start + _BLOCK_BYTES >= len(text) or not following else following
        counted = start
        for place in sorted(_line_starts(text, start, end)):
            number += text.count(b"\n", counted, place)
            counted = place
            line_end = text.find(b"\n", place, end)
            yield number, text[place : end if line_end < 0 else line_end]
        number += text.count(b"\n", counted, end)
        start = end


def _line_starts(text: bytes, start: int, end: int) -> set[int]:
    """Where the lines of a block begin that hold a keyword."""
    starts: set[int] = set()
    for keyword in _KEYWORDS:
        place = text.find(keyword, start, end)
        while place >= 0:
            starts.add(text.rfind(b"\n", start, place) + 1 or start)
            newline = text.find(b"\n", place, end)
            if newline < 0:
                break
            place = text.find(keyword, newline, end)
    return starts


@dataclass
class _Found:
    events: list[KernelEvent] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    _alike: Counter[tuple[object, ...]] = field(default_factory=Counter)
    _dump: OomDump = field(default_factory=OomDump)

    def take(self, line: str, number: int) -> None:
        """One line with a keyword in it."""
        prefix = _PREFIX.match(line)
        stamp = prefix.group("stamp").strip("[]").strip() if prefix else ""
        message = line[prefix.end() :] if prefix else line
        if mentions_oom(message):
            for event in self._dump.take(message.strip(), number, stamp):
                self._add(event)
            return
        found = _event(message.strip(), number, stamp)
        if found is not None:
            self._add(found)

    def close(self) -> None:
        """The end of the log: an OOM dump without its last line still tells of a kill."""
        for event in self._dump.close():
            self._add(event)

    def _add(self, event: KernelEvent) -> None:
        self.counts[event.kind.value] += 1
        if event.xid is not None:
            self.counts[f"xid {event.xid}"] += 1
        key = (event.kind, event.xid, event.bus_id, event.pid)
        if len(self.events) >= EVENT_LIMIT or self._alike[key] >= ALIKE_LIMIT:
            return
        if key in self._alike or len(self._alike) < KEY_LIMIT:
            self._alike[key] += 1
            self.events.append(event)


def _event(message: str, number: int, stamp: str) -> KernelEvent | None:
    xid = _XID.search(message)
    if xid is not None:
        pid, name = xid.group("pid"), (xid.group("name") or "").strip(" '")
        return KernelEvent(
            kind=KernelEventKind.XID,
            line=number,
            text=message[:TEXT_LIMIT],
            timestamp=stamp,
            xid=int(xid.group("xid")),
            bus_id=_bus(xid.group("device")),
            pid=int(pid) if pid and pid.isdigit() else None,
            process=name if name and name != "<unknown>" else None,
        )
    kind = _kind(message)
    if kind is None:
        return None
    fault = _FAULT.search(message[:200]) if kind is KernelEventKind.SEGFAULT else None
    return KernelEvent(
        kind=kind,
        line=number,
        text=message[:TEXT_LIMIT],
        timestamp=stamp,
        bus_id=_bus(message[:200]),
        pid=int(fault.group("pid")) if fault else None,
        process=fault.group("name").strip() if fault else None,
    )


def _kind(message: str) -> KernelEventKind | None:  # noqa: PLR0911 - one return a kind reads best
    """The kind of a message that is no Xid and no OOM kill.

    None for what only sounds like trouble.
    """
    if _LOST.search(message):
        return KernelEventKind.GPU_LOST
    if _SXID.search(message):
        return KernelEventKind.NVLINK
    if "nvlink" in message.lower() and ("NVRM" in message or "nvidia-nv" in message):  # NCCL's own lines say NVLink too
        return KernelEventKind.NVLINK if _NVLINK_FAULT.search(message) else None
    if _AER.search(message):
        return KernelEventKind.PCIE_ERROR
    if _LINK.search(message):
        return KernelEventKind.PCIE_LINK
    if "segfault at" in message or "general protection" in message:
        return KernelEventKind.SEGFAULT
    return None


def _bus(text: str) -> str | None:
    found = _BUS.search(text.replace("PCI:", " "))
    return found.group(1).lower() if found is not None else None
