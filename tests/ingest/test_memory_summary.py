import json

import pytest

from advisor.ingest.memory_summary import (
    looks_like_memory_stats,
    looks_like_memory_summary,
    read_memory_stats,
    read_memory_summaries,
    read_memory_summary,
)

MIB = 1024**2
KIB = 1024


def a_summary(unit="MiB", device=0):
    rows = [
        ("Allocated memory", "100", "400", "9000", "8900"),
        ("      from large pool", "90", "380", "8000", "7910"),
        ("Active memory", "110", "410", "9000", "8890"),
        ("Requested memory", "99", "399", "8000", "7901"),
        ("GPU reserved memory", "512", "600", "700", "188"),
        ("Non-releasable memory", "30", "50", "2000", "1970"),
    ]
    line = "|" + "=" * 75 + "|"
    out = [
        line,
        f"|                  PyTorch CUDA memory summary, device ID {device:<17d} |",
        "|" + "-" * 75 + "|",
        "|            CUDA OOMs: 2            |        cudaMalloc retries: 3         |",
        line,
        "|        Metric         | Cur Usage  | Peak Usage | Tot Alloc  | Tot Freed  |",
    ]
    for name, *cells in rows:
        out.append(f"| {name:<21} | " + " | ".join(f"{cell:>6} {unit}" for cell in cells) + " |")
    out.append("| Allocations           |      40    |      77    |    1200    |    1160    |")
    out.append("| GPU reserved segments |      12    |      13    |      15 K  |       3    |")
    out.append(line)
    return ("\n".join(out) + "\n").encode()


@pytest.mark.parametrize("unit", ["MB", "MiB"])
def test_both_units_mean_powers_of_1024(unit):
    summary = read_memory_summary(a_summary(unit), "log.txt")
    assert (summary.ooms, summary.retries, summary.device_index) == (2, 3, 0)
    assert summary.current == {
        "allocated": 100 * MIB,
        "active": 110 * MIB,
        "requested": 99 * MIB,
        "reserved": 512 * MIB,
        "inactive_split": 30 * MIB,
        "non_releasable": 30 * MIB,
    }
    assert summary.peak["allocated"] == 400 * MIB
    assert summary.resolution_bytes == MIB // 2
    assert (summary.is_cut, summary.gaps) == (False, ())


def test_counts_keep_the_names_of_memory_stats():
    summary = read_memory_summary(a_summary(), "log.txt")
    assert summary.counts["allocation.all.current"] == 40
    assert summary.counts["segment.all.peak"] == 13


def test_small_figures_have_a_finer_resolution():
    assert read_memory_summary(a_summary("KiB"), "log.txt").resolution_bytes == KIB // 2


def test_a_summary_that_is_cut_keeps_what_stands_before():
    text = a_summary()
    summary = read_memory_summary(text[: text.index(b"| GPU reserved memory   |") + 32], "log.txt")
    assert summary.is_cut
    assert "allocated" in summary.current
    assert "reserved" not in summary.current
    assert any("missing" in gap for gap in summary.gaps)


def test_every_devices_summary_is_read():
    text = b"step 1\n" + a_summary(device=0) + b"step 2\n" + a_summary(device=3)
    summaries = read_memory_summaries(text, "log.txt")
    assert [summary.device_index for summary in summaries] == [0, 3]
    assert str(summaries[0].source) == "log.txt: line 3"


COUNTERS = {
    "active.all.current": 3,
    "allocated_bytes.all.current": 1024,
    "allocated_bytes.all.peak": 4096,
    "num_alloc_retries": 1,
    "num_ooms": 2,
    "reserved_bytes.all.current": 8192,
}


def test_of_several_the_one_after_the_failure_is_the_primary_one():
    early = a_summary().replace(b"CUDA OOMs: 2", b"CUDA OOMs: 0")
    text = early + b"step 2\n" * 3000 + early + b"step 3\n" * 3000 + a_summary(device=5) + early
    summaries = read_memory_summaries(text, "log.txt")
    assert [summary.ooms for summary in summaries] == [0, 0, 2, 0]
    assert read_memory_summary(text, "log.txt").device_index == 5
    titles = [n for n, line in enumerate(text.splitlines(), start=1) if b"summary" in line]
    assert [str(summary.source) for summary in summaries] == [f"log.txt: line {n}" for n in titles]


@pytest.mark.parametrize(
    "printed",
    [
        str(COUNTERS),
        f"OrderedDict({list(COUNTERS.items())})",
        json.dumps(COUNTERS),
        json.dumps(COUNTERS, indent=2),
    ],
)
def test_memory_stats_are_read_however_they_were_printed(printed):
    text = printed.encode()
    assert looks_like_memory_stats(text)
    stats = read_memory_stats(text, "log.txt")
    assert stats.current == {"allocated": 1024, "reserved": 8192}
    assert stats.peak == {"allocated": 4096}
    assert (stats.ooms, stats.retries, stats.resolution_bytes, stats.is_cut) == (2, 1, 0, False)
    assert stats.counts["active.all.current"] == 3


def test_stats_that_are_cut_say_what_is_missing():
    stats = read_memory_stats(
        b"{'active.all.current': 3, 'allocated_bytes.all.current': 9, 'active.all.peak': 5, 'act",
        "log.txt",
    )
    assert stats.is_cut
    assert stats.gaps == ("reserved_bytes.all is missing: the text is cut",)


def test_a_log_without_either_has_none():
    assert not looks_like_memory_summary(b"step 1 memory 3 GB\n")
    assert read_memory_summaries(b"step 1 memory summary: 3 GB\n", "log.txt") == ()
    assert read_memory_stats(b"num_alloc_retries is high\n", "log.txt") is None


def test_counters_followed_by_nul_bytes_are_cut():
    names = ("allocated_bytes.all.current", "reserved_bytes.all.current", "active_bytes.all.current", "num_alloc_retries")
    text = ("{" + ", ".join(f'"{name}": 7' for name in names)).encode()
    found = read_memory_stats(text + bytes(100_000), "stats.json")
    assert found.is_cut
    assert any("NUL" in gap for gap in found.gaps)
    assert not read_memory_stats(text + b"}", "stats.json").is_cut


def test_a_count_that_its_unit_makes_infinite_is_left_out():
    text = b"|   PyTorch CUDA memory summary, device ID 0   |\n| Allocations | 1e308 M | 3 | 3 | 3 |\n"
    assert read_memory_summary(text, "log.txt").counts == {"allocation.all.peak": 3}
