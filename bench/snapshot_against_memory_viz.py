"""Time a snapshot of a million events from file to ledger, against `pickle.load` and against torch's own viewer.

    python bench/snapshot_against_memory_viz.py --torch /path/to/python/with/torch [--events 1000000] [--pairs 5]

Each run is a process of its own; the runs of a round are interleaved, and the table gives medians, their ratios, and peak memory. The
snapshot is made here: a model of 24 layers trained by a foreach optimizer, with about 480 distinct stacks of 20 to 40 frames, whose
frames are shared dictionaries as PyTorch writes them. `_memory_viz.trace_plot` turns it into a page and analyses nothing.
"""

import argparse
import json
import pickle
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

Stack = list[dict[str, object]]

LAYERS = 24
SITES_PER_LAYER = 8
ROOT = Path(__file__).resolve().parents[1]

OURS = """
import sys, time
begun = time.perf_counter()
from advisor.ingest.snapshot import read_snapshot
from advisor.analysis.memory_ledger import memory_ledger
from advisor.analysis.allocator_record import allocator_record
with open(sys.argv[1], "rb") as file:
    snapshot = read_snapshot(file, sys.argv[1])
columns = time.perf_counter() - begun
ledger, record = memory_ledger(snapshot)[0], allocator_record(snapshot)[0]
assert sum(size for size in ledger.entries.values() if size is not None) == ledger.reserved_bytes
"""

PICKLE = """
import sys, time
begun = time.perf_counter()
import pickle
with open(sys.argv[1], "rb") as file:
    snapshot = pickle.load(file)
columns = time.perf_counter() - begun
"""

VIEWER = """
import sys, time
begun = time.perf_counter()
import importlib.util, pathlib
place = importlib.util.find_spec("torch").submodule_search_locations[0]
spec = importlib.util.spec_from_file_location("viewer", pathlib.Path(place) / "cuda" / "_memory_viz.py")
viewer = importlib.util.module_from_spec(spec)
spec.loader.exec_module(viewer)  # without importing torch, which would cost it a second more
import pickle
with open(sys.argv[1], "rb") as file:
    snapshot = pickle.load(file)
columns = time.perf_counter() - begun
with open(sys.argv[1] + ".html", "w") as page:
    page.write(viewer.trace_plot(snapshot))
"""

REPORT = """
import json
with open("/proc/self/status") as status:  # not ru_maxrss: that counts the process that started this one, too
    (peak,) = [line.split()[1] for line in status if line.startswith("VmHWM")]
print(json.dumps({"seconds": time.perf_counter() - begun, "processor_seconds": time.process_time(), "to_columns_seconds": columns,
    "peak_bytes": int(peak) * 1024}))
"""


MIB = 1 << 20


