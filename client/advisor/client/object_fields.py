"""Read the fields of an object without running any code of its class: no property, no `__getattr__`, no descriptor in Python."""

from collections.abc import Callable, Iterator
from itertools import islice
from types import GetSetDescriptorType, MemberDescriptorType
from typing import Any

mro = type.__dict__["__mro__"].__get__
"""The bases of a class, itself first, whatever its metaclass says."""

class_namespace = type.__dict__["__dict__"].__get__
"""What a class itself defines."""

_module_name = type.__dict__["__module__"].__get__
_qualified_name = type.__dict__["__qualname__"].__get__


def static_attribute(kind: type, name: str) -> Any:  # noqa: ANN401 - whatever the class holds
    """What a class or one of its bases holds under a name, untouched; None where there is nothing."""
    for base in mro(kind):
        namespace = class_namespace(base)
        if name in namespace:
            return namespace[name]
    return None


def instance_dict(value: Any) -> dict[str, Any]:  # noqa: ANN401 - any object
    """The dictionary of an instance; empty where it has none, or where the class made `__dict__` something of its own."""
    return dict_reader(type(value))(value)


def dict_reader(kind: type) -> Callable[[Any], dict[str, Any]]:
    """What gives the dictionaries of a class's instances, for whoever looks at many of one class."""
    descriptor = static_attribute(kind, "__dict__")
    if type(descriptor) is GetSetDescriptorType or type(descriptor) is MemberDescriptorType:
        read: Callable[[Any], dict[str, Any]] = descriptor.__get__
        return read
    return _no_dict


def _no_dict(_value: Any) -> dict[str, Any]:  # noqa: ANN401 - any object
    return {}


def field(value: Any, name: str) -> Any:  # noqa: ANN401 - any object, any value
    """A field of an instance: in its dictionary or in a slot; None where it is neither, or not set."""
    own = instance_dict(value)
    if name in own:
        return own[name]
    slot = static_attribute(type(value), name)
    if type(slot) is MemberDescriptorType:
        try:
            return slot.__get__(value)
        except AttributeError:
            return None
    return None


def class_path(kind: type) -> str:
    """Module and name of a class, as texts that its metaclass cannot make up."""
    module = _module_name(kind)
    name: str = _qualified_name(kind)
    return f"{module}.{name}" if type(module) is str and module != "builtins" else name


def is_a(value: Any, *paths: str) -> bool:  # noqa: ANN401 - any object
    """Whether a class of one of these paths is among the value's; nothing need be imported to ask."""
    return any(class_path(base) in paths for base in mro(type(value)))


def declared_fields(value: Any) -> tuple[str, ...] | None:  # noqa: ANN401 - any object
    """Names of the fields of an instance of a dataclass, an attrs class or a named tuple; None of any other object."""
    kind = type(value)
    declared = static_attribute(kind, "__dataclass_fields__")
    if type(declared) is dict:
        return tuple(declared)
    declared = static_attribute(kind, "__attrs_attrs__")
    if declared is not None and issubclass(type(declared), tuple):
        return tuple(name for each in tuple.__iter__(declared) if type(name := field(each, "name")) is str)
    declared = static_attribute(kind, "_fields")
    if issubclass(kind, tuple) and type(declared) is tuple:
        return tuple(name for name in declared if type(name) is str)
    return None


RECORDS = {
    "argparse.Namespace": "",
    "types.SimpleNamespace": "",
    "pydantic.main.BaseModel": "",
    "transformers.configuration_utils.PretrainedConfig": "",
    "transformers.configuration_utils.PreTrainedConfig": "",
    "transformers.generation.configuration_utils.GenerationConfig": "",
    "absl.flags._flagvalues.FlagValues": "__flags",
    "omegaconf.dictconfig.DictConfig": "_content",
    "ml_collections.config_dict.config_dict.ConfigDict": "_fields",
}
"""Classes whose instances are records of settings, and the attribute that holds the settings; empty where they are the attributes."""


def fields_of(value: Any, most: int) -> Iterator[tuple[Any, Any]] | None:  # noqa: ANN401 - any object
    """The fields of an object that is a record of settings, at most so many; None of any other object.

    Records are dictionaries and their subclasses, dataclasses, attrs classes, named tuples, `argparse.Namespace`, `SimpleNamespace`,
    models of pydantic, and the configurations of OmegaConf, ml_collections and transformers.
    """
    kind = type(value)
    if issubclass(kind, dict):
        return islice(dict.items(value), most)
    names = declared_fields(value)
    if names is not None:
        pairs = (
            zip(names, tuple.__iter__(value), strict=False) if issubclass(kind, tuple) else ((name, field(value, name)) for name in names)
        )
        return islice(pairs, most)
    own = instance_dict(value)
    attribute = next((RECORDS[path] for base in mro(kind) if (path := class_path(base)) in RECORDS), None)
    held: Any = own.get(attribute) if attribute else own
    return islice(dict.items(held), most) if attribute is not None and issubclass(type(held), dict) else None
