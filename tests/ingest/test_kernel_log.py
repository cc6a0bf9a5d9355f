import pytest

from advisor.ingest.kernel_log import (
    ALIKE_LIMIT,
    EVENT_LIMIT,
    looks_like_kernel_log,
    read_kernel_log,
)
from advisor.ingest.text_inputs import read_text
from advisor.model.node import KernelEventKind, KernelLog

KIB = 1024


def read(*lines):
    return read_kernel_log("\n".join(lines).encode() + b"\n", "dmesg.txt")


XID = "NVRM: Xid (PCI:0000:3b:00): 31, pid=4242, name=python, Ch 00000008, MMU Fault"


@pytest.mark.parametrize(
    ("prefix", "timestamp"),
    [
        ("", ""),
        ("[ 1234.567890] ", "1234.567890"),
        ("<4>[   12.345678] ", "12.345678"),
        ("[Mon Jan  6 10:00:00 2025] ", "Mon Jan  6 10:00:00 2025"),
        ("2025-01-06T10:00:00,123456+00:00 ", "2025-01-06T10:00:00,123456+00:00"),
        ("kern  :warn  : 2025-01-06T10:00:00,123456+00:00 ", "2025-01-06T10:00:00,123456+00:00"),
        ("Jan  6 10:00:00 node7 kernel: ", "Jan  6 10:00:00"),
        ("2025-01-06T10:00:00+0100 node7 kernel: ", "2025-01-06T10:00:00+0100"),
        ("Jan 16 10:00:00 node7 kernel: [ 1234.567890] ", "Jan 16 10:00:00"),
    ],
)
def test_an_xid_is_read_in_every_form_of_time(prefix, timestamp):
    (event,) = read(prefix + XID).events
    assert (event.kind, event.xid, event.bus_id) == (KernelEventKind.XID, 31, "0000:3b:00")
    assert (event.pid, event.process, event.timestamp, event.line) == (4242, "python", timestamp, 1)
    assert event.text.startswith("NVRM: Xid")


def test_an_xid_of_nobody_names_nobody():
    (event,) = read("[    1.000000] NVRM: Xid (PCI:0000:19:00): 48, pid='<unknown>', name=<unknown>, a DBE").events
    assert (event.pid, event.process, event.xid) == (None, None, 48)


def test_an_xid_of_an_old_driver_is_read():
    (event,) = read("[    1.000000] NVRM: Xid (0000:03:00): 13, Ch 00000001").events
    assert (event.xid, event.bus_id, event.pid) == (13, "0000:03:00", None)


def test_one_kill_is_one_event_with_its_memory():
    log = read(
        "[  100.000000] python invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0",
        "[  100.000001] oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/,"
        "global_oom,task_memcg=/user.slice,task=python,pid=4242,uid=1000",
        "[  100.000002] Out of memory: Killed process 4242 (python) anon-rss:70000kB, "
        "file-rss:500kB, shmem-rss:24kB, UID:1000 pgtables:100kB oom_score_adj:0",
        "[  100.000003] oom_reaper: reaped process 4242 (python), now anon-rss:0kB, file-rss:0kB",
    )
    (event,) = log.events
    assert event.kind is KernelEventKind.OOM_KILL
    assert (event.pid, event.process, event.rss_bytes, event.limit_bytes) == (
        4242,
        "python",
        70524 * KIB,
        None,
    )
    assert log.counts == {"oom kill": 1}


def test_a_kill_in_a_cgroup_has_the_cgroups_limit():
    log = read(
        "[  100.000000] python invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0",
        "[  100.000001] memory: usage 8388608kB, limit 8388608kB, failcnt 1234",
        "[  100.000001] swap: usage 0kB, limit 0kB, failcnt 0",
        "[  100.000002] oom-kill:constraint=CONSTRAINT_MEMCG,oom_memcg=/p,task=python,pid=7,uid=0",
        "[  100.000003] Memory cgroup out of memory: Killed process 7 (python) anon-rss:8000000kB, file-rss:0kB, shmem-rss:0kB",
    )
    (event,) = log.events
    assert event.kind is KernelEventKind.CGROUP_OOM
    assert (event.limit_bytes, event.rss_bytes) == (8388608 * KIB, 8000000 * KIB)


def test_an_old_kernels_two_lines_are_one_kill():
    log = read(
        "[  100.000000] Task in /docker/abc killed as a result of limit of /docker/abc",
        "[  100.000001] memory: usage 1048576kB, limit 1048576kB, failcnt 9",
        "[  100.000002] Memory cgroup out of memory: Kill process 7 (python) score 990",
        "[  100.000003] Killed process 7 (python) total-vm:9kB, anon-rss:1000kB, file-rss:0kB",
    )
    (event,) = log.events
    assert (event.kind, event.limit_bytes) == (KernelEventKind.CGROUP_OOM, 1048576 * KIB)


