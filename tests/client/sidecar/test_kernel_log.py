"""Lines of the kernel's log are told apart by the process they name."""

import pytest

from advisor.client.sidecar.kernel_log import SPEAKS_OF_DEVICE, SPEAKS_OF_MEMORY, KernelLog, names_process, text_of_record

OOM = "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),task=python,pid=123,uid=0"


@pytest.mark.parametrize(
    "line",
    [
        "python[123]: segfault at 0 ip 0 sp 0 error 6",
        "Out of memory: Killed process 123 (python) total-vm:1kB",
        OOM,
        "CPU: 1 UID: 0 PID: 123 Comm: python",
        "NVRM: Xid (PCI:0000:3b:00): 31, pid='123', name=python",
    ],
)
def test_a_process_is_named_in_the_kernels_ways(line):
    assert names_process(123).search(line)
    assert not names_process(12).search(line)
    assert not names_process(1234).search(line)


def test_lines_of_interest_are_known():
    assert SPEAKS_OF_MEMORY.search(OOM)
    assert SPEAKS_OF_DEVICE.search("NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.")
    assert not SPEAKS_OF_MEMORY.search("eth0: link becomes ready")


def test_a_record_is_its_text():
    assert text_of_record(b"6,1,2,-;a text; with more\n SUBSYSTEM=pci\n") == "a text; with more"
    assert text_of_record(b"") == ""


def test_a_log_that_may_not_be_read_says_nothing():
    log = KernelLog()
    lines = log.lines_about(1)
    assert lines == () or log.is_readable
