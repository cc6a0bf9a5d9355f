"""A process that is not ours is watched until it dies, and its exit status learned where the kernel tells it."""

import os
import subprocess
import sys

import pytest

from advisor.client.sidecar import watch as module
from advisor.client.sidecar.process_status import exit_status_of, status_of
from advisor.client.sidecar.watch import Watch, open_pidfd

WAITING = "import sys; sys.stdin.read(); {}"


def a_process(then="pass"):
    return subprocess.Popen([sys.executable, "-I", "-S", "-c", WAITING.format(then)], stdin=subprocess.PIPE)


@pytest.mark.parametrize("pidfd", [True, False])
def test_a_death_is_seen_and_the_zombie_tells_its_code(pidfd):
    with a_process("sys.exit(5)") as process:
        watch = Watch(process.pid, 0, pidfd=pidfd)
        assert not watch.wait(0.01)
        process.stdin.close()
        assert watch.wait(30)
        status = watch.exit_status(5)
    assert (status.code, status.signal, status.source) == (5, None, "procfs")
    assert watch.watched_by == ("pidfd" if pidfd else "procfs")


def test_a_status_that_was_collected_is_kept_by_new_kernels_alone():
    with a_process("sys.exit(5)") as process:
        watch = Watch(process.pid, 0)
        process.stdin.close()
        process.wait()
        assert watch.wait(30)
        status = watch.exit_status(0.1)
    release = tuple(int(part) for part in os.uname().release.split(".")[:2])
    assert status is None if release < (6, 15) else (status.code, status.source) == (5, "pidfd")


def test_a_process_of_the_same_number_and_another_start_is_not_the_trainer():
    with a_process() as process:
        watch = Watch(process.pid, 1)
        assert (watch.is_there, watch.watched_by, watch.wait(0)) == (False, "late", True)
        assert watch.exit_status(0) is None
        process.stdin.close()


def test_a_process_that_is_gone_is_found_late():
    process = a_process()
    process.communicate()
    assert Watch(process.pid, 0).watched_by == "late"


def test_a_build_of_python_without_the_call_makes_it_itself(monkeypatch):
    monkeypatch.delattr(module.os, "pidfd_open", raising=False)
    descriptor = open_pidfd(os.getpid())
    if descriptor is None:
        pytest.skip("this kernel has no pidfd")
    os.close(descriptor)


def test_a_name_with_brackets_and_spaces_does_not_shift_the_fields():
    fields = ["S", *("0",) * 10, "7", "8", *("0",) * 4, "3", "0", "42", "0", "99", *("0",) * 27, "256"]
    status = status_of(f"17 (a) b (c) {' '.join(fields)}\n".encode())
    assert status == ("a) b (c", "S", 15, 3, 42, 99, 256)


@pytest.mark.parametrize("text", [b"", b"17", b"17 (python", b"17 (python) S 1 2", b") x"])
def test_what_is_no_status_is_none(text):
    assert status_of(text) is None


def test_wait_statuses_mean_what_the_kernel_means():
    assert exit_status_of(0x0300, "pidfd")[:3] == (3, None, False)
    assert exit_status_of(9, "pidfd").signal_name == "SIGKILL"
    assert exit_status_of(0x80 | 11, "pidfd")[:3] == (None, 11, True)
    assert exit_status_of(35, "pidfd").signal_name == "SIG35"
