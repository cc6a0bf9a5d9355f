"""What is done now and then beside watching: the index of the folder, the limits of the spool."""

import os
import time
from pathlib import Path

from advisor.client.host_record import HOST
from advisor.client.sidecar.index import Index
from advisor.client.sidecar.log import Log
from advisor.client.sidecar.spool_survey import is_leftover
from advisor.client.sidecar.upkeep import keep, limits_of
from advisor.client.spool import NEW_PREFIX, STEPS

UPKEEP_SECONDS = 600.0
FIRST_UPKEEP_SECONDS = 20.0
"""After the start: not at once, when the trainer loads its data."""

MOST_HASHED_BYTES = 64 * 1024 * 1024
"""At a time, while the trainer lives: a twentieth of a second in which its death would not be seen."""

CLOCK_JUMP_SECONDS = 3600.0
"""The wall clock moved so far against the monotonic one: ages of files mean nothing until somebody starts anew."""


class Housekeeping:
    """Of one rank's folder, and of the spool it lies in."""

    def __init__(self, folder: Path, log: Log) -> None:
        self._folder, self._log = folder, log
        self._index: Index | None = None
        self._changed = 0
        self._next_upkeep = time.monotonic() + FIRST_UPKEEP_SECONDS
        self._clocks_apart_seconds = time.time() - time.monotonic()

    def at_intervals(self) -> None:
        """Do what is due.

        Raises:
            OSError: if the folder cannot be written.
        """
        changed = self._folder.stat().st_mtime_ns
        if changed != self._changed:
            is_whole = self._update_index(most_bytes=MOST_HASHED_BYTES)
            self._changed = self._folder.stat().st_mtime_ns if is_whole else 0
        if time.monotonic() >= self._next_upkeep:
            self._next_upkeep = time.monotonic() + UPKEEP_SECONDS
            self._keep()

    def finish(self, trainer: int) -> None:
        """The trainer is dead, and nothing in the folder changes any more."""
        try:
            self._remove_leftovers(trainer)
            self._update_index(also=(STEPS, HOST))
        except OSError as error:
            self._log.write(f"the index is not whole: {error}")
        self._keep()

    def _update_index(self, also: tuple[str, ...] = (), most_bytes: int | None = None) -> bool:
        if self._index is None:
            self._index = Index(self._folder)
        return self._index.update(also=also, most_bytes=most_bytes)

    def _keep(self) -> None:
        apart = abs(time.time() - time.monotonic() - self._clocks_apart_seconds)
        by_age = apart < CLOCK_JUMP_SECONDS
        if not by_age:
            self._log.write(f"the clock jumped by {apart:.0f} s: nothing is dropped for its age")
        try:
            done = keep(self._folder.parent.parent, limits_of(os.environ), by_age=by_age)
        except OSError as error:
            self._log.write(f"the spool's limits could not be looked after: {error}")
            return
        if done is not None and done.dropped_count:
            self._log.write(
                f"dropped {done.dropped_count} files of {done.dropped_bytes} bytes ({done.dropped_run_count} whole ranks); "
                f"{done.size_bytes} bytes are left"
            )

    def _remove_leftovers(self, trainer: int) -> None:
        for name in os.listdir(self._folder):  # noqa: PTH208 - names are what is wanted
            if name.startswith(f"{NEW_PREFIX}{trainer}-") or is_leftover(name, 0.0):
                (self._folder / name).unlink(missing_ok=True)
