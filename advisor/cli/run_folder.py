"""Read the folder of one rank of a run, and find the newest run of this user's spool."""

import os
import re

from advisor.model.errors import UnreadableInput, WrongUsage
from advisor.model.evidence import Evidence

LARGEST_DOCUMENT_BYTES = 16 * 1024**2
LARGEST_STEPS_BYTES = 512 * 1024**2
"""Two and a half million steps; of a longer run the newest are read."""

FAILURE = re.compile(r"failure-\d+\.json")
KNOWN = re.compile(r"ring|steps|index\.jsonl|sidecar\.log|dropped\.json|host|(?:run|record|end|failure-\d+)\.json|registry-[a-z]+\.json")
"""Files of a rank's folder that are read together; what else is in it is evidence of a known kind of its own."""


def is_rank_folder(path: str) -> bool:
    """Whether attach() made a folder."""
    if not os.path.isdir(path):  # noqa: PTH112 - pathlib costs start-up time
        return False
    from advisor.client.layout import MAGIC  # noqa: PLC0415 - only folders need the layout of one
    from advisor.client.spool import RING  # noqa: PLC0415 - the same

    ring = os.path.join(path, RING)  # noqa: PTH118 - pathlib costs start-up time
    try:
        with open(ring, "rb") as file:  # noqa: PTH123 - the same
            return file.read(len(MAGIC)) == MAGIC
    except OSError:
        return False


def read_rank_folder(folder: str) -> tuple[Evidence, ...]:
    """The steps, record, failures and end of one rank.

    Raises:
        UnreadableInput: if the ring is none that this version reads; other files that are damaged leave a gap.
    """
    from advisor.client.spool import RING, RUN  # noqa: PLC0415 - only folders need the layout of one
    from advisor.ingest.run_documents import failure_text, run_end, run_record  # noqa: PLC0415 - msgspec loads only for runs
    from advisor.ingest.run_steps import read_run_steps  # noqa: PLC0415 - numpy loads only for runs
    from advisor.ingest.text_inputs import read_text  # noqa: PLC0415 - the same
    from advisor.model.dataclass import replace  # noqa: PLC0415 - the same

    ring, steps = read_run_steps(_bytes(folder, RING), _bytes(folder, "steps", LARGEST_STEPS_BYTES), folder)
    gaps: list[str] = []
    rank = ring.trainer.rank
    found: list[Evidence] = []
    for name in sorted(filter(FAILURE.fullmatch, os.listdir(folder))):  # noqa: PTH208 - the same
        text = failure_text(_document(folder, name, gaps))
        if text:
            path = os.path.join(folder, name)  # noqa: PTH118 - the same
            found.extend(replace(item, rank=rank) for item in read_text(text.encode("utf-8", "replace"), path))
    record = run_record(_document(folder, RUN, gaps), _document(folder, "record.json", gaps), steps.metrics, folder)
    end = _document(folder, "end.json", gaps)
    if not end and ring.state is not None:
        end = {"how": "running", "phase": ring.state.phase, "step": ring.state.step}
    found.append(run_end(end, folder, rank))
    return (replace(steps, gaps=(*steps.gaps, *gaps)), *found, replace(record, rank=rank))


def newest_run() -> str:
    """The folder of the run in this user's spool that was written to last.

    Raises:
        WrongUsage: if there is none.
    """
    from advisor.client.spool import spool_root  # noqa: PLC0415 - needed where no path is named

    root = str(spool_root())
    runs = []
    if os.path.isdir(root):  # noqa: PTH112 - the same
        with os.scandir(root) as entries:
            runs = [(_last_written(entry.path), entry.path) for entry in entries if entry.is_dir(follow_symlinks=False)]
    runs = [run for run in runs if run[0] > 0]
    if not runs:
        raise WrongUsage(
            f"diagnose: no PATH given, and no run in {root}",
            "name a log, a snapshot, a trace or a folder (advisor-cli diagnose train.log), or let advisor.client.attach() watch a training",
        )
    return max(runs)[1]


def _last_written(run: str) -> float:
    """When a rank of a run last wrote a file; 0 for what is no run."""
    times = [0.0]
    with os.scandir(run) as ranks:
        for rank in ranks:
            if rank.is_dir(follow_symlinks=False) and is_rank_folder(rank.path):
                with os.scandir(rank.path) as files:
                    times.extend(file.stat(follow_symlinks=False).st_mtime for file in files)
    return max(times)


def _bytes(folder: str, name: str, most: int = LARGEST_DOCUMENT_BYTES) -> bytes:
    """A file of the folder, its end where it is longer than that; empty where it is missing or a link."""
    try:
        descriptor = os.open(os.path.join(folder, name), os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)  # noqa: PTH118 - the same
    except OSError:
        return b""
    with os.fdopen(descriptor, "rb") as file:
        size = os.fstat(descriptor).st_size
        if size > most:
            from advisor.client.layout import RECORD_BYTES  # noqa: PLC0415 - rarely needed

            file.seek((size - most) // RECORD_BYTES * RECORD_BYTES)
        return file.read(most)


def _document(folder: str, name: str, gaps: list[str]) -> dict[str, object]:
    from advisor.ingest.run_documents import read_document  # noqa: PLC0415 - msgspec loads only for runs

    data = _bytes(folder, name)
    if not data:
        return {}
    try:
        return read_document(data, name)
    except UnreadableInput as error:
        gaps.append(str(error))
        return {}