def test_a_dump_that_is_cut_still_tells_of_the_kill():
    (event,) = read("[  100.000000] python invoked oom-killer: gfp_mask=0xcc0, order=0, oom_score_adj=0").events
    assert (event.kind, event.pid, event.process) == (KernelEventKind.OOM_KILL, None, None)


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("NVRM: GPU at PCI:0000:4c:00: GPU has fallen off the bus.", KernelEventKind.GPU_LOST),
        (
            "NVRM: GPU 0000:4c:00.0: RmInitAdapter failed! (0x26:0x56:1482)",
            KernelEventKind.GPU_LOST,
        ),
        (
            "pcieport 0000:00:01.0: AER: Uncorrected (Fatal) error received: 0000:4c:00.0",
            KernelEventKind.PCIE_ERROR,
        ),
        (
            "pcieport 0000:00:01.0: PCIe Bus Error: severity=Corrected, type=Physical Layer",
            KernelEventKind.PCIE_ERROR,
        ),
        (
            "mlx5_core 0000:4c:00.0: 31.5 Gb/s, limited by 8.0 GT/s PCIe x4 link at 0000:00:01.0",
            KernelEventKind.PCIE_LINK,
        ),
        ("pcieport 0000:17:00.0: pciehp: Slot(167): Link Down", KernelEventKind.PCIE_LINK),
        ("NVRM: nvlink: fatal error on link 3 of GPU 0000:4c:00", KernelEventKind.NVLINK),
        (
            "nvidia-nvswitch0: SXid (PCI:0000:c1:00.0): 12028, Non-fatal, Link 32",
            KernelEventKind.NVLINK,
        ),
        (
            "python[4242]: segfault at 0 ip 00007f error 4 in libtorch.so[7f]",
            KernelEventKind.SEGFAULT,
        ),
        (
            "traps: python[4242] general protection fault ip:7f sp:7f error:0",
            KernelEventKind.SEGFAULT,
        ),
    ],
)
def test_other_messages_that_matter_are_kept_by_kind(line, kind):
    (event,) = read(f"[   10.000000] {line}").events
    assert event.kind is kind


@pytest.mark.parametrize(
    "line",
    [
        "acpi PNP0A08:29: _OSC: platform does not support [SHPCHotplug AER DPC]",
        "pcieport 0000:00:01.0: AER: enabled with IRQ 30",
        "mlx5_core 0000:1a:00.0: 504.112 Gb/s available PCIe bandwidth (32.0 GT/s PCIe x16 link)",
        "pcieport 0000:17:00.0: pciehp: Slot #167 AttnBtn- PwrCtrl- MRL-",
        "nvidia-nvlink: Nvlink Core is being initialized, major device number 511",
        "NVRM: loading NVIDIA UNIX x86_64 Kernel Module  550.54.15",
    ],
)
def test_a_healthy_nodes_messages_are_no_events(line):
    assert read(f"[   10.000000] {line}").events == ()


def test_a_flood_of_one_xid_does_not_push_out_another():
    log = read(
        *[f"[   10.000000] {XID}"] * 5000,
        "[   11.000000] NVRM: Xid (PCI:0000:19:00): 79, pid=1, name=x, off",
    )
    assert [event.xid for event in log.events] == [31] * ALIKE_LIMIT + [79]
    assert (log.counts["xid 31"], log.counts["xid 79"], log.counts["xid"]) == (5000, 1, 5001)
    assert log.gaps == ("4,992 events like those kept are only counted",)


def test_events_are_bounded_and_counts_are_not():
    log = read(*[f"[   10.000000] NVRM: Xid (PCI:0000:19:00): 31, pid={pid}, name=x" for pid in range(1000)])
    assert len(log.events) == EVENT_LIMIT
    assert log.counts["xid 31"] == 1000


def test_lines_are_numbered_across_blocks_of_the_log():
    filler = "x" * 200
    lines = [filler] * 20_000
    lines[12_344] = f"[   10.000000] {XID}"
    lines[19_999] = f"[   10.000000] {XID}"
    log = read(*lines)
    assert [event.line for event in log.events] == [12_345, 20_000]
    assert log.line_count == 20_000


def test_kernel_messages_pasted_into_a_log_are_found():
    text = b"step 1 loss 2.0\n" * 2000 + f"[   10.000000] {XID}\n".encode()
    assert looks_like_kernel_log(text)
    assert read_kernel_log(text, "train.log").events[0].line == 2001


@pytest.mark.parametrize(
    "text",
    [
        b"step 1 loss 2.0\nCUDA out of memory\n",
        b"node7:11:22 [0] NCCL INFO NVLink connection failed, falling back\n",
        b"2025-01-06 10:00:00,123 INFO oom while loading\n",
        b"",
    ],
)
def test_another_log_is_none_of_this(text):
    assert not looks_like_kernel_log(text)
    assert read_kernel_log(text, "train.log") is None


def test_a_kernel_log_without_trouble_is_evidence_of_none():
    log = read("[    0.000000] Linux version 6.8", "[    1.000000] usb 1-2: New USB device")
    assert (log.events, log.line_count) == ((), 2)


def test_a_message_of_the_driver_pasted_without_a_kernels_stamp_is_found_in_any_text():
    text = b"Training died with NVRM: Xid (PCI:0000:3b:00): 79, pid=1234, GPU has fallen off the bus.\n"
    (kernel,) = (item for item in read_text(text, "report.txt") if isinstance(item, KernelLog))
    assert [(event.xid, event.line) for event in kernel.events] == [(79, 1)]