class FakeAllocator:
    """Hands out addresses as an allocator with one list of free blocks a size does, and records events.

    Segments are cut as PyTorch cuts them: requests up to 10 MiB from segments of 20 MiB, larger ones from segments of their own rounded
    to 2 MiB, and a remainder of at most 1 MiB stays with the block before it.
    """

    def __init__(self, most_events: int) -> None:
        self.most_events = most_events
        self.events: list[dict[str, object]] = []
        self.live: dict[int, tuple[int, list[dict[str, object]]]] = {}
        self.segments: list[tuple[int, int, list[tuple[int, int]]]] = []
        self._free: dict[int, list[int]] = {}
        self._top = 0x7F0000000000
        self._clock = 1_700_000_000_000_000

    def _record(self, action: str, address: int, size: int, frames: list[dict[str, object]]) -> None:
        self._clock += 3
        self.events.append(
            {
                "action": action,
                "addr": address,
                "size": size,
                "stream": 0,
                "time_us": self._clock,
                "compile_context": "N/A",
                "user_metadata": "",
                "frames": list(frames),
            }
        )

    def _new_segment(self, rounded: int, frames: list[dict[str, object]]) -> None:
        total = 20 * MIB if rounded <= 10 * MIB else -(-rounded // (2 * MIB)) * 2 * MIB
        count = total // rounded
        rest = total - count * rounded
        blocks = [(self._top + number * rounded, rounded) for number in range(count)]
        if 0 < rest <= MIB:
            blocks[-1] = (blocks[-1][0], rounded + rest)
        elif rest:
            blocks.append((self._top + count * rounded, rest))
        self.segments.append((self._top, total, blocks))
        self._free[rounded] = [address for address, _ in reversed(blocks[:count])]
        self._record("segment_alloc", self._top, total, frames)
        self._top += total

    def alloc(self, size: int, frames: list[dict[str, object]]) -> int:
        """Allocate; returns the address."""
        rounded = (size + 511) // 512 * 512
        if not self._free.get(rounded):
            self._new_segment(rounded, frames)
        address = self._free[rounded].pop()
        self._record("alloc", address, size, frames)
        self.live[address] = (size, frames)
        return address

    def free(self, address: int, frames: list[dict[str, object]]) -> None:
        """Free."""
        size, _ = self.live.pop(address)
        self._record("free_requested", address, size, frames)
        self._record("free_completed", address, size, frames)
        self._free[(size + 511) // 512 * 512].append(address)

    def is_full(self) -> bool:
        """Whether enough events were recorded."""
        return len(self.events) >= self.most_events

    def snapshot(self) -> dict[str, object]:
        """The state as `torch.cuda.memory._snapshot()` gives it."""
        segments = []
        for begin, total, blocks in self.segments:
            rows = [
                {
                    "address": address,
                    "size": size,
                    "requested_size": self.live[address][0] if address in self.live else 0,
                    "state": "active_allocated" if address in self.live else "inactive",
                    "frames": self.live[address][1] if address in self.live else [],
                }
                for address, size in blocks
            ]
            used = sum(size for address, size in blocks if address in self.live)
            segments.append(
                {
                    "device": 0,
                    "address": begin,
                    "total_size": total,
                    "allocated_size": used,
                    "active_size": used,
                    "requested_size": sum(self.live[address][0] for address, _ in blocks if address in self.live),
                    "stream": 0,
                    "segment_type": "large",
                    "segment_pool_id": (0, 0),
                    "is_expandable": False,
                    "frames": [],
                    "blocks": rows,
                }
            )
        return {
            "segments": segments,
            "device_traces": [self.events],
            "allocator_settings": {},
            "external_annotations": [],
        }


def a_frame(filename: str, line: int, name: str) -> dict[str, object]:
    """One frame as PyTorch writes it."""
    return {"filename": filename, "line": line, "name": name}


def stacks() -> tuple[list[list[Stack]], list[Stack], Stack, Stack]:
    """About 480 stacks: of each layer's sites, of the optimizer's lines, of its states, and of the model's construction."""
    call = a_frame("/site-packages/torch/nn/modules/module.py", 1751, "_call_impl")
    trainer = [a_frame("/site-packages/trainer/loop.py", 100 + depth, f"run_{depth}") for depth in range(18)]
    trainer.append(a_frame("/app/train.py", 12, "<module>"))
    sites = []
    for layer in range(LAYERS):
        outer = [a_frame("/app/model.py", 40 + depth, "forward") for depth in range(layer % 5 + 3)]
        block = a_frame("/app/model.py", 500 + layer, "forward")
        lines = [a_frame("/app/layers.py", line, "forward") for line in range(2 * SITES_PER_LAYER)]
        sites.append([[line, call, block, call, *outer, call, *trainer] for line in lines])
    step = [a_frame("/site-packages/torch/optim/optimizer.py", 516, "wrapper"), *trainer]
    adamw = "/site-packages/torch/optim/adamw.py"
    updates = [[a_frame(adamw, 400 + line, "_multi_tensor_adamw"), *step] for line in range(96)]
    state = [a_frame(adamw, 170, "_init_group"), *step]
    build = [a_frame("/site-packages/torch/nn/modules/module.py", 1340, "convert"), *trainer]
    return sites, updates, state, build


def synthetic(event_count: int) -> dict[str, object]:
    """A snapshot of training steps until there are that many events."""
    memory = FakeAllocator(event_count)
    sites, updates, state, build = stacks()
    parameters = [(4096 * 4096 + 4096 * 64 * site) * 2 for _ in range(LAYERS) for site in range(SITES_PER_LAYER)]
    for size in parameters:
        memory.alloc(size, build)
    for size in parameters * 2:
        memory.alloc(2 * size, state)
    while not memory.is_full():
        one_step(memory, sites, updates, parameters)
    return memory.snapshot()


def one_step(memory: FakeAllocator, sites: list[list[Stack]], updates: list[Stack], parameters: list[int]) -> None:
    """Forward with activations and temporaries, backward on a thread without Python frames, and an optimizer's temporaries."""
    kept = []
    for layer, places in enumerate(sites):
        for site, frames in enumerate(places):
            kept.append(memory.alloc(3_000_000 + 8192 * site + 512 * layer, frames))
            memory.free(memory.alloc(1_200_000 + 4096 * site, frames), frames)
    gradients = []
    for number, address in enumerate(reversed(kept)):
        memory.free(memory.alloc(3_000_000 + 8192 * (number % 16), []), [])
        memory.free(address, [])
        if number % 2 == 0:
            gradients.append(memory.alloc(parameters[number // 2 % len(parameters)], []))
    for number, size in enumerate(parameters):
        frames = updates[number % len(updates)]
        memory.free(memory.alloc(size, frames), frames)
    for address in gradients:
        memory.free(address, updates[0])


def measured(python: str, code: str, path: str) -> dict[str, float]:
    """One run in a process of its own."""
    done = subprocess.run([python, "-c", code + REPORT, path], capture_output=True, text=True, check=True, cwd=ROOT)
    result: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return result


def main() -> None:
    """Make the snapshot, run everything, print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--torch", help="a Python that has torch; without one the viewer is left out")
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--pairs", type=int, default=5)
    options = parser.parse_args()
    runs = {
        "advisor: file to ledger": (sys.executable, OURS),
        "pickle.load": (sys.executable, PICKLE),
    }
    if options.torch:
        runs["_memory_viz.trace_plot"] = (options.torch, VIEWER)
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "snapshot.pickle")
        with open(path, "wb") as file:  # noqa: PTH123 - one of many plain opens here
            pickle.dump(synthetic(options.events), file)
        size = Path(path).stat().st_size
        results: dict[str, list[dict[str, float]]] = {name: [] for name in runs}
        for _ in range(options.pairs):
            for name, (python, code) in runs.items():
                results[name].append(measured(python, code, path))
    print(f"{options.events} events, {size / 1e6:.0f} MB, {options.pairs} interleaved rounds, medians")
    print("| run | wall | processor | to columns / loaded | peak memory | ours is | with memory |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    middle = {name: {key: statistics.median(run[key] for run in found) for key in found[0]} for name, found in results.items()}
    ours = middle["advisor: file to ledger"]
    for name, run in middle.items():
        ratio = f"{run['seconds'] / ours['seconds']:.2f} × faster | {ours['peak_bytes'] / run['peak_bytes']:.2f} of it"
        print(
            f"| {name} | {run['seconds']:.2f} s | {run['processor_seconds']:.2f} s | {run['to_columns_seconds']:.2f} s | "
            f"{run['peak_bytes'] / 1e6:.0f} MB | "
            f"{'' if run is ours else ratio if name else ''}{' | ' if run is ours else ''} |"
        )


if __name__ == "__main__":
    main()
