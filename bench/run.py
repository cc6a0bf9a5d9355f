"""Run every benchmark against its peer and write docs/benchmarks.md; `make bench` calls it.

Peers live in an environment of their own (.venv-peers), so that what they pin does not change ours. The corpus must lie beside the
clone, or ADVISOR_CORPUS name it.
"""

import argparse
import os
import platform
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PEERS = ROOT / ".venv-peers"
PAGE = ROOT / "docs" / "benchmarks.md"
REAL_TRACES = ("trace_diff__control", "df_index_resolver", "resnet_kineto")
"""Parts of the names of the corpus' largest traces (35, 54 and 26 MB unpacked); the first is the one that is lengthened."""

LENGTHENED_MEGABYTES = (100, 500)

PEER_PACKAGES = ("HolisticTraceAnalysis==0.5.0",)

INTRODUCTION = """# Benchmarks

Made by `make bench`: whole processes on one core, ours and the peer's in turn in one run, medians and their ratios. Absolute times
depend on the machine; the ratios are what to compare. Python {python}, {cores} cores.
"""


def peers() -> Path:
    """The peers' Python, installed on first use."""
    python = PEERS / "bin" / "python"
    if not python.exists():
        venv.create(PEERS, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *PEER_PACKAGES], check=True)
    return python


def corpus() -> Path:
    """The folder of real inputs."""
    declared = os.environ.get("ADVISOR_CORPUS")
    folder = Path(declared) if declared else ROOT.parent / "shared" / "corpus"
    if not folder.is_dir():
        sys.exit(f"the corpus is not at {folder}; set ADVISOR_CORPUS to its folder")
    return folder


def traces(folder: Path) -> list[str]:
    """Real traces as they are, and one lengthened to 100 and 500 MB without more steps."""
    found = [next(corpus().glob(f"traces/*/*{name}*")) for name in REAL_TRACES]
    longer = []
    for megabytes in LENGTHENED_MEGABYTES:
        target = folder / f"lengthened_{megabytes}_MB.json"
        subprocess.run([sys.executable, ROOT / "bench" / "lengthen_trace.py", found[0], target, "--megabytes", str(megabytes)], check=True)
        longer.append(target)
    return [str(path) for path in (*found, *longer)]


def table_of(script: str, *arguments: str) -> str:
    """What a benchmark prints."""
    print(f"running {script} ...", file=sys.stderr)
    finished = subprocess.run([sys.executable, ROOT / "bench" / script, *arguments], check=True, capture_output=True, text=True, cwd=ROOT)
    return finished.stdout


def main() -> None:
    """Run all and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5, help="of each comparison; the largest trace, of minutes a run, gets a third")
    rounds = parser.parse_args().rounds
    peer = ("--peer-python", str(peers()))
    start_up = table_of("startup.py")
    with tempfile.TemporaryDirectory() as folder:
        *smaller, largest = traces(Path(folder))
        traced = table_of("trace_against_hta.py", *peer, "--rounds", str(rounds), *smaller)
        traced += "\n" + table_of("trace_against_hta.py", *peer, "--rounds", str(max(1, rounds // 3)), largest)
    snapshots = table_of("snapshot_against_memory_viz.py", "--torch", sys.executable, "--pairs", str(rounds))
    sections = {
        "Start-up": start_up,
        "Profiler traces, against HolisticTraceAnalysis and json.load": traced,
        "Allocator snapshots, against pickle.load and PyTorch's own viewer": snapshots,
    }
    body = "".join(f"\n## {title}\n\n{table.strip()}\n" for title, table in sections.items())
    PAGE.write_text(INTRODUCTION.format(python=platform.python_version(), cores=os.cpu_count()) + body, encoding="utf-8")
    print(body)


if __name__ == "__main__":
    main()
