"""Traces against HolisticTraceAnalysis.

python bench/trace_against_hta.py --peer-python VENV/bin/python TRACE...

Each round runs every contestant once, each in a process of its own on one core, from its start to its
end: load, time breakdown, idle time, overlap of communication and computation, kernels, launches. The
peer runs with each of its backends; the faster one counts. Before the first round every contestant
runs once unmeasured, so that files are in memory and modules are compiled. Printed are medians, and
ratios of medians, as a markdown table: of the whole process, and of what is left of it once the
modules are imported, which for small traces is half. In the same rounds `json.load` reads the trace
into Python's dictionaries and does nothing with it: what any tool pays that begins so.
"""

import argparse
import gzip
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

OURS = """
import sys, time
from advisor.analysis.device_timeline import device_timeline
from advisor.analysis.kernel_mix import kernel_mix
from advisor.analysis.launch_profile import launch_profile
from advisor.analysis.step_breakdown import step_breakdown
from advisor.ingest.kineto import read_kineto

begun = time.perf_counter()
with open(sys.argv[1], "rb") as stream:
    trace = read_kineto(stream, sys.argv[1])
for breakdown in step_breakdown(trace):
    timeline = device_timeline(trace, breakdown.device_index)
    timeline.communicating.common(timeline.computing).total_ns
    kernel_mix(trace, breakdown)
    launch_profile(trace, breakdown)
print(time.perf_counter() - begun)
"""

PEER = """
import logging, sys, time, warnings
warnings.filterwarnings("ignore")
logging.disable(logging.CRITICAL)
from hta.common import trace_parser
from hta.configs.parser_config import ParserBackend
from hta.trace_analysis import TraceAnalysis

begun = time.perf_counter()
trace_parser.set_default_trace_parsing_backend(ParserBackend(sys.argv[2]))
analysis = TraceAnalysis(trace_files={0: sys.argv[1]}, trace_dir="/")
analysis.get_temporal_breakdown(visualize=False)
analysis.get_idle_time_breakdown(ranks=[0], visualize=False)
analysis.get_comm_comp_overlap(visualize=False)
analysis.get_gpu_kernel_breakdown(visualize=False)
analysis.get_cuda_kernel_launch_stats(ranks=[0], visualize=False)
print(time.perf_counter() - begun)
"""

LOADING = """
import json, sys, time

begun = time.perf_counter()
with open(sys.argv[1], encoding="utf-8", errors="surrogateescape") as stream:
    loaded = json.load(stream)
print(time.perf_counter() - begun)
"""

BACKENDS = ("json", "ijson_batch_and_compress")
"""The peer's default, and the one that it recommends for large traces."""

REPOSITORY = Path(__file__).parents[1]


@dataclass(frozen=True)
class Cost:
    """Of one process: wall time, of that the time behind its imports, and peak resident memory."""

    seconds: float
    work_seconds: float
    peak_bytes: int


def main() -> None:
    """Measure and print the table."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--peer-python", required=True, help="a Python with HolisticTraceAnalysis")
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--core", type=int, default=0, help="the core that every process runs on")
    options.add_argument("traces", nargs="+", type=Path)
    chosen = options.parse_args()
    if hasattr(os, "sched_setaffinity"):  # children inherit it
        os.sched_setaffinity(0, {chosen.core})
    print("| trace | MB | ours s | MB | peer s | MB | backend | times faster | behind imports | times less memory | json.load s | MB |")
    print("|---|---|---|---|---|---|---|---|---|---|---|---|")
    for trace in chosen.traces:
        with tempfile.TemporaryDirectory() as folder:
            plain = _plain(trace, Path(folder))
            print(_row(plain, chosen.peer_python, chosen.rounds), flush=True)


def _plain(trace: Path, folder: Path) -> Path:
    """The trace without compression. Copied in pieces: a child starts with its parent's peak memory."""
    if trace.suffix != ".gz":
        return trace.resolve()
    plain = folder / trace.stem
    with gzip.open(trace) as packed, plain.open("wb") as out:
        shutil.copyfileobj(packed, out)
    return plain


def _row(trace: Path, peer_python: str, rounds: int) -> str:
    commands = {
        "ours": [sys.executable, "-c", OURS, str(trace)],
        "json.load": [sys.executable, "-c", LOADING, str(trace)],
    }
    for backend in BACKENDS:
        commands[backend] = [peer_python, "-c", PEER, str(trace), backend]
    costs: dict[str, list[Cost]] = {name: [] for name in commands}
    for number in range(rounds + 1):
        for name, command in commands.items():
            cost = _cost(command)
            if number:
                costs[name].append(cost)
    medians = {name: _median(measured) for name, measured in costs.items()}
    ours, loading = medians.pop("ours"), medians.pop("json.load")
    best = min(medians, key=lambda name: medians[name].seconds)
    peer = medians[best]
    cells = (
        trace.name,
        f"{trace.stat().st_size / 1e6:.0f}",
        f"{ours.seconds:.2f}",
        f"{ours.peak_bytes / 1e6:.0f}",
        f"{peer.seconds:.2f}",
        f"{peer.peak_bytes / 1e6:.0f}",
        best,
        f"{peer.seconds / ours.seconds:.1f}",
        f"{peer.work_seconds / ours.work_seconds:.1f}",
        f"{peer.peak_bytes / ours.peak_bytes:.1f}",
        f"{loading.seconds:.2f}",
        f"{loading.peak_bytes / 1e6:.0f}",
    )
    return f"| {' | '.join(cells)} |"


def _cost(command: list[str]) -> Cost:
    """Run a command.

    Raises:
        SystemExit: it fails; a failed analysis must not count as a fast one.
    """
    begun = time.perf_counter()
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=_environment(),
    ) as process:
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - begun
        process.returncode = os.waitstatus_to_exitcode(status)
        said, errors = (stream.read().decode() if stream else "" for stream in (process.stdout, process.stderr))
    if process.returncode:
        raise SystemExit(f"{command[0]} failed on {command[3]}: {errors[-2000:]}")
    return Cost(seconds, float(said.split()[-1]), usage.ru_maxrss * 1024)


def _environment() -> dict[str, str]:
    """With compiled modules kept, as in any installation, but outside the repository."""
    kept = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    cache = str(Path(tempfile.gettempdir()) / "trace-benchmark-bytecode")
    return {**kept, "PYTHONPATH": str(REPOSITORY), "PYTHONPYCACHEPREFIX": cache}


def _median(costs: list[Cost]) -> Cost:
    return Cost(
        statistics.median(cost.seconds for cost in costs),
        statistics.median(cost.work_seconds for cost in costs),
        int(statistics.median(cost.peak_bytes for cost in costs)),
    )


if __name__ == "__main__":
    main()
