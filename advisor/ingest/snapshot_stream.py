"""Read a pickled snapshot so that its events become columns as they are read, and are never in memory as dictionaries.

It is for snapshots as `pickle.dump` writes them, and gives for these exactly what loading them whole does. Everything else (a history
that is referred to again, a history before the segments, an event with something wrong in it, whatever only damaged or hostile files
hold) raises `NotStreamableError`, and is to be loaded whole.
"""

from typing import BinaryIO

from advisor.ingest.pickle_values import APPENDS, SETITEMS, STOP, Memo, NotStreamableError, PickleValues, Values, pairs
from advisor.ingest.snapshot_budget import Budget
from advisor.ingest.snapshot_contents import SnapshotContents, element_count
from advisor.ingest.snapshot_prefix import HISTORIES, Prefix, read_prefix
from advisor.ingest.snapshot_rows import EventRows
from advisor.ingest.snapshot_runs import EventRuns
from advisor.ingest.snapshot_segments import LARGEST_DEVICE_INDEX
from advisor.ingest.snapshot_stacks import StackTable
from advisor.model.errors import UnreadableInput

MOST_SLOW_BYTES = 2 * 1024 * 1024
"""Bytes that may be read opcode by opcode, whatever share of all they are: the first event of each stack."""

MOST_SLOW_SHARE = 0.05
"""Where more than this share has to be read opcode by opcode, loading the pickle whole is faster."""

MOST_EVENT_BYTES = 256 * 1024
"""How far an event is followed; with a hundred frames that are all new it takes a twentieth."""

IN_FILE = 1
"""The level of containers at which the file's keys are."""

IN_HISTORIES = 2
"""The level of containers at which the devices' histories are, if there are several."""


def streamed_contents(stream: BinaryIO, input_bytes: int, budget: Budget) -> SnapshotContents:
    """The contents of a pickled snapshot.

    Args:
        stream: the pickle, from here to its end.
        input_bytes: how many bytes that are.
        budget: how many elements it may have.

    Raises:
        NotStreamableError: it has to be loaded whole; nothing is said about whether that succeeds.
    """
    try:
        return _contents(stream, input_bytes, budget)
    except UnreadableInput as refusal:
        raise NotStreamableError(str(refusal)) from None
    except (MemoryError, RecursionError, OverflowError) as error:
        raise NotStreamableError(type(error).__name__) from None


def _contents(stream: BinaryIO, input_bytes: int, budget: Budget) -> SnapshotContents:
    prefix = read_prefix(stream)
    contents = SnapshotContents(stacks=StackTable(budget))
    segments = prefix.values.get("segments")
    contents.read_segments(segments)
    if contents.stacks.problems:
        raise NotStreamableError("something is wrong with a stack")
    runs = EventRuns(contents.stacks, contents.categories, contents.texts)
    runs.remember(prefix.memo)
    histories, behind = _Histories(stream, input_bytes, prefix, runs).read()
    if behind.keys() & {*prefix.values, HISTORIES} or len(histories) > LARGEST_DEVICE_INDEX + 1:
        raise NotStreamableError("a key that stands twice, or more devices than there are")
    contents.segment_count = element_count(segments)
    contents.event_count = runs.event_count
    contents.history_count = len(histories)
    contents.rest = prefix.values | behind
    budget.spend_entries(contents.segment_count + contents.event_count)
    contents.event_tables = {index: rows.table() for index, rows in enumerate(histories) if rows.count}
    return contents


class _HistoryList(list[object]):
    """The list under `device_traces`."""


class _History(list[object]):
    """The list of one device's events; it stays empty."""

    def __init__(self) -> None:
        super().__init__()
        self.rows = EventRows()


class _Memo(Memo):
    """The memo, in which the lists of frames of events are made again when they are asked for."""

    def __init__(self, known: dict[int, object], runs: EventRuns) -> None:
        super().__init__(known)
        self._runs = runs

    def __missing__(self, number: int) -> object:
        frames = self._runs.learned.frames_of(number)
        return super().__missing__(number) if frames is None else frames


class _Histories(PickleValues):
    """The pickle of a snapshot from its histories on; knows which container is which by where it stands."""

    def __init__(self, stream: BinaryIO, input_bytes: int, prefix: Prefix, runs: EventRuns) -> None:
        super().__init__(stream, prefix.length_bytes, input_bytes, _Memo(prefix.memo, runs), prefix.memo_count)
        self._runs = runs
        self._most_slow_bytes = prefix.length_bytes + MOST_SLOW_BYTES
        self._is_in_histories = False

    def read(self) -> tuple[list[EventRows], dict[object, object]]:
        """The events of every device, and what the file has behind them."""
        histories = _HistoryList()
        items, closing = self.values(IN_FILE, [HISTORIES, histories], [histories])
        if closing != SETITEMS or self.opcode() != STOP:
            raise NotStreamableError("the file does not end behind its keys")
        return [history.rows for history in histories if isinstance(history, _History)], pairs(items[2:])

    def refill(self) -> None:
        """Move the window on, unless too much had to be read opcode by opcode."""
        super().refill()
        if self.offset - self._runs.run_bytes > self._most_slow_bytes + MOST_SLOW_SHARE * self.offset:
            raise NotStreamableError("little that is like what was read before")
        if self._runs.event_offset is not None and self.offset - self._runs.event_offset > MOST_EVENT_BYTES:
            raise NotStreamableError("a long event")

    def new_list(self, items: Values, depth: int) -> Values:
        """A history where one can stand, or another list of an outer level."""
        is_history = self._is_in_histories if depth == IN_HISTORIES else (items and isinstance(items[-1], _HistoryList))
        return _History() if is_history else []

    def is_kept(self, value: object) -> bool:
        """Whether what is memoized can be asked for again: not what is incomplete while events are read."""
        return not isinstance(value, _History)

    def is_read_by_others(self, target: object, depth: int) -> bool:
        """Whether what a new container at an outer level holds are events."""
        if depth == IN_FILE:
            self._is_in_histories = isinstance(target, _HistoryList)
        return isinstance(target, _History)

    def read_by_others(self, target: object) -> None:
        """Read events."""
        if isinstance(target, _History):
            self._runs.read(self, target.rows)

    def put(self, target: object, items: Values, closing: int) -> None:
        """Put values into a new container."""
        if isinstance(target, _HistoryList) and closing == APPENDS and all(isinstance(item, _History) for item in items):
            target.extend(items)
        elif isinstance(target, _History) and closing == APPENDS:
            for event in items:
                self._runs.add(event, target.rows)
        else:
            super().put(target, items, closing)
