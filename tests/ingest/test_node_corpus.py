"""Real outputs of nodes and profilers: the figures read are those that a plain search finds."""

import re

import pytest
from corpus_location import corpus

from advisor.ingest.exporter_metrics import read_exporter_metrics
from advisor.ingest.kernel_log import looks_like_kernel_log, read_kernel_log
from advisor.ingest.memory_summary import read_memory_summary
from advisor.ingest.nvidia_smi_csv import read_nvidia_smi_csv
from advisor.ingest.nvidia_smi_listing import read_nvidia_smi_listing
from advisor.ingest.nvidia_smi_text import read_nvidia_smi_text
from advisor.ingest.nvidia_smi_xml import read_nvidia_smi_xml
from advisor.ingest.operator_table import read_operator_table

MIB = 1024**2


def files(pattern):
    found = sorted(corpus().glob(pattern))
    assert found, f"the corpus has no {pattern}"
    return found


def numbers(pattern, text):
    return [float(number) for number in re.findall(pattern, text)]


def test_every_query_as_text_has_the_figures_that_stand_in_it():
    for path in files("node/gpud/*nvidia-smi-query*valid*"):
        text = path.read_bytes()
        if path.name.endswith(".invalid"):
            continue
        gpus = read_nvidia_smi_text(text, path.name).gpus
        plain = text.decode()
        assert len(gpus) == int(re.search(r"Attached GPUs +: (\d+)", plain).group(1))
        assert [gpu.name for gpu in gpus] == re.findall(r"Product Name +: (.*)", plain)
        totals = numbers(r"FB Memory Usage\s+Total +: (\d+) MiB", plain)
        assert [gpu.total_bytes / MIB for gpu in gpus] == totals
        used = numbers(r"FB Memory Usage\s+Total +: \d+ MiB\s+Reserved +: \d+ MiB\s+Used +: (\d+) MiB", plain)
        assert [gpu.used_bytes / MIB for gpu in gpus] == used
        assert [gpu.gpu_utilization_ratio for gpu in gpus] == [n / 100 for n in numbers(r" Gpu +: (\d+) %", plain)]
        clocks = numbers(r"\n        SM +: (\d+) MHz", plain)
        assert [gpu.sm_clock_mhz for gpu in gpus] == clocks[0::2]
        assert [gpu.max_sm_clock_mhz for gpu in gpus] == clocks[1::2]
        assert [gpu.power_watts for gpu in gpus] == numbers(r"GPU Power Readings\s+Power Draw +: ([\d.]+) W", plain)
        assert [gpu.power_limit_watts for gpu in gpus] == numbers(r" Current Power Limit +: ([\d.]+) W", plain)
        assert [gpu.temperature_celsius for gpu in gpus] == numbers(r"GPU Current Temp +: (\d+) C", plain)
        widths = numbers(r"Link Width\s+Max +: \d+x\s+Current +: (\d+)x", plain)
        assert [gpu.pcie_width for gpu in gpus] == widths
        assert [gpu.pcie_generation for gpu in gpus] == numbers(r"Device Current +: (\d)", plain)
        assert sum("gpu_idle" in gpu.clock_event_reasons for gpu in gpus) == len(re.findall(r" Idle +: Active", plain))
        capped = sum("sw_power_cap" in gpu.clock_event_reasons for gpu in gpus)
        assert capped == len(re.findall(r"SW Power Cap +: Active", plain))
        assert sum(len(gpu.processes) for gpu in gpus) == len(re.findall(r"Process ID +: \d+", plain))
        assert all(gpu.unparsed == () for gpu in gpus)


def test_a_query_with_damaged_reasons_is_read_and_says_what_it_lacks():
    (path,) = files("node/gpud/*.invalid")
    reading = read_nvidia_smi_text(path.read_bytes(), path.name)
    assert reading.gaps == ("8 GPUs are attached, the text holds 1: it is cut",)
    (gpu,) = reading.gpus
    assert (gpu.name, gpu.pcie_generation, gpu.pcie_width) == ("NVIDIA H100 80GB HBM3", 5, 16)
    assert (gpu.clock_event_reasons, gpu.total_bytes) == (("gpu_idle",), None)
    assert [field for field, _ in gpu.unparsed] == ["clock_event_reasons"] * 3


