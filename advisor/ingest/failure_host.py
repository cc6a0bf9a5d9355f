"""Host memory: Python's and numpy's refusals, PyTorch's CPU allocator, the kernel's OOM killer, and those who report its kills.

A process that the kernel kills prints nothing. What is left is the kernel's line, Slurm's or Kubernetes' word for it, an exit code
137 or -9, or the shell's bare "Killed"; the last three say SIGKILL, and only usually memory: `generation` keeps them apart.
"""

import re

from advisor.ingest.byte_sizes import SIZE, byte_size
from advisor.ingest.failure_message import FailureText, Figures, Recognizer, first_integer
from advisor.ingest.lazy_pattern import LazyPattern
from advisor.model.failure import FailureKind, ProcessMemory

_NUMPY = LazyPattern(
    rf"Unable to allocate (?:array with shape[^\n]{{0,160}}?|"
    rf"{SIZE} for an array with shape (\([\d, L]{{0,160}}\))(?: and data type (\S{{1,24}}))?)"
)
_CPU_ALLOCATOR = LazyPattern(
    r"(?:DefaultCPUAllocator: (?:can't allocate memory|not enough memory)|Buy new RAM|\$ Torch: not enough memory)[^\n]{0,12}?"
)
_CPU_ERROR = LazyPattern(r"Error code 12 \(Cannot allocate memory\)")
_CPU_REQUEST = LazyPattern(r"you tried to allocate (\d{1,20}) ?(bytes|GB|MB|GiB|MiB)")
_MEMORY_ERROR = LazyPattern(r"(?:^|[\s.])(?:_Array)?MemoryError\b(?!\()(?::|\s*$)", re.MULTILINE)
_CANNOT = LazyPattern(
    r"\[Errno 12\] Cannot allocate memory|[Cc]annot allocate memory(?: \(12\))?|(?:error|"
    r"Error) ?(?:code )?12\b[^\n]{0,40}[Cc]annot allocate|ENOMEM\b|"
    r"\[WinError 1455\]|paging file is too small for this operation"
)
_BAD_ALLOC = LazyPattern(r"std::bad_alloc\b")

_KERNEL_KILL = LazyPattern(
    r"(?P<cgroup>[Mm]emory cgroup )?[Oo]ut of memory:? (?:\(oom_kill_allocating_task\): )?Kill(?:ed)? process (?P<pid>\d{1,9})"
    r" \((?P<name>[^)\n]{1,40})\)"
)
_KERNEL_KILLED = LazyPattern(r"Killed process (?P<pid>\d{1,9})(?:, UID \d{1,9},)? \((?P<name>[^)\n]{1,40})\)")
_RSS = LazyPattern(r"(?:anon|file|shmem)-rss:(\d{1,15})kB")
_CGROUP_LIMIT = LazyPattern(r"memory: usage (\d{1,15})kB, limit (\d{1,15})kB")
_INVOKED = LazyPattern(r"\binvoked oom-killer\b|oom-kill:constraint=CONSTRAINT_(?:MEMCG|NONE)|\boom_reaper: reaped process")
_SLURM = LazyPattern(r"Detected (\d{1,7}) oom[-_]kill event\(?s?\)? in|Exceeded (?:job|step) memory limit|slurmstepd[^\n]{0,80}oom-kill")
_SRUN = LazyPattern(r"srun: error: [\w.\-]{1,80}: tasks? (\d{1,7})[^\n:]{0,80}: Out Of Memory")
_KUBERNETES = LazyPattern(r"\bOOMKilled\b(?!\W{1,3}(?:false|False))|exited? with (?:code|status):? 137\b[^\n]{0,40}OOM")
_RAY = LazyPattern(r"running low on memory|Workers \(tasks / actors\) killed due to memory pressure|exit_type = NODE_OUT_OF_MEMORY")
_RAY_USED = LazyPattern(rf"running was {SIZE} / {SIZE}")
_WORKER = LazyPattern(r"DataLoader worker \(pid(?:\(s\))? ([\d, ]{1,120})\) (?:is killed by signal: Killed|exited unexpectedly)")
_OLLAMA = LazyPattern(rf"requires more system memory \({SIZE}\) than is available \({SIZE}\)")

