"""Give `diagnose` everything that can be wrong with a file, and say which answers are wrong: every file of the corpus cut at every percent, every
field of every kind of file with a value of every wrong type, and random bytes.

    python scripts/sweep_hostile_inputs.py cuts --state cuts.json --seconds 120

The tests run a small, fixed part of the same; this is for a change of a reader. It stops after the given time with exit code 75 and goes on from
its state when it is called again; exit code 1 where an answer was wrong.
"""

import argparse
import itertools
import json
import os
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

ROOT = Path(os.environ.get("ADVISOR_ROOT", Path(__file__).parents[1]))
sys.path[:0] = [str(ROOT), str(ROOT / "client"), str(ROOT / "tests" / "cli"), str(ROOT / "tests")]

import complaints  # noqa: E402 - of the tests, whose folders the line above names
import cut_files  # noqa: E402 - the same
import forked_run  # noqa: E402 - the same

UNFINISHED = 75

REPACKED_STEPS = 5
"""Files in another packing than the corpus' own are cut at every fifth of the places."""

FOLDERS = ("traces", "snapshots", "tables", "node", "reports")


def cuts(corpus, step):
    """Every file cut at every `step` percent, and more coarsely in its other packings; the whole first, to know what it takes."""
    for folder in FOLDERS:
        for path in sorted((corpus / folder).rglob("*")):
            if path.is_file():
                for number, whole in enumerate(cut_files.wholes(path)):
                    for percent in (100, *range(0, 100, step if number == 0 else step * REPACKED_STEPS)):
                        yield f"{whole.kind} {whole.name} {percent}%", whole.kind, whole.cut(percent), percent


def wrong_types(_corpus, _step):
    """Every field of a small example of each kind with every wrong value."""
    import wrong_types as examples  # noqa: PLC0415 - only this sweep has it

    for name, kind, data in examples.everything():
        yield name, kind, data, None


SWEEPS = {"cuts": cuts, "types": wrong_types}


def main() -> int:
    """Run one sweep, or a part of it."""
    arguments = _arguments()
    state = {"next": 0, "runs": 0, "codes": {}, "worst": {}, "wrong": {}, "wrong_counts": {}, "whole": {}}
    if arguments.state.exists():
        state = json.loads(arguments.state.read_text())
    forked_run.preload()
    until = time.monotonic() + arguments.seconds
    is_finished = True
    with tempfile.TemporaryDirectory() as folder:
        for name, kind, data, percent in itertools.islice(SWEEPS[arguments.sweep](arguments.corpus, arguments.step), state["next"], None):
            if time.monotonic() > until:
                is_finished = False
                break
            state["next"] += 1
            if arguments.only in name:
                _one(state, Path(folder) / "input", name, kind, data, percent)
    arguments.state.write_text(json.dumps(state, indent=1))
    _print(state)
    return UNFINISHED if not is_finished else int(bool(state["wrong"]))


def _one(state, path, name, kind, data, percent):
    path.write_bytes(data)
    run = forked_run.run_forked(["diagnose", "--format", "json", path])
    whole = state["whole"]
    if percent == 100:
        whole.clear()
        whole.update(seconds=run.seconds, peak_bytes=run.peak_bytes)
    slow = max(complaints.MOST_SECONDS, 1.2 * whole.get("seconds", 0.0))
    large = max(complaints.MOST_BYTES, 1.2 * whole.get("peak_bytes", 0))
    is_cut = percent is not None and 0 < percent < 100 and kind in cut_files.CLOSED
    found = complaints.complaints_about(run, path, gap=is_cut, seconds=slow, peak_bytes=large)
    state["runs"] += 1
    codes = Counter(state["codes"])
    codes[f"{kind} {run.code}"] += 1
    state["codes"] = dict(codes)
    for figure in ("seconds", "peak_bytes"):
        where = "whole" if percent == 100 else "other"
        worst = state["worst"].setdefault(f"{where} {figure}", [0, ""])
        state["worst"][f"{where} {figure}"] = max(worst, [getattr(run, figure), name])
    for complaint in found:
        key = f"{kind}: {complaint[:60]}"
        state["wrong_counts"][key] = state["wrong_counts"].get(key, 0) + 1
        examples = state["wrong"].setdefault(key, [])
        if len(examples) < 5:
            examples.append([name, complaint[:500]])


def _print(state):
    print(f"{state['next']} looked at, {state['runs']} runs")
    for name, (figure, where) in sorted(state["worst"].items()):
        print(f"worst {name}: {figure:.4g} ({where})")
    print(json.dumps(state["codes"]))
    for key, examples in state["wrong"].items():
        print(f"WRONG {state['wrong_counts'][key]} × {key}")
        for name, complaint in examples[:3]:
            print(f"    {name}: {complaint[:300]}")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sweep", choices=SWEEPS)
    parser.add_argument("--state", type=Path, required=True, help="where it has come to")
    parser.add_argument("--seconds", type=float, default=3600.0, help="when to stop")
    parser.add_argument("--step", type=int, default=1, help="percent from cut to cut")
    parser.add_argument("--only", default="", help="a part of the names that are run")
    corpus = os.environ.get("ADVISOR_CORPUS", ROOT.parent / "shared" / "corpus")
    parser.add_argument("--corpus", type=Path, default=Path(corpus))
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