def test_every_query_as_xml_has_the_figures_that_stand_in_it():
    for path in files("node/telegraf/*.xml"):
        plain = path.read_text()
        gpus = read_nvidia_smi_xml(path.read_bytes(), path.name).gpus
        assert [gpu.name for gpu in gpus] == re.findall(r"<product_name>(.*)</product_name>", plain)
        assert [gpu.bus_id for gpu in gpus] == re.findall(r'<gpu id="(.*)">', plain)
        outside_mig = re.sub(r"(?s)<mig_devices>.*?</mig_devices>", "", plain)
        totals = numbers(r"<fb_memory_usage>\s*<total>(\d+) MiB", outside_mig)
        assert [gpu.total_bytes / MIB for gpu in gpus] == totals
        assert [gpu.performance_state for gpu in gpus] == re.findall(r"<performance_state>(P\d+)<", plain)
        assert [gpu.temperature_celsius for gpu in gpus] == numbers(r"<gpu_temp>(\d+) C<", plain)
        assert [gpu.sm_clock_mhz for gpu in gpus] == numbers(
            r"<clocks>\s*<graphics_clock>\d+ MHz</graphics_clock>\s*<sm_clock>(\d+) MHz", plain
        )
        slices = [size for gpu in gpus for _, size in gpu.mig_devices]
        inside_mig = "".join(re.findall(r"(?s)<mig_devices>.*?</mig_devices>", plain))
        assert [size / MIB for size in slices] == numbers(r"<fb_memory_usage>\s*<total>(\d+) MiB", inside_mig)
        assert sum(len(gpu.processes) for gpu in gpus) == len(re.findall(r"<pid>\d+</pid>", plain))
        assert all(gpu.unparsed == () for gpu in gpus)


def test_every_scrape_has_the_figures_that_stand_in_it():
    for path in files("node/exporter/*.metrics"):
        plain = path.read_text()
        (gpu,) = read_exporter_metrics(path.read_bytes(), path.name).gpus

        def metric(name, plain=plain):
            return float(re.search(rf"(?m)^nvidia_smi_{name}\{{.*\}} (\S+)$", plain).group(1))

        assert gpu.name == re.search(r',name="([^"]+)"', plain).group(1)
        assert gpu.total_bytes == metric("memory_total_bytes")
        assert gpu.used_bytes == metric("memory_used_bytes")
        assert gpu.sm_clock_mhz == pytest.approx(metric("clocks_current_sm_clock_hz") / 1e6)
        assert gpu.power_watts == pytest.approx(metric("power_draw_watts"))
        assert gpu.pcie_generation == metric("pcie_link_gen_current")
        assert gpu.unparsed == ()


def test_the_query_as_csv_is_read():
    (path,) = files("node/exporter/*query.txt")
    gpus = read_nvidia_smi_csv(path.read_bytes(), path.name).gpus
    assert [gpu.used_bytes / MIB for gpu in gpus] == numbers(r"(\d+) MiB", path.read_text())


def test_the_links_of_every_gpu_are_read():
    (path,) = files("node/gpud/*nvlink*")
    gpus = read_nvidia_smi_listing(path.read_bytes(), path.name).gpus
    assert len(gpus) == 8
    assert sum(len(gpu.nvlink_bandwidths) for gpu in gpus) == path.read_text().count("GB/s")
    assert {speed for gpu in gpus for speed in gpu.nvlink_bandwidths} == {25e9}


def test_every_kernel_log_counts_the_xids_that_a_search_finds():
    found = 0
    for path in (*files("node/gpud/*dmesg*"), *files("node/gpud/*pstore*")):
        text = path.read_bytes()
        assert looks_like_kernel_log(text[: 64 * 1024]), path.name
        log = read_kernel_log(text, path.name)
        searched = re.findall(rb"NVRM: Xid \([^)]*\): (\d+)", text)
        assert log.counts.get("xid", 0) == len(searched), path.name
        for number in set(searched):
            assert log.counts[f"xid {number.decode()}"] == searched.count(number)
        assert log.line_count == len(text.decode("utf-8", "replace").removesuffix("\n").split("\n"))
        assert {event.kind.value for event in log.events} <= {"xid"}
        found += len(searched)
    assert found > 600


@pytest.mark.parametrize("reader", [read_kernel_log, read_operator_table, read_memory_summary])
def test_readings_of_other_kinds_hold_nothing_for(reader):
    for path in files("node/telegraf/*.xml"):
        assert reader(path.read_bytes(), path.name) is None


def test_every_operator_table_has_a_row_for_each_line_of_figures():
    for path in files("tables/profiler_*.txt"):
        text = path.read_text()
        table = read_operator_table(path.read_bytes(), path.name)
        lines = [line for line in text.splitlines() if re.search(r"\d%", line) and not line.startswith("#")]
        assert len(table.rows) == len(lines)
        for row, line in zip(table.rows, lines, strict=True):
            assert row.name in line
            assert row.calls == int(re.findall(r"\d+", line)[-1])
            first = re.search(r"%[ |]+([\d.]+)(us|ms|s)\b", line)
            scale = {"us": 1e-6, "ms": 1e-3, "s": 1}[first.group(2)]
            assert row.self_cpu_seconds == pytest.approx(float(first.group(1)) * scale)
        assert table.is_cut
        assert table.gaps


def test_every_memory_summary_has_the_figures_that_stand_in_it():
    for path in files("tables/memory_summary_*.txt"):
        text = path.read_text()
        summary = read_memory_summary(path.read_bytes(), path.name)
        current, peak = (int(size) for size in re.search(r"Allocated memory +\| +(\d+) M\w+ \| +(\d+) M", text).groups())
        assert summary.current["allocated"] == current * MIB
        assert summary.peak["allocated"] == peak * MIB
        assert (summary.device_index, summary.ooms, summary.retries) == (0, 1, 1)
        assert summary.is_cut
