"""The sidecar's life: watch, drain, sample, clean; then say how the trainer died."""

import signal
import time
from pathlib import Path
from types import FrameType

from advisor.client.layout import DETACHED, ENDED, SLOT_COUNT
from advisor.client.ring_reader import NotARing
from advisor.client.sidecar.drain import Drain
from advisor.client.sidecar.ending import Ending
from advisor.client.sidecar.facts import WORD, FactFinding, write_facts
from advisor.client.sidecar.host_file import HostFile
from advisor.client.sidecar.host_look import is_tight
from advisor.client.sidecar.housekeeping import Housekeeping
from advisor.client.sidecar.lifetime import lock, settle
from advisor.client.sidecar.log import Log
from advisor.client.sidecar.watch import Watch

DRAIN_SECONDS = 1.0
BUSY_DRAIN_SECONDS = 0.05
IDLE_DRAIN_SECONDS = 4.0
"""Between two drains: usually; at most so often, when the ring fills quickly; when nothing comes."""

QUICK_RECORDS = SLOT_COUNT // 4
"""More records than this between two drains, and the next comes sooner: the ring must never be full."""

SAMPLE_SECONDS = 5.0
TIGHT_SAMPLE_SECONDS = 1.0
"""Between two looks at the host: usually; when memory is short and what is known of it soon old."""

DETACH_SECONDS = 120.0
"""A trainer that lives so long after its exit functions ran has only let go of us."""

STDERR = 2
"""The log: the launcher opened it there, so that a Python that cannot start leaves its complaint in it."""


class Sidecar:
    """Watches one trainer."""

    def __init__(self, folder: Path, pid: int, log: Log) -> None:
        """Begin.

        Raises:
            OSError: if the folder or its ring cannot be used.
            NotARing: if the ring is none, or another process's.
        """
        self._folder, self._log = folder, log
        self._inode = folder.stat().st_ino
        self._asked_to_stop: list[float] = []
        signal.signal(signal.SIGTERM, self._stop)
        self._drain = Drain(folder)
        trainer = self._drain.trainer
        if trainer.pid != pid:
            raise NotARing(f"the ring belongs to process {trainer.pid}, not to {pid}")
        self._watch = Watch(pid, trainer.start_ticks)
        self._ending = Ending(folder, self._watch, self._drain, log)
        self._host = HostFile(folder)
        self._housekeeping = Housekeeping(folder, log)
        self._drain_seconds = BUSY_DRAIN_SECONDS  # until it is known how quickly they come
        self._ended_since: float | None = None
        self._sampled()
        log.write(f"watching process {pid} ({self._watch.command}) by {self._watch.watched_by}")

    def run(self) -> None:
        """Until the trainer is dead, or has let go of us, or our folder is gone."""
        facts = FactFinding(self._folder, self._log)
        next_drain = time.monotonic()
        next_sample = next_drain + SAMPLE_SECONDS
        while True:
            wait = max(0.0, min(next_drain, next_sample) - time.monotonic())
            if self._watch.wait(wait):
                self._ending.died(asked_to_stop=self._asked_to_stop[0] if self._asked_to_stop else None)
                break
            if not self._is_folder_there():
                self._log.write("the folder is gone: leaving")
                return
            if self._leaves_when_asked():
                return
            now = time.monotonic()
            if now >= next_drain:
                self._drained()
                next_drain = now + self._drain_seconds
                if self._has_let_go(now):
                    self._ending.detached()
                    break
            if now >= next_sample:
                facts.is_over()
                next_sample = now + (TIGHT_SAMPLE_SECONDS if self._sampled() else SAMPLE_SECONDS)
        while not facts.is_over():
            time.sleep(0.05)
        self._housekeeping.finish(self._watch.pid)
        self._log.write("done")

    def _stop(self, number: int, frame: FrameType | None) -> None:
        """A scheduler that ends a job asks all its processes; the trainer's end is still to be seen. Who asks twice means us."""
        del number, frame
        self._asked_to_stop.append(time.monotonic())

    def _leaves_when_asked(self) -> bool:
        if len(self._asked_to_stop) > 1:
            self._log.write("asked to stop for the second time: leaving while the trainer lives")
            return True
        if self._asked_to_stop:
            self._log.write("asked to stop: the trainer lives, and is watched until it ends or this is asked again")
        return False

    def _is_folder_there(self) -> bool:
        try:
            return self._folder.stat().st_ino == self._inode
        except OSError:
            return False

    def _drained(self) -> None:
        try:
            count = self._drain.drain()
        except OSError as error:
            self._log.write(f"records cannot be kept: {error}")
            self._drain_seconds = DRAIN_SECONDS
            return
        if not count:
            self._drain_seconds = min(IDLE_DRAIN_SECONDS, self._drain_seconds * 2)
        else:
            wanted = self._drain_seconds * QUICK_RECORDS / count
            self._drain_seconds = min(DRAIN_SECONDS, self._drain_seconds * 2, max(BUSY_DRAIN_SECONDS, wanted))

    def _has_let_go(self, now: float) -> bool:
        flags = self._drain.flags()
        if flags & DETACHED:
            return True
        if not flags & ENDED:
            self._ended_since = None
            return False
        self._ended_since = now if self._ended_since is None else self._ended_since
        return now - self._ended_since > DETACH_SECONDS

    def _sampled(self) -> bool:
        """Keep a sample, and do what else is due; whether memory is short."""
        sample = self._ending.sampled()
        try:
            self._host.add(sample)
            self._housekeeping.at_intervals()
        except OSError as error:
            self._log.write(f"the folder cannot be written: {error}")
        return is_tight(sample)


def main(arguments: list[str]) -> int:
    """Run with the folder of a rank and the trainer's process number; the exit code, which nobody sees."""
    folder, log = Path(arguments[0]), Log(STDERR)
    if arguments[1] == WORD:
        return write_facts(folder, log)
    settle()
    if not lock(STDERR):
        log.write("another sidecar is at work here: leaving")
        return 1
    try:
        Sidecar(folder, int(arguments[1]), log).run()
    except (OSError, NotARing) as error:
        log.write(f"leaving: {error}")
        return 1
    return 0
