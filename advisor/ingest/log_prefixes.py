"""What launchers and loggers put before a line, and whom the line is from: "[rank3]:", "(RayWorker pid=7)", timestamps."""

import json
import re

from advisor.ingest.lazy_pattern import LazyPattern
from advisor.model.dataclass import dataclass

_INDENTED = frozenset(" \t")
"""A line that begins so has no prefix; most lines of tracebacks do."""

_ANSI = LazyPattern(r"\x1b(?:\[[0-9;:?]{0,48}[ -/]{0,4}[@-~]|\][^\x07\x1b]{0,256}(?:\x07|\x1b\\)|[@-Z\\^_])")

_LONGEST_JSON = 65_536
"""Characters of a container runtime's JSON line that are decoded; longer ones are read as they are."""

_MOST_PREFIXES = 6
"""Prefixes that are taken off one line: orchestrator, launcher, worker, time, level, module."""

LARGEST_RANK = 1_000_000
"""Beyond any job; a larger number in the place of a rank is something else."""


@dataclass(frozen=True, slots=True)
class Speaker:
    """Whom a line is from; None where it does not say.

    Attributes:
        rank: the rank of the distributed job.
        pid: the process.
        worker: the worker's name, as Ray and vLLM print it.
    """

    rank: int | None = None
    pid: int | None = None
    worker: str = ""


NOBODY = Speaker()

_SPEAKERS = (
    LazyPattern(r"\[rank ?(?P<rank>\d{1,7})\]:? ?", re.IGNORECASE),
    LazyPattern(r"\[(?:default|trainer|worker)?_?(?P<rank>\d{1,7})\]: ?"),
    LazyPattern(r"\((?P<worker>[A-Za-z_][\w.:\-]{0,60}) (?:rank=(?P<rank>\d{1,7}) )?pid=(?P<pid>\d{1,9})[^)\n]{0,60}\) ?"),
    LazyPattern(r"\(pid=(?P<pid>\d{1,9})[^)\n]{0,60}\) ?"),
    LazyPattern(r"\[(?:rank|RANK)[:= ](?P<rank>\d{1,7})[^\]\n]{0,30}\]:? ?"),
    LazyPattern(r"(?:Rank|RANK|rank) ?(?P<rank>\d{1,7}): "),
)

_TENSOR_PARALLEL_WORKER = LazyPattern(r"(?:_|\b)TP(\d{1,4})\b")

_SRUN = LazyPattern(r"\s{0,6}(?P<rank>\d{1,7}): ")

_TIME = r"\d{1,2}:\d{2}:\d{2}(?:[.,]\d{1,9})?"
_DATE = r"(?:\d{4}[-/])?\d{1,2}[-/]\d{1,2}"
_NOISE = (
    LazyPattern(rf"\[?{_DATE}[T ]{{1,2}}{_TIME}(?:Z|[+-]\d\d:?\d\d)?\]?(?: -)?,? ?"),
    LazyPattern(rf"\[?{_TIME}\]? (?=\S)"),
    LazyPattern(r"(?:stdout|stderr) [FP] "),
    LazyPattern(r"[\w.\-]{1,60}[ \t]{1,20}\| (?=\S| )"),
    LazyPattern(r"(?:\| )?\[?(?:TRACE|DEBUG|INFO|WARN|WARNING|ERROR|CRITICAL|FATAL)\]?(?:[ \t]{1,9}|:(?=\S)|: ?)(?:\| )?"),
    LazyPattern(r"\[[\w.\-/]{1,60}\.(?:py|cc|cpp|h):\d{1,6}(?::\w{1,60})?\] ?"),
    LazyPattern(rf"\[?[IWEF]\d{{4}} {_TIME}(?: {{1,6}}\d{{1,9}})? [\w.\-/]{{1,60}}:\d{{1,6}}\] ?"),
    LazyPattern(r"\[[A-Za-z_][\w.]{1,60}:\d{1,6}:[\w<>.]{1,60}\] ?"),
    LazyPattern(r"[A-Za-z_][\w.]{1,80}:[\w<>]{1,60}:\d{1,6} - "),
    LazyPattern(r"(?:> ){1,4}"),
)

_MAY_BE_PREFIX = LazyPattern(
    r"[\[({0-9>|]|[Rr]ank|RANK|std(?:out|err) [FP]|TRACE|DEBUG|INFO|WARN|ERROR|CRIT|FATAL|[IWEF]\d|[\w.\-]{1,60}[ \t]{1,20}\| |"
    r"[A-Za-z_][\w.]{1,80}:[\w<>]{1,60}:\d"
)
"""One look that spares most lines the others."""


def plain(text: str) -> str:
    """The text without terminal colors, cursor movements and titles."""
    return _ANSI.sub("", text) if "\x1b" in text else text


def without_prefixes(line: str, *, srun_labels: bool = False) -> tuple[str, Speaker]:
    """A line as its program printed it, indentation kept, and whom it is from.

    Args:
        line: one line, without colors.
        srun_labels: whether the log has the labels of `srun -l` ("2: ").
    """
    if not srun_labels and line[:1] in _INDENTED:
        return line, NOBODY
    line = _without_container_json(line)
    rank: int | None = None
    pid: int | None = None
    worker = ""
    position = 0
    if srun_labels and (label := _SRUN.match(line)):
        rank, position = _rank(label["rank"]), label.end()
    for _ in range(_MOST_PREFIXES):
        if _MAY_BE_PREFIX.match(line, position) is None:
            break
        speaker = next((m for p in _SPEAKERS if (m := p.match(line, position))), None)
        if speaker is not None:
            said = speaker.groupdict()
            worker = said.get("worker") or worker
            pid = int(said["pid"]) if said.get("pid") else pid
            found = _rank(said.get("rank")) if said.get("rank") else _rank_of_worker(worker)
            rank = found if found is not None else rank
            position = speaker.end()
            continue
        noise = next((m for p in _NOISE if (m := p.match(line, position)) and m.end() > position), None)
        if noise is None:
            break
        position = noise.end()
    if rank is None and pid is None and not worker:
        return line[position:], NOBODY
    return line[position:], Speaker(rank, pid, worker)


def has_srun_labels(head: str) -> bool:
    """Whether most lines of the head of a log begin with a task number, as `srun -l` prints them."""
    lines = [line for line in head.split("\n") if line.strip()]
    labelled = [line for line in lines if _SRUN.match(line)]
    return len(labelled) >= 2 and 2 * len(labelled) > len(lines)  # noqa: PLR2004 - one line proves nothing


def _without_container_json(line: str) -> str:
    """The log text of a line of Docker's JSON file driver; any other line as it is."""
    if not line.startswith('{"log":"') or len(line) > _LONGEST_JSON:
        return line
    try:
        said = json.loads(line)
    except (ValueError, RecursionError):
        return line
    text = said.get("log") if isinstance(said, dict) else None
    return text.rstrip("\r\n").replace("\n", "\\n") if isinstance(text, str) else line


def _rank(digits: str | None) -> int | None:
    rank = int(digits) if digits else None
    return rank if rank is not None and rank < LARGEST_RANK else None


def _rank_of_worker(worker: str) -> int | None:
    found = _TENSOR_PARALLEL_WORKER.search(worker)
    return int(found[1]) if found else None
