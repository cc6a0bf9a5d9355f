import argparse
import dataclasses
import enum
import types
from collections import namedtuple

from advisor.client.object_fields import class_path, declared_fields, field, fields_of, instance_dict, is_a, static_attribute


class Trap:
    """Whose every reading runs code that must not be run."""

    def __init__(self):
        self.__dict__["inside"] = 1

    def __getattribute__(self, name):
        raise AssertionError(name)


class Pretender:
    """A proxy that lies about its class and its dictionary."""

    @property
    def __class__(self):
        raise AssertionError

    @property
    def __dict__(self):
        raise AssertionError


class Meta(type):
    def __getattribute__(cls, name):
        raise AssertionError(name)


class Metaclassed(metaclass=Meta):
    pass


@dataclasses.dataclass
class Plain:
    lr: float = 0.1
    size: int = 3


@dataclasses.dataclass
class Slotted:
    __slots__ = ("lr", "size")
    lr: float
    size: int


def test_no_code_of_a_class_runs_when_its_instances_are_read():
    assert instance_dict(object.__new__(Pretender)) == {}
    assert class_path(Metaclassed) == f"{__name__}.Metaclassed"
    assert fields_of(object.__new__(Pretender), 10) is None
    assert not is_a(object.__new__(Pretender), "builtins.dict")
    assert fields_of(object.__new__(Metaclassed), 10) is None
    assert static_attribute(Metaclassed, "nothing") is None


def test_an_attribute_hook_is_passed_by():
    trap = object.__new__(Trap)
    instance_dict(trap)["inside"] = 1
    assert field(trap, "inside") == 1
    assert field(trap, "outside") is None


def test_records_of_settings_give_their_fields():
    pair = namedtuple("pair", "a b")  # noqa: PYI024 - the untyped kind is what is read
    assert dict(fields_of({"a": 1}, 10)) == {"a": 1}
    assert dict(fields_of(Plain(), 10)) == {"lr": 0.1, "size": 3}
    assert dict(fields_of(Slotted(0.1, 3), 10)) == {"lr": 0.1, "size": 3}
    assert dict(fields_of(argparse.Namespace(a=1, b="x"), 10)) == {"a": 1, "b": "x"}
    assert dict(fields_of(types.SimpleNamespace(a=1), 10)) == {"a": 1}
    assert dict(fields_of(pair(1, 2), 10)) == {"a": 1, "b": 2}


def test_a_dictionarys_own_methods_are_passed_by():
    class Loud(dict):
        def items(self):
            raise AssertionError

        def __iter__(self):
            raise AssertionError

    assert dict(fields_of(Loud(a=1), 10)) == {"a": 1}


def test_no_more_fields_are_given_than_asked_for():
    assert len(list(fields_of({number: number for number in range(100)}, 7))) == 7
    assert len(list(fields_of(argparse.Namespace(**{f"a{number}": 0 for number in range(100)}), 7))) == 7


def test_other_objects_have_no_fields():
    class Thing:
        def __init__(self):
            self.a = 1

    for value in (Thing(), 1, "text", [1], enum.Enum("E", "a").a, Thing, None, (1, 2), lambda: 1):
        assert fields_of(value, 10) is None
    assert declared_fields(Thing()) is None


def test_an_unset_slot_is_unknown():
    assert field(object.__new__(Slotted), "lr") is None


def test_a_class_that_pydantic_or_omegaconf_made_is_known_by_its_path():
    base = type("BaseModel", (), {"__module__": "pydantic.main"})
    model = type("Settings", (base,), {})()
    model.__dict__["lr"] = 0.5
    assert dict(fields_of(model, 10)) == {"lr": 0.5}
    config = type("DictConfig", (), {"__module__": "omegaconf.dictconfig"})()
    config.__dict__["_content"] = {"lr": 1}
    assert dict(fields_of(config, 10)) == {"lr": 1}
    config.__dict__["_content"] = None
    assert fields_of(config, 10) is None
