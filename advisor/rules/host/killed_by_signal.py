"""The training was ended from outside, by a signal.

## What it means

A process that is killed writes no traceback: its log simply ends. SIGKILL comes from the kernel when the host or the container has no
memory left, from a scheduler that enforces a limit, or from a person; SIGTERM from a launcher that stops the other ranks after one
failed, or at the end of the time that was asked for; SIGSEGV and SIGBUS from faults in compiled code.

## How it is recognized

attach() leaves a small process beside the training that sees its end within milliseconds and reads the signal from the kernel.

## What to do

By the signal: the kernel's log and the container's counters for SIGKILL, the scheduler's record of the job, the first rank that failed for
SIGTERM, a core dump or `python -X faulthandler` for faults in compiled code.

## What it is confused with

An exception in Python, which leaves a traceback. Host memory that ran out, where the counters say so: MEM801.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.model.finding import Action, Finding, Observation, Severity
from advisor.model.run import RunEnd
from advisor.rules.rule import rule
from advisor.rules.samples import a_case
from advisor.rules.samples_loop import RUN

if TYPE_CHECKING:
    from advisor.model.case import Case

KNOWN_SCORE = 0.95
"""Where the kernel named the signal."""

LIKELY_SCORE = 0.7
"""Where the interpreter just never came to its end: `os._exit` in the program looks the same."""

NEXT = {
    "SIGKILL": Action(
        title="Look who killed it: the kernel for want of memory, or the scheduler",
        change="sudo dmesg -T | grep -i 'killed process'; cat /sys/fs/cgroup/memory.events; scontrol show job or kubectl describe pod",
    ),
    "SIGTERM": Action(
        title="Look for the rank that failed before, and for a time limit",
        change="the logs of all ranks, earliest error first; the scheduler's end of the job",
    ),
}

FAULT = Action(
    title="Find the fault in compiled code",
    change="python -X faulthandler train.py, and the versions of the extensions that its stack names",
)


@rule("HST113", "killed-by-signal")
def killed_by_signal(end: RunEnd) -> Finding | None:
    """Fire where a signal, or nothing else that is known, ended the training."""
    if end.how not in {"signal", "abrupt", "host_oom"}:
        return None
    doing = f" while it was in {end.phase.replace('_', ' ')}" if end.phase not in {"", "other"} else ""
    step = f", {end.step} steps finished" if end.step is not None else ""
    what = f"killed by {end.signal}" if end.signal else "ended without coming to its regular end"
    action = NEXT.get(end.signal) or FAULT
    told = end.statements[1:] or (f"how it ended: {end.how}",)
    return Finding(
        statement=f"The training was {what}{doing}{step}.",
        severity=Severity.ERROR,
        confidence=KNOWN_SCORE if end.signal else LIKELY_SCORE,
        observations=tuple(Observation(statement=said, source=end.source) for said in told),
        actions=(action,),
    )


def fires() -> Case:
    """The kernel says SIGKILL, and nothing says who sent it."""
    told = ("killed by SIGKILL", "signal 9, by the kernel's word (/proc/PID/stat of the zombie)")
    return a_case(RunEnd(source=RUN, how="signal", signal="SIGKILL", phase="backward", step=411, statements=told))


def clean() -> Case:
    """The training came to its end."""
    return a_case(RunEnd(source=RUN, how="exit", exit_code=0, phase="other", step=1000, statements=("ended with exit code 0",)))
