"""Dataclasses that cost a start-up little: the same decorator, methods made when they are first needed.

The standard decorator compiles up to six functions a class and loads `inspect`: with the vocabulary's classes a third of the time in which
a short log is diagnosed. Here a class costs its creation; `__init__` is compiled when the first instance is made, and comparison, hash
and representation read the fields through one getter. Instances work with `dataclasses.fields`, `replace`, `asdict` and `is_dataclass`.
See docs/decisions/0013-light-dataclasses.md.
"""

from collections.abc import Callable
from functools import partial
from operator import attrgetter
from typing import Any, TypeVar

Class = TypeVar("Class")
MISSING: Any = object()


class Factory:
    """What `field(default_factory=...)` gives: makes the default anew for each instance."""

    __slots__ = ("make",)

    def __init__(self, make: Callable[[], Any]) -> None:
        self.make = make


def field(*, default: Any = MISSING, default_factory: Callable[[], Any] | None = None) -> Any:  # noqa: ANN401 - of the field's own type
    """A default: a value, or what makes one that instances must not share."""
    return default if default_factory is None else Factory(default_factory)


def replace(instance: Class, /, **changes: Any) -> Class:  # noqa: ANN401 - fields have any type
    """A copy with some fields changed.

    Raises:
        TypeError: if a name is no field.
    """
    return type(instance)(**{name: getattr(instance, name) for name in type(instance).__record_fields__} | changes)  # type: ignore[attr-defined]


def dataclass(  # noqa: PLR0913 - the standard decorator's options
    cls: Any = None,  # noqa: ANN401 - a class, with attributes that no type tells
    /,
    *,
    frozen: bool = False,
    slots: bool = False,
    kw_only: bool = False,
    eq: bool = True,
    repr: bool = True,  # noqa: A002 - the standard decorator's name
) -> Any:  # noqa: ANN401 - the class, or a decorator
    """The standard decorator's subset that this project uses, with the same meaning."""
    if cls is None:
        return lambda it: dataclass(it, frozen=frozen, slots=slots, kw_only=kw_only, eq=eq, repr=repr)
    own = {name: cls.__dict__.get(name, MISSING) for name in cls.__dict__.get("__annotations__", ())}  # noqa: RUF063 - loads `inspect`
    inherited: dict[str, Any] = getattr(cls, "__record_fields__", {})
    if slots:
        cls = _with_slots(cls, own)
    else:
        for name, default in own.items():
            if isinstance(default, Factory):
                delattr(cls, name)
    cls.__record_fields__ = fields = {**inherited, **own}
    cls.__record_values__ = attrgetter(*fields) if len(fields) > 1 else _few_values(tuple(fields))
    cls.__dataclass_fields__ = _StandardFields()
    defined: dict[str, Any] = {"__getstate__": _state, "__setstate__": _restore} if frozen and slots else {}
    defined |= {"__init__": _compiled_at_first_use(cls, is_frozen=frozen, is_keyword_only=kw_only)}
    defined |= {"__repr__": _repr} if repr else {}
    defined |= {"__eq__": _equal, "__hash__": _hash if frozen else None} if eq else {}
    defined |= {"__setattr__": _refuse_to_set, "__delattr__": _refuse_to_set} if frozen else {}
    for name, method in defined.items():
        # A class that defines `__eq__` has a `__hash__` of None from Python itself.
        if name not in cls.__dict__ or (name == "__hash__" and cls.__dict__[name] is None):
            setattr(cls, name, method)
    return cls


def _with_slots(cls: Any, own: dict[str, Any]) -> Any:  # noqa: ANN401 - as above
    kept = {name: value for name, value in cls.__dict__.items() if name not in own and name not in {"__dict__", "__weakref__"}}
    kept |= {"__slots__": tuple(own), "__qualname__": cls.__qualname__}
    return type(cls)(cls.__name__, cls.__bases__, kept)


def _few_values(names: tuple[str, ...]) -> Callable[[Any], tuple[Any, ...]]:
    return lambda instance: tuple(getattr(instance, name) for name in names)


