"""What is decoded of one event of a Kineto trace; the rest of it is skipped unparsed."""

import re
from typing import Any, TypeAlias

import msgspec

from advisor.model.trace import Identity

UNKNOWN = -1
"""Stands for a value that an event does not carry."""

NO_TEXT = msgspec.Raw(b"")


class Arguments(msgspec.Struct, frozen=True, gc=False):
    """The arguments that any category of event carries, by whatever name its age gives them.

    `shapes`, `types` and `inputs` stay text: equal texts are common, and each is interned once.
    """

    external_id: int = msgspec.field(default=UNKNOWN, name="External id")
    old_external_id: int = msgspec.field(default=UNKNOWN, name="external id")
    device: int = UNKNOWN
    stream: int | str = UNKNOWN
    correlation: int = UNKNOWN
    bytes: int | str = UNKNOWN
    shapes: msgspec.Raw = msgspec.field(default=NO_TEXT, name="Input Dims")
    old_shapes: msgspec.Raw = msgspec.field(default=NO_TEXT, name="Input dims")
    types: msgspec.Raw = msgspec.field(default=NO_TEXT, name="Input type")
    inputs: msgspec.Raw = msgspec.field(default=NO_TEXT, name="Concrete Inputs")
    sequence: int = msgspec.field(default=UNKNOWN, name="Sequence number")
    forward_thread: int = msgspec.field(default=UNKNOWN, name="Fwd thread id")
    sent_count: int = msgspec.field(default=UNKNOWN, name="In msg nelems")
    dtype: str = ""


class MemoryArguments(msgspec.Struct, frozen=True, gc=False):
    """The arguments of a "[memory]" mark."""

    delta_bytes: int = msgspec.field(default=0, name="Bytes")
    device: int = msgspec.field(default=UNKNOWN, name="Device Id")
    allocated_bytes: int = msgspec.field(default=UNKNOWN, name="Total Allocated")
    reserved_bytes: int = msgspec.field(default=UNKNOWN, name="Total Reserved")


def part_of_arguments(*names: str) -> "msgspec.json.Decoder[list[Any]]":
    """A decoder of lists of arguments of which only some fields are wanted: fewer fields take less time."""
    known = {field.name: field for field in msgspec.structs.fields(Arguments)}
    fields = [(name, known[name].type, msgspec.field(default=known[name].default, name=known[name].encode_name)) for name in names]
    kind: Any = msgspec.defstruct("PartOfArguments", fields, frozen=True, gc=False)
    return msgspec.json.Decoder(list[kind])


NO_ARGUMENTS = Arguments()
NO_MEMORY_ARGUMENTS = MemoryArguments()


class Complete(msgspec.Struct, gc=False, tag_field="ph", tag="X"):
    """An event with a duration. Times in microseconds."""

    ts: float
    name: str
    cat: str = ""
    pid: Identity = ""
    tid: Identity = ""
    dur: float = 0.0
    args: Arguments = NO_ARGUMENTS


class ExactComplete(msgspec.Struct, gc=False, tag_field="ph", tag="X"):
    """The same where a float would lose digits: `ts` is the text of the number."""

    ts: msgspec.Raw
    name: str
    cat: str = ""
    pid: Identity = ""
    tid: Identity = ""
    dur: float = 0.0
    args: Arguments = NO_ARGUMENTS


class Heading(msgspec.Struct, gc=False, tag_field="ph", tag="X", forbid_unknown_fields=True):
    """What stands before the times of an event with a duration in Kineto's own layout."""

    name: str
    cat: str = ""
    pid: Identity = ""
    tid: Identity = ""


HEADING = msgspec.json.Decoder(Heading)


class Mark(msgspec.Struct, gc=False, tag_field="ph", tag="i"):
    """An instant; those named "[memory]" and "[OutOfMemory]" count."""

    ts: float
    name: str
    args: MemoryArguments = NO_MEMORY_ARGUMENTS


MARKS = msgspec.json.Decoder(list[Mark])

Letters: TypeAlias = str

BEGIN_LETTERS: Letters = "BEbe"
"""Events whose duration is told by a pair; PyTorch writes none."""

IGNORED_LETTERS: Letters = "sftMCnSTpFPNODVvRIc(),"
"""Flows, metadata, counters and whatever else the format of Chrome's traces has."""


class Begin(msgspec.Struct, gc=False):
    """The base of paired events, which are counted and not read."""


Event: TypeAlias = Any
"""Complete, ExactComplete, Mark, a subclass of Begin, or a struct without fields to be ignored."""


def decoder(complete: "type[Complete | ExactComplete]") -> "msgspec.json.Decoder[list[Event]]":
    """A decoder of JSON lists of events, those with a duration as the given struct."""
    union: Any = complete | Mark
    for letter in BEGIN_LETTERS:
        union |= msgspec.defstruct(f"Begin{ord(letter)}", [], bases=(Begin,), tag_field="ph", tag=letter, gc=False)
    for letter in IGNORED_LETTERS:
        union |= msgspec.defstruct(f"Ignored{ord(letter)}", [], tag_field="ph", tag=letter, gc=False)
    return msgspec.json.Decoder(list[union])


_FINE_EPOCH_TIME = re.compile(rb'"ts":\s*\d{14,}\.\d*[1-9]')


def struct_for(first: bytes) -> "type[Complete | ExactComplete]":
    """The struct that keeps every digit of a trace's times.

    A float has 52 bits of fraction: from 2^43 microseconds on (13 digits) its steps are coarser
    than a nanosecond, and at microseconds since 1970 they are 0.25 µs.

    Args:
        first: the first slice of the events.
    """
    return ExactComplete if _FINE_EPOCH_TIME.search(first) else Complete