_SIGKILL = LazyPattern(
    r"Signal 9 \(SIGKILL\)|Signals\.SIGKILL|exit_?code {0,4}: ?-9\b|exit ?(?:code|status):? (?:137|-9)\b|"
    r"with (?:exit )?code:? (?:137|-9)\b|"
    r"non-zero exit status (?:137|-9)\b|\bExit Code:? 137\b|exitcode[=:] ?(?:137|-9)\b|return(?: ?code)?[ =:]{1,3}(?:137|-9)\b|"
    r"signal: 9, SIGKILL|\bSIGKILL\b",
    re.IGNORECASE,
)
_BARE = LazyPattern(
    r"^\s{0,8}(?:[\w./\-]{1,160}: line \d{1,7}:\s{1,4}\d{1,9} |(?:zsh|bash|sh): |"
    r"\[\d{1,4}\][+\- ]{1,6}(?:\d{1,9} )?)?[Kk]illed(?:\s{2,40}\S[^\n]{0,300}| {1,2}python[^\n]{0,300})?\s{0,8}$"
)
_TORCHRUN_RANK = LazyPattern(r"\brank {0,9}: (\d{1,7}) \(local_rank")


def recognize(text: str) -> FailureText | None:
    """Host memory that was refused, or a process that was killed for it."""
    for reading in (_kernel, _reported, _refused, _killed):
        found = reading(text)
        if found is not None:
            return found
    return None


def _host(generation: str, end: int, detail: str = "", figures: Figures | None = None) -> FailureText:
    return FailureText(
        kind=FailureKind.HOST_OUT_OF_MEMORY,
        backend="host",
        generation=generation,
        figures=figures.found if figures else {},
        resolution_bytes=figures.resolution_bytes if figures else None,
        detail=detail[:240],
        end=max(end, figures.end if figures else 0),
    )


def _kernel(text: str) -> FailureText | None:
    first_line = text.split("\n", 1)[0]
    match = _KERNEL_KILL.search(first_line) or _KERNEL_KILLED.search(first_line)
    if match is not None:
        resident = [int(found) for found in _RSS.findall(first_line)]
        victim = ProcessMemory(
            pid=int(match["pid"]),
            used_bytes=sum(resident) * 1024 if resident else None,
            name=match["name"],
        )
        is_cgroup = bool(match.groupdict().get("cgroup"))
        return FailureText(
            kind=FailureKind.HOST_OUT_OF_MEMORY,
            backend="host",
            generation="cgroup OOM killer" if is_cgroup else "OOM killer",
            processes=(victim,),
            resolution_bytes=512 * len(resident) if resident else None,
            detail=f"{'cgroup' if is_cgroup else 'kernel'} killed {match['name']}",
            end=match.end(),
        )
    limit = _CGROUP_LIMIT.search(first_line)
    if limit is not None:
        figures = Figures(first_line)
        for name, group in (("allocated_bytes", 1), ("allowed_bytes", 2)):
            size = byte_size(limit[group], "kB")
            if size is not None:
                figures.note(name, size)
        return _host("cgroup limit", limit.end(), "usage against the cgroup's limit", figures)
    invoked = _INVOKED.search(first_line)
    return _host("OOM killer", invoked.end(), invoked[0]) if invoked else None


