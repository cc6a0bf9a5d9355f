"""MEM801: the host's memory, surer the more the words name it."""

import pytest

from advisor.model.evidence import Source
from advisor.model.failure import Failure, FailureKind
from advisor.model.finding import Severity
from advisor.model.node import KernelEvent, KernelEventKind, KernelLog
from advisor.rules.memory.host_memory_exhausted import host_memory_exhausted
from advisor.rules.samples import GIB, a_failure

check = host_memory_exhausted.check


def a_kill(generation: str) -> Failure:
    return a_failure(
        kind=FailureKind.HOST_OUT_OF_MEMORY,
        generation=generation,
        message=generation,
        backend="host",
        total_bytes=None,
    )


def a_kernel_log(*names: str, kind: KernelEventKind = KernelEventKind.CGROUP_OOM) -> KernelLog:
    events = tuple(
        KernelEvent(
            kind=kind,
            line=line,
            text="Killed process",
            process=name,
            pid=line,
            rss_bytes=60 * GIB,
            limit_bytes=64 * GIB,
        )
        for line, name in enumerate(names, start=1)
    )
    return KernelLog(source=Source(path="dmesg.txt"), events=events, line_count=10, counts={})


@pytest.mark.parametrize("generation", ["Killed", "SIGKILL"])
def test_a_bare_kill_is_not_surer_than_six_in_ten(generation: str) -> None:
    finding = check(a_kill(generation), None)
    assert finding is not None
    assert finding.confidence <= 0.6
    assert finding.settles is not None


def test_the_kernels_word_makes_a_bare_kill_sure() -> None:
    finding = check(a_kill("Killed"), a_kernel_log("python3"))
    assert finding is not None
    assert finding.confidence == 0.95
    assert finding.settles is None
    assert any("60 GiB" in fact.statement for fact in finding.observations)


def test_a_kill_of_something_else_does_not() -> None:
    finding = check(a_kill("Killed"), a_kernel_log("mysqld"))
    assert finding is not None
    assert finding.confidence <= 0.6


def test_a_kernel_log_alone_names_the_trainer_before_others() -> None:
    trainer, other = (
        check(None, a_kernel_log("python3", "mysqld")),
        check(None, a_kernel_log("mysqld")),
    )
    assert trainer is not None
    assert other is not None
    assert "python3" in trainer.statement
    assert (trainer.severity, other.severity) == (Severity.ERROR, Severity.WARNING)
    assert other.confidence <= 0.5


def test_other_kernel_messages_are_not_its_business() -> None:
    assert check(None, a_kernel_log("python3", kind=KernelEventKind.SEGFAULT)) is None
    assert check(a_failure(), None) is None
    assert check(None, None) is None
