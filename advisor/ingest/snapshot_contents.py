"""What a snapshot holds, before devices are made of it; and how that is got from a snapshot that was loaded whole."""

from collections import Counter

from advisor.ingest.snapshot_budget import Budget
from advisor.ingest.snapshot_columns import MOST_CATEGORIES, MOST_TEXTS, Names, event_table
from advisor.ingest.snapshot_segments import LARGEST_DEVICE_INDEX, DeviceRows, device_rows
from advisor.ingest.snapshot_stacks import StackTable
from advisor.model.dataclass import dataclass, field
from advisor.model.errors import UnreadableInput
from advisor.model.snapshot import EventTable

KEYS = ("segments", "device_traces")
"""A snapshot has at least one of these; `torch.cuda.memory_snapshot()` is the bare list under the first."""

REMEDY = "give what torch.cuda.memory._dump_snapshot('snapshot.pickle') writes"


@dataclass(slots=True, kw_only=True)
class SnapshotContents:
    """A snapshot's parts, by device.

    Attributes:
        stacks / categories / texts: what the tables refer to.
        problems: what was left out, by kind, counted.
        segment_rows: the devices that have segments.
        event_tables: the devices that have events.
        segment_count / event_count / history_count: segments, events and lists of events that it claims to hold.
        rest: everything else in it.
    """

    stacks: StackTable
    categories: Names = field(default_factory=lambda: Names(MOST_CATEGORIES))
    texts: Names = field(default_factory=lambda: Names(MOST_TEXTS))
    problems: Counter[str] = field(default_factory=Counter)
    segment_rows: dict[int, DeviceRows] = field(default_factory=dict)
    event_tables: dict[int, EventTable] = field(default_factory=dict)
    segment_count: int = 0
    event_count: int = 0
    history_count: int = 0
    rest: dict[object, object] = field(default_factory=dict)

    def read_segments(self, segments: object) -> None:
        """Take over the segments; they come before the events, so that stacks are numbered alike however it is read."""
        self.segment_rows = device_rows(segments, self.stacks, self.problems)


def loaded_contents(loaded: object, path: str, budget: Budget) -> SnapshotContents:
    """The contents of a snapshot that was loaded whole; its events are given away on the way.

    Args:
        loaded: what the pickle or the JSON holds.
        path: how to call it in messages.
        budget: how many elements it may have.

    Raises:
        UnreadableInput: it is no snapshot, or unfolds to more elements than its size allows.
    """
    if type(loaded) is list:
        loaded = {"segments": loaded}
    if type(loaded) is not dict or not any(type(loaded.get(key)) is list for key in KEYS):
        raise UnreadableInput(
            f"{path} holds no allocator snapshot: it has neither `segments` nor `device_traces`",
            REMEDY,
        )
    segments, histories = loaded.get("segments"), loaded.get("device_traces")
    histories = histories[: LARGEST_DEVICE_INDEX + 1] if type(histories) is list else []
    contents = SnapshotContents(
        stacks=StackTable(budget),
        segment_count=element_count(segments),
        event_count=sum(map(element_count, histories)),
        history_count=len(histories),
        rest=loaded,
    )
    budget.spend_entries(contents.segment_count + contents.event_count)
    contents.read_segments(segments)
    contents.event_tables = {
        index: event_table(history, contents.stacks, contents.categories, contents.texts, contents.problems)
        for index, history in enumerate(histories)
        if history
    }
    return contents


def element_count(values: object) -> int:
    """Elements that a list claims to have; what should be a list and is none counts as one."""
    return len(values) if type(values) is list else int(values is not None)