def _reported(text: str) -> FailureText | None:
    """Kills as schedulers and libraries report them."""
    first_line = text.split("\n", 1)[0]
    slurm = _SLURM.search(first_line)
    if slurm is not None:
        return _host("Slurm", slurm.end(), slurm[0])
    task = _SRUN.search(first_line)
    if task is not None:
        found = _host("Slurm", task.end(), task[0])
        return FailureText(
            kind=found.kind, backend=found.backend, generation=found.generation, detail=found.detail, end=found.end,
            hint_rank=int(task[1]),
        )  # fmt: skip
    pod = _KUBERNETES.search(first_line)
    if pod is not None:
        return _host("Kubernetes", pod.end(), pod[0])
    node = _RAY.search(first_line)
    if node is not None:
        figures = Figures(text)
        used = _RAY_USED.search(text)
        if used is not None:
            for name, group in (("allocated_bytes", 1), ("total_bytes", 3)):
                size = byte_size(used[group], used[group + 1])
                if size is not None:
                    figures.note(name, size)
            figures.end = used.end()
        return _host(
            "Ray memory monitor",
            node.end(),
            "Ray killed a worker because its node ran low on memory",
            figures,
        )
    worker = _WORKER.search(first_line)
    if worker is not None:
        generation = "DataLoader worker killed" if "Killed" in worker[0] else "DataLoader worker exited"
        return _host(generation, worker.end(), worker[0])
    return None


def _refused(text: str) -> FailureText | None:
    """Allocations that failed with a message."""
    figures = Figures(text)
    array = _NUMPY.search(text)
    if array is not None:
        if array[1] and (size := byte_size(array[1], array[2])):
            figures.note("requested_bytes", size)
        shape = f"shape {array[3]} of {array[4] or 'unknown type'}" if array[3] else "an array"
        return _host("numpy", array.end(), shape, figures)
    allocator = _CPU_ALLOCATOR.search(text)
    if allocator is not None:
        figures.clause("requested_bytes", _CPU_REQUEST)
        code = _CPU_ERROR.search(text, allocator.end())
        end = max(allocator.end(), code.end() if code else 0)
        return _host("DefaultCPUAllocator", end, "PyTorch's CPU allocator", figures)
    model = _OLLAMA.search(text)
    if model is not None:
        for name, group in (("requested_bytes", 1), ("free_bytes", 3)):
            size = byte_size(model[group], model[group + 1])
            if size is not None:
                figures.note(name, size)
        return _host("Ollama", model.end(), "the model against the system's memory", figures)
    first_line = text.split("\n", 1)[0]
    for pattern, generation in (
        (_CANNOT, "errno 12"),
        (_BAD_ALLOC, "std::bad_alloc"),
        (_MEMORY_ERROR, "MemoryError"),
    ):
        match = pattern.search(first_line)
        if match is not None:
            return _host(generation, match.end(), match[0].strip(" .:\n"))
    return None


def _killed(text: str) -> FailureText | None:
    """SIGKILL, by whoever sent it."""
    first_line = text.split("\n", 1)[0]
    bare = _BARE.match(first_line)
    if bare is not None:
        return _host("Killed", bare.end(), first_line.strip())
    match = _SIGKILL.search(first_line)
    if match is None:
        return None
    return FailureText(
        kind=FailureKind.HOST_OUT_OF_MEMORY,
        backend="host",
        generation="SIGKILL",
        detail=match[0],
        end=match.end(),
        hint_rank=first_integer(_TORCHRUN_RANK, text),
    )


HOST = Recognizer(
    (
        b"unable to allocate",
        b"defaultcpuallocator",
        b"buy new ram",
        b"memoryerror",
        b"annot allocate memory",
        b"enomem",
        b"winerror 1455",
        b"paging file is too small",
        b"bad_alloc",
        b"out of memory",
        b"killed process",
        b"invoked oom-killer",
        b"oom-kill",
        b"oom_kill",
        b"oom_reaper",
        b"memory: usage",
        b"memory limit",
        b"oomkilled",
        b"running low on memory",
        b"memory pressure",
        b"node_out_of_memory",
        b"dataloader worker",
        b"more system memory",
        b"sigkill",
        b"code 137",
        b"code: 137",
        b"code:137",
        b"status 137",
        b"status: 137",
        b"code=137",
        b"code = 137",
        b": -9",
        b"code -9",
        b"status -9",
        b"code=-9",
        b"killed",
    ),
    recognize,
)
