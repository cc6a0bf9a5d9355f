"""The light dataclass means what the standard one means."""

import copy
import dataclasses
import pickle
from typing import Any

import pytest

from advisor.model import light_dataclass
from advisor.model.evidence import Evidence, Source
from advisor.model.failure import Failure


def declared(module: Any, **options: bool) -> type:
    """The same class by either decorator."""

    @module.dataclass(**options)
    class Base:
        size_bytes: int
        name: str = "block"

    @module.dataclass(**options)
    class Block(Base):
        owners: list[str] = module.field(default_factory=list)
        is_free: bool = False

        def __post_init__(self) -> None:
            if self.size_bytes < 0:
                raise ValueError("negative")

    return Block


OPTIONS = [
    {},
    {"frozen": True},
    {"slots": True, "kw_only": True},
    {"frozen": True, "slots": True, "kw_only": True},
    {"frozen": True, "eq": False},
    {"repr": False},
]


@pytest.fixture(params=OPTIONS, ids=str)
def pair(request: pytest.FixtureRequest) -> tuple[Any, Any]:
    """The class by the light decorator and by the standard one."""
    return declared(light_dataclass, **request.param), declared(dataclasses, **request.param)


def outcome(call: Any) -> object:
    """What a call gives, or the kind of its error."""
    try:
        return call()
    except (TypeError, ValueError, AttributeError) as error:
        return type(error)


@pytest.mark.parametrize(
    "values",
    [{"size_bytes": 1}, {"size_bytes": 2, "owners": ["a"], "is_free": True}, {}, {"size_bytes": -1}, {"size_bytes": 1, "color": 2}],
    ids=str,
)
def test_instances_hold_the_same_fields_and_refuse_the_same_arguments(pair: tuple[Any, Any], values: dict[str, object]) -> None:
    light, standard = (outcome(lambda kind=kind: dataclasses.asdict(kind(**values))) for kind in pair)
    assert light == standard


def test_arguments_by_position_are_taken_where_the_standard_one_takes_them(pair: tuple[Any, Any]) -> None:
    light, standard = (outcome(lambda kind=kind: dataclasses.asdict(kind(1, "tensor"))) for kind in pair)
    assert light == standard


def test_equality_hash_and_representation_are_the_same(pair: tuple[Any, Any]) -> None:
    def told(kind: Any) -> tuple[object, ...]:
        one, equal, other = kind(size_bytes=1), kind(size_bytes=1), kind(size_bytes=2)
        shown = repr(one).replace(type(one).__module__, "") if type(one).__repr__ is not object.__repr__ else None
        return one == equal, one == other, one == 1, kind.__hash__ is None, kind.__hash__ is object.__hash__, shown

    light, standard = map(told, pair)
    assert light == standard


def test_what_is_frozen_and_slotted_is_the_same(pair: tuple[Any, Any]) -> None:
    def told(kind: Any) -> tuple[object, ...]:
        one = kind(size_bytes=1)
        return (
            outcome(lambda: setattr(one, "size_bytes", 3)),
            outcome(lambda: delattr(one, "name")),
            hasattr(one, "__dict__"),
        )

    light, standard = map(told, pair)
    assert light == standard


def test_a_default_made_by_a_factory_is_not_shared() -> None:
    kind = declared(light_dataclass, slots=True)
    first, second = kind(size_bytes=1), kind(size_bytes=1)
    first.owners.append("a")
    assert second.owners == []


def test_both_ways_of_replacing_give_the_same_and_refuse_what_is_no_field() -> None:
    source = Source(path="train.log")
    assert light_dataclass.replace(source, where="line 2") == dataclasses.replace(source, where="line 2") == source.at("line 2")
    with pytest.raises(TypeError, match="color"):
        light_dataclass.replace(source, color=1)


def test_the_standard_library_sees_a_dataclass() -> None:
    assert dataclasses.is_dataclass(Source)
    assert [item.name for item in dataclasses.fields(Evidence)] == ["source", "rank", "gaps"]
    assert {"source", "rank", "gaps"} < {item.name for item in dataclasses.fields(Failure)}


def test_a_frozen_slotted_instance_survives_copying_and_pickling() -> None:
    source = Source(path="train.log", where="line 2")
    assert copy.copy(source) == copy.deepcopy(source) == pickle.loads(pickle.dumps(source)) == source


def test_a_missing_argument_is_named() -> None:
    with pytest.raises(TypeError, match="path"):
        Source()  # type: ignore[call-arg]


def test_a_subclass_that_is_not_decorated_inherits_the_constructor() -> None:
    class Special(Source):
        """A subclass without fields of its own."""

    assert Special(path="a").path == Special(path="a").path == "a"
