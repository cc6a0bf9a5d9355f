"""Start `a_trainer.py` with its sidecar, and wait for what they do."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

from advisor.client.layout import Step
from advisor.client.ring_reader import read_drained, read_ring

SCRIPT = Path(__file__).parent / "a_trainer.py"
MOST_SECONDS = 60.0


def until(condition, seconds=MOST_SECONDS):
    """The condition's first true value; it is looked at every few milliseconds."""
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end, f"waited {seconds} s in vain"
        threading.Event().wait(0.003)
    return found


def is_alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def names_in(folder):
    return {path.name for path in Path(folder).iterdir()}


class WatchedTrainer:
    """A trainer process; `folder`, `pid` and `sidecar` are what it said of itself. Leaving the context ends both processes."""

    def __init__(self, root, how="on", *, run="run", seconds=0.002, environment=None, **options):
        self._said = root / f"{run}.said"
        root.mkdir(exist_ok=True)
        with self._said.open("wb") as out:
            command = [sys.executable, SCRIPT, str(root / "spool"), run, how, str(seconds)]
            self.process = subprocess.Popen(
                command, stdout=out, stderr=subprocess.DEVNULL, env={**os.environ, **(environment or {})}, **options
            )
        word = until(lambda: self.said("ready")).split()
        self.pid, self.folder = int(word[1]), Path(word[3])
        self.sidecar = int(word[2])

    def said(self, word):
        """The last whole line that begins so."""
        lines = self._said.read_text("ascii").split("\n")[:-1]
        return next((line for line in reversed(lines) if line.startswith(word)), "")

    def step(self):
        """The last step that it said it wrote."""
        return int((self.said("step") or "step 0").split()[1])

    def watched(self):
        """Wait until the sidecar watches."""
        until(lambda: "watching" in self.log())
        return self

    def log(self):
        with contextlib.suppress(OSError):
            return (self.folder / "sidecar.log").read_text("utf-8")
        return ""

    def end(self):
        """The content of end.json, when it is there and the sidecar has left."""
        until(lambda: not is_alive(self.sidecar))
        return json.loads((self.folder / "end.json").read_bytes())

    def records(self):
        """All records that are left, by their sequence number: drained ones and those in the ring."""
        steps = self.folder / "steps"
        drained = read_drained(steps.read_bytes()) if steps.exists() else ()
        return dict((*drained, *read_ring((self.folder / "ring").read_bytes()).records))

    def step_numbers(self):
        return [record.step for _, record in sorted(self.records().items()) if isinstance(record, Step)]

    def kill(self, number=signal.SIGKILL):
        self.process.send_signal(number)
        self.process.wait()
        return self

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.kill()
        with contextlib.suppress(AssertionError):
            until(lambda: not is_alive(self.sidecar), 20)
        # Only if it is still the process that was started here.
        with contextlib.suppress(OSError):
            if str(self.folder) in Path(f"/proc/{self.sidecar}/cmdline").read_text("utf-8"):
                os.kill(self.sidecar, signal.SIGKILL)
