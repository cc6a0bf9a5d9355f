"""A trainer of the standard library that writes a ring and starts a sidecar, run as a process of its own by the tests.

`python a_trainer.py ROOT RUN HOW STEP_SECONDS`; it prints "ready PID SIDECAR FOLDER", then a line for each step it has written.
"""

import atexit
import os
import signal
import sys
import time
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2] / "client"))

from advisor.client.identity import boot_id, start_ticks
from advisor.client.launch import start_sidecar
from advisor.client.layout import DETACHED, ENDED, STEP, Event, Metric
from advisor.client.ring import RingWriter
from advisor.client.spool import RING, RUN, make_rank_folder, write_json


def a_step(number):
    """The values of a step of a millisecond, all of it in the first phase."""
    values = list(STEP.unpack(bytes(STEP.size)))
    values[:4] = number, time.monotonic_ns(), 1_000_000, 1e6
    return tuple(values)


def say_state(ring, phase, step, flags=0):
    ring.state[0], ring.state[1], ring.state[2] = phase | flags << 32, step, time.monotonic_ns()


def a_ring(folder):
    return RingWriter(folder / RING, rank=0, boot_id=boot_id(), start_ticks=start_ticks(os.getpid()))


def say(text):
    os.write(1, f"{text}\n".encode())


class Trainer:
    def __init__(self, root, run, seconds):
        self.folder = make_rank_folder(Path(root), run, 0)
        self.ring = a_ring(self.folder)
        write_json(self.folder, RUN, {"run_id": run, "process": {"cwd": str(Path.cwd()), "argv": sys.argv}})
        self.seconds, self.number = seconds, 0
        self.sidecar = start_sidecar(self.folder, wait_seconds=30)
        say(f"ready {os.getpid()} {self.sidecar} {self.folder}")

    def train(self, count):
        for _ in range(count):
            self.number += 1
            say_state(self.ring, 2, self.number)
            self.ring.step(a_step(self.number))
            self.ring.metric(Metric(self.number, time.monotonic_ns(), 0.5, "loss"))
            say(f"step {self.number}")
            if self.seconds:
                time.sleep(self.seconds)

    def fail(self, error):
        content = {
            "kind": "exception",
            "type": f"builtins.{type(error).__name__}",
            "text": str(error),
            "monotonic_nanoseconds": time.monotonic_ns(),
        }
        write_json(self.folder, "failure-1.json", content)

    def end(self, flags=ENDED):
        say_state(self.ring, 2, self.number, flags)


def leave(trainer):
    del trainer
    sys.exit(int(os.environ.get("EXIT_CODE", "0")))


def leave_at_once(trainer):
    atexit.unregister(trainer.end)
    os._exit(7)


def raise_an_error(trainer):
    error = ValueError("the loss is no number")
    trainer.fail(error)
    raise error


def survive_an_error(trainer):
    trainer.fail(ValueError("caught"))
    sys.exit(0)


def fork(trainer):
    child = os.fork()
    if not child:
        signal.pause()
    say(f"child {child}")
    trainer.train(1_000_000)


def detach(trainer):
    trainer.end(DETACHED)
    signal.pause()


def eat(trainer):
    eaten = []
    while True:
        eaten.append(b"x" * 4_000_000)
        trainer.train(1)


def burst(trainer):
    for number in range(200_000):
        trainer.ring.event(Event(trainer.number, number, "note", "x"))
    say("burst done")
    signal.pause()


def go_on(trainer):
    trainer.train(1_000_000)


WAYS = {
    "exit": leave,
    "os_exit": leave_at_once,
    "exception": raise_an_error,
    "survived": survive_an_error,
    "fork": fork,
    "detach": detach,
    "eat": eat,
    "burst": burst,
    "on": go_on,
}


def main():
    root, run, how, seconds = sys.argv[1:]
    trainer = Trainer(root, run, float(seconds))
    atexit.register(trainer.end)
    trainer.train(20)
    WAYS[how](trainer)


if __name__ == "__main__":
    main()