def _compiled_at_first_use(cls: Any, *, is_frozen: bool, is_keyword_only: bool) -> Callable[..., None]:  # noqa: ANN401 - as above
    def first_init(self: Any, /, *arguments: Any, **values: Any) -> None:  # noqa: ANN401 - as above
        cls.__init__ = _compiled_init(cls, is_frozen=is_frozen, is_keyword_only=is_keyword_only)
        cls.__init__(self, *arguments, **values)

    return first_init


def _compiled_init(cls: Any, *, is_frozen: bool, is_keyword_only: bool) -> Callable[..., None]:  # noqa: ANN401 - as above
    """An `__init__` with the fields as parameters; only names of fields, which are identifiers, enter its text."""
    parameters, lines, scope = ["self"], ["pass"], {"set_": object.__setattr__, "MISSING": MISSING}
    if is_keyword_only and cls.__record_fields__:
        parameters.append("*")
    for name, default in cls.__record_fields__.items():
        value = name
        if isinstance(default, Factory):
            scope[f"make_{name}"] = default.make
            parameters.append(f"{name}=MISSING")
            value = f"make_{name}() if {name} is MISSING else {name}"
        elif default is MISSING:
            parameters.append(name)
        else:
            scope[f"default_{name}"] = default
            parameters.append(f"{name}=default_{name}")
        lines.append(f"set_(self, {name!r}, {value})" if is_frozen else f"self.{name} = {value}")
    if hasattr(cls, "__post_init__"):
        lines.append("self.__post_init__()")
    body = "\n    ".join(lines)
    exec(f"def __init__({', '.join(parameters)}):\n    {body}", scope)  # noqa: S102 - our own text, as the standard decorator does
    init: Any = scope["__init__"]
    init.__qualname__ = f"{cls.__qualname__}.__init__"
    return init  # type: ignore[no-any-return]


def _repr(self: Any) -> str:  # noqa: ANN401 - as above
    shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__record_fields__)
    return f"{type(self).__qualname__}({shown})"


def _equal(self: Any, other: object) -> Any:  # noqa: ANN401 - as above; bool or NotImplemented
    if type(other) is not type(self):
        return NotImplemented
    kind: Any = type(self)
    return kind.__record_values__(self) == kind.__record_values__(other)


def _hash(self: Any) -> int:  # noqa: ANN401 - as above
    return hash(type(self).__record_values__(self))


def _refuse_to_set(self: Any, name: str, _value: object = None) -> None:  # noqa: ANN401 - as above
    from dataclasses import FrozenInstanceError  # noqa: PLC0415 - loads `inspect`, and only a fault needs it

    raise FrozenInstanceError(f"{type(self).__qualname__} is frozen: its field {name!r} cannot be changed")


def _state(self: Any) -> list[Any]:  # noqa: ANN401 - as above
    return [getattr(self, name) for name in self.__record_fields__]


def _restore(self: Any, state: list[Any]) -> None:  # noqa: ANN401 - as above
    for name, value in zip(self.__record_fields__, state, strict=True):
        object.__setattr__(self, name, value)


def _same(value: Any) -> Any:  # noqa: ANN401 - as above
    return value


class _StandardFields:
    """`__dataclass_fields__` as the standard library's functions expect it, made when one of them asks."""

    def __get__(self, instance: object, owner: Any = None) -> Any:  # noqa: ANN401 - as above
        import dataclasses  # noqa: PLC0415 - loads `inspect`; production code does not ask

        specs: list[tuple[str, Any, Any]] = []
        for name, default in owner.__record_fields__.items():
            if isinstance(default, Factory):
                specs.append((name, Any, dataclasses.field(default_factory=default.make)))
            elif default is MISSING:
                specs.append((name, Any, dataclasses.field()))
            else:
                specs.append((name, Any, dataclasses.field(default_factory=partial(_same, default))))
        made: Any = dataclasses.make_dataclass("made", specs, kw_only=True)
        return made.__dataclass_fields__
