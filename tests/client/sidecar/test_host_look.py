"""The host's figures come from the right files, in both versions of control groups, in containers and outside."""

import os

from advisor.client.host_record import HostSample, line_of, read_host
from advisor.client.sidecar.control_groups import ControlGroup, group_of
from advisor.client.sidecar.host_file import HostFile
from advisor.client.sidecar.host_look import HostLook, _average, _memory_of, field_of, is_tight, number_of, text_of
from advisor.client.sidecar.watch import Watch

V2_MOUNT = "31 23 0:28 / /sys/fs/cgroup rw,relatime shared:4 - cgroup2 cgroup2 rw"
V1_MOUNT = "35 31 0:32 {root} /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory"


def test_version_two_is_one_folder_for_everything():
    group = group_of("memory", "0::/user.slice/job\n", V2_MOUNT)
    assert group == ControlGroup(2, ("/sys/fs/cgroup/user.slice/job", "/sys/fs/cgroup/user.slice", "/sys/fs/cgroup"))


def test_version_one_is_taken_where_it_has_the_controller():
    groups = "4:memory:/slurm/job_1\n1:name=systemd:/\n0::/\n"
    group = group_of("memory", groups, V1_MOUNT.format(root="/") + "\n" + V2_MOUNT)
    assert group == ControlGroup(1, ("/sys/fs/cgroup/memory/slurm/job_1", "/sys/fs/cgroup/memory/slurm", "/sys/fs/cgroup/memory"))


def test_in_a_container_the_mount_is_the_containers_own_group():
    mount = V1_MOUNT.format(root="/docker/abc")
    assert group_of("memory", "4:memory:/docker/abc\n", mount) == ControlGroup(1, ("/sys/fs/cgroup/memory",))
    assert group_of("memory", "4:memory:/docker/abc/inner\n", mount).folders[0] == "/sys/fs/cgroup/memory/inner"
    assert group_of("memory", "4:memory:/docker/abcdef\n", mount).folders == ("/sys/fs/cgroup/memory",)


def test_a_group_that_is_not_mounted_is_unknown():
    assert group_of("memory", "0::/\n", "") is None
    assert group_of("memory", "", V2_MOUNT) is None
    assert group_of("memory", "nonsense", "nor - this\nnor this") is None


def test_the_tightest_limit_around_the_trainer_counts(tmp_path):
    inner, outer = tmp_path / "job" / "task", tmp_path / "job"
    inner.mkdir(parents=True)
    for folder, used, limit in ((inner, 10, "max"), (outer, 90, 100), (tmp_path, 95, 1000)):
        (folder / "memory.current").write_text(f"{used}\n")
        (folder / "memory.max").write_text(f"{limit}\n")
        (folder / "memory.peak").write_text("99\n")
    (inner / "memory.events").write_text("low 0\noom 3\noom_kill 2\noom_group_kill 1\n")
    found = _memory_of(ControlGroup(2, (str(inner), str(outer), str(tmp_path))))
    assert found == {"group_oom_kill_count": 2, "group_bytes": 90, "group_limit_bytes": 100, "group_peak_bytes": 99}


def test_version_ones_number_for_no_limit_is_none(tmp_path):
    (tmp_path / "memory.usage_in_bytes").write_text("10\n")
    (tmp_path / "memory.limit_in_bytes").write_text("9223372036854771712\n")
    (tmp_path / "memory.oom_control").write_text("oom_kill_disable 0\nunder_oom 0\noom_kill 4\n")
    assert _memory_of(ControlGroup(1, (str(tmp_path),))) == {"group_oom_kill_count": 4}


def test_figures_of_the_kernels_texts():
    assert field_of("MemTotal: 9 kB\nMemAvailable:  512 kB\n", "MemAvailable:") == 512
    assert field_of("oom_kill\n", "oom_kill") is None
    assert (number_of("max\n"), number_of("12\n"), number_of("")) == (None, 12, None)
    assert _average("some avg10=12.50 avg60=1 avg300=0 total=9\nfull avg10=0.00 avg60=0\n", "some") == 0.125
    assert _average("", "full") is None
    assert text_of("/proc/none") == ""


def test_a_live_process_is_looked_at():
    sample = HostLook(Watch(os.getpid(), 0)).look()
    assert sample.rss_bytes > 1_000_000
    assert sample.thread_count >= 1
    assert sample.available_bytes > 0


def test_a_sample_survives_its_line_and_torn_lines_are_left_out():
    sample = HostSample(1, 2, rss_bytes=3, load=0.5)
    assert read_host(line_of(sample) + b"\n" + line_of(sample)[:-9]) == (sample,)
    assert read_host(b'[1]\n{"nanoseconds": "1", "wall_nanoseconds": 2}\n{}\nnull\n' + b"[" * 10_000) == ()


def test_a_full_file_keeps_its_newer_half_and_every_second_line_of_the_older(tmp_path):
    file = HostFile(tmp_path, most_bytes=4000)
    for number in range(500):
        file.add(HostSample(number, number))
    numbers = [sample.nanoseconds for sample in read_host((tmp_path / "host").read_bytes())]
    assert (tmp_path / "host").stat().st_size <= 4100
    assert numbers == sorted(numbers)
    assert numbers[-20:] == list(range(480, 500))
    assert numbers[0] < 480


def test_a_line_after_a_torn_one_begins_anew(tmp_path):
    (tmp_path / "host").write_bytes(line_of(HostSample(1, 1))[:-5])
    HostFile(tmp_path).add(HostSample(2, 2))
    assert [sample.nanoseconds for sample in read_host((tmp_path / "host").read_bytes())] == [2]


def test_memory_is_tight_near_a_limit_or_on_an_empty_host():
    assert is_tight(HostSample(0, 0, group_bytes=85, group_limit_bytes=100))
    assert is_tight(HostSample(0, 0, available_bytes=10**9))
    assert not is_tight(HostSample(0, 0, group_bytes=10, group_limit_bytes=100, available_bytes=10**11))
    assert not is_tight(HostSample(0, 0))
