"""Time what a user waits for: `--help`, and the diagnosis of a 20 KB log; whole processes, medians.

python bench/startup.py [--runs 11]
"""

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

LINE = "INFO 2026-01-01 12:00:00 step {step} loss 2.31 lr 3e-4 tokens/s 41213\n"
FAILURE = """Traceback (most recent call last):
  File "train.py", line 60, in train_step
    loss.backward()
  File "site-packages/torch/_tensor.py", line 521, in backward
    torch.autograd.backward(self, gradient)
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.15 GiB of which 1.20 GiB is free.
"""


def median_seconds(command: list[str], runs: int) -> float:
    """The median wall time of whole processes, after one that warms the file cache."""
    taken = []
    for _ in range(runs + 1):
        begun = time.perf_counter()
        subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
        taken.append(time.perf_counter() - begun)
    return statistics.median(taken[1:])


def main() -> None:
    """Run and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=11)
    runs = parser.parse_args().runs
    cli = [sys.executable, "-m", "advisor.cli.main"]
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "train.log"
        log.write_text("".join(LINE.format(step=step) for step in range(280)) + FAILURE, encoding="utf-8")
        rows = {
            "python -c pass": [sys.executable, "-c", "pass"],
            "advisor-cli --help": [*cli, "--help"],
            f"advisor-cli diagnose, a log of {log.stat().st_size / 1000:.0f} KB": [*cli, "diagnose", str(log)],
        }
        print(f"Whole processes, medians of {runs} runs.\n\n| command | wall |\n|---|---:|")
        for name, command in rows.items():
            print(f"| {name} | {median_seconds(command, runs) * 1000:.0f} ms |")


if __name__ == "__main__":
    main()
