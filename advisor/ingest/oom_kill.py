"""The kernel's OOM killer: a dump of many lines that ends in "Killed process".

One kill is one event.
"""

import re

from advisor.model.dataclass import dataclass
from advisor.model.node import KernelEvent, KernelEventKind

DUMP_LINES = 4000
"""How far below a cgroup's limit its kill may stand: the dump lists every task between them."""

TEXT_LIMIT = 400

_KIB = 1024

_KILLED = re.compile(r"Killed process (?P<pid>\d{1,10}),?\s{1,2}(?:UID \d{1,10},\s{1,2})?\((?P<name>[^)]{1,64})\)")
_OLD_KILL = re.compile(
    r"(?P<cgroup>Memory cgroup )?[Oo]ut of memory: Kill process (?P<pid>\d{1,10}) "
    r"\((?P<name>[^)]{1,64})\)"
)
_RSS = re.compile(r"(?:anon|file|shmem)-rss:(\d{1,15})kB")
_LIMIT = re.compile(r"^memory: usage \d{1,15}kB, limit (\d{1,15})kB")
_CONSTRAINT = re.compile(r"oom-kill:constraint=(?P<constraint>\w{1,40})")
_TASK = re.compile(r"task=(?P<name>[^,]{1,64}),pid=(?P<pid>\d{1,10})")
_INVOKED = re.compile(r"(?P<name>\S.{0,62}?) invoked oom-killer")
_AS_RESULT = re.compile(r"as a result of limit of (\S{1,200})")

_NO_LIMIT_KIB = 1 << 52
"""The kernel prints about 2**53 kB where a cgroup has no limit."""


def mentions_oom(message: str) -> bool:
    """Whether a kernel message belongs to an OOM kill."""
    return (
        "oom-kill" in message
        or "Killed process" in message
        or "Kill process" in message
        or "as a result of limit of" in message
        or message.startswith("memory: usage ")
    )


@dataclass
class OomDump:
    """Follows one dump: the call, the limit, the constraint, the kill."""

    _opened: KernelEvent | None = None
    _is_cgroup: bool = False
    _limit_bytes: int | None = None
    _seen_at: int = 0

    def take(self, message: str, number: int, stamp: str) -> list[KernelEvent]:
        """One line of a dump; the events that it completes."""
        begins_anew = "invoked oom-killer" in message and self._opened is not None
        is_far = number - self._seen_at > DUMP_LINES
        finished = self.close() if begins_anew or is_far else []
        self._seen_at = number
        killed = _KILLED.search(message)
        if killed is not None:
            return [*finished, self._kill(message, number, stamp, killed)]
        self._note(message, number, stamp)
        return finished

    def close(self) -> list[KernelEvent]:
        """What an unfinished dump tells."""
        opened, is_cgroup, limit = self._opened, self._is_cgroup, self._limit_bytes
        self._opened, self._is_cgroup, self._limit_bytes = None, False, None
        if opened is None:
            return []
        return [
            KernelEvent(
                kind=KernelEventKind.CGROUP_OOM if is_cgroup else KernelEventKind.OOM_KILL,
                line=opened.line,
                text=opened.text,
                timestamp=opened.timestamp,
                pid=opened.pid,
                process=opened.process,
                limit_bytes=limit,
            )
        ]

    def _kill(self, message: str, number: int, stamp: str, killed: "re.Match[str]") -> KernelEvent:
        is_cgroup = self._is_cgroup or "Memory cgroup" in message
        rss = [int(kib) for kib in _RSS.findall(message)]
        event = KernelEvent(
            kind=KernelEventKind.CGROUP_OOM if is_cgroup else KernelEventKind.OOM_KILL,
            line=number,
            text=message[:TEXT_LIMIT],
            timestamp=stamp,
            pid=int(killed.group("pid")),
            process=killed.group("name"),
            rss_bytes=sum(rss) * _KIB if rss else None,
            limit_bytes=self._limit_bytes if is_cgroup else None,
        )
        self._opened, self._is_cgroup, self._limit_bytes = None, False, None
        return event

    def _note(self, message: str, number: int, stamp: str) -> None:
        limit, old, constraint = (
            _LIMIT.match(message),
            _OLD_KILL.search(message),
            _CONSTRAINT.search(message),
        )
        task, invoked = _TASK.search(message), _INVOKED.search(message[:200])
        if limit is not None:
            kib = int(limit.group(1))
            self._limit_bytes = kib * _KIB if kib < _NO_LIMIT_KIB else None
            return
        if constraint is not None:
            self._is_cgroup = constraint.group("constraint") == "CONSTRAINT_MEMCG"
        if (old is not None and old.group("cgroup")) or _AS_RESULT.search(message):
            self._is_cgroup = True
        named = old or task
        if named is None and invoked is None:
            return
        self._opened = KernelEvent(
            kind=KernelEventKind.OOM_KILL,
            line=number,
            text=message[:TEXT_LIMIT],
            timestamp=stamp,
            pid=int(named.group("pid")) if named else None,
            process=named.group("name") if named else None,  # the one that asked need not be the one that dies
        )
