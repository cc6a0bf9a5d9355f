"""What attach() costs a training: micro-steps in one process with the hooks put in and taken out in turn, and the start.

python bench/attach_overhead.py [--rounds 15]
"""

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

CLIENT = str(Path(__file__).resolve().parents[1] / "client")
STEPS = 2000

START = """
import sys, time
sys.path.insert(0, {client!r})
import torch, resource
rss = lambda: int(open("/proc/self/statm").read().split()[1]) * 4096
before = rss(); begun = time.perf_counter()
import advisor.client
imported = time.perf_counter()
advisor.client.attach(strict=True)
attached = time.perf_counter()
print((imported - begun) * 1e3, (attached - imported) * 1e3, (rss() - before) / 1e6)
"""


def micro_steps(count: int) -> float:
    """Microseconds a step of the smallest training there is: one parameter, a loader, backward, SGD."""
    import torch  # noqa: PLC0415 - the processes that are timed import it themselves
    from torch.utils.data import DataLoader, TensorDataset  # noqa: PLC0415 - the same

    weight = torch.nn.Parameter(torch.ones(1))
    optimizer = torch.optim.SGD([weight], lr=1e-3)
    loader = DataLoader(TensorDataset(torch.ones(count, 1)), batch_size=1)
    begun = time.thread_time()
    for (batch,) in loader:
        (weight * batch).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    return (time.thread_time() - begun) / count * 1e6


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    rounds = parser.parse_args().rounds
    sys.path.insert(0, CLIENT)
    with tempfile.TemporaryDirectory() as spool:
        os.environ["ADVISOR_SPOOL"] = spool
        starts = [
            [float(word) for word in subprocess.check_output([sys.executable, "-c", START.format(client=CLIENT)], text=True).split()]
            for _ in range(5)
        ]
        import torch  # noqa: PLC0415 - the same

        import advisor.client  # noqa: PLC0415 - the same

        torch.set_num_threads(1)
        micro_steps(STEPS)
        pairs = []
        for number in range(rounds):
            alone = micro_steps(STEPS)
            attachment = advisor.client.attach(run=f"bench-{number}", strict=True)
            attached = micro_steps(STEPS)
            attachment.detach()
            pairs.append((alone, attached))
    differences = [attached - alone for alone, attached in pairs]
    imports, attaches, resident = (statistics.median(column) for column in zip(*starts, strict=True))
    print(f"| what | {rounds} interleaved pairs of {STEPS} micro-steps, medians |\n|---|---:|")
    print(f"| a micro-step alone | {statistics.median(alone for alone, _ in pairs):.0f} µs |")
    print(f"| attach() adds, of the training thread's time | {statistics.median(differences):.1f} µs a step |")
    print(f"| import advisor.client behind torch | {imports:.1f} ms |")
    print(f"| attach() | {attaches:.1f} ms |")
    print(f"| resident memory, import and attach | {resident:.1f} MB |")
    print(f"| peak of this process | {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000:.0f} MB |")


if __name__ == "__main__":
    main()
