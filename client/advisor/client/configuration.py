"""The configuration of a run: what the user told, or the settings found in the variables of the callers."""

from typing import Any

from advisor.client.frame_scan import Scan, Variable
from advisor.client.object_fields import class_namespace, class_path, fields_of, instance_dict, mro
from advisor.client.plain_values import MOST_ITEMS, PlainValues

LONGEST_WORD = 120
"""Letters of a text that is taken for a setting (`dtype`, a path, a model's name) where only a variable's name speaks for it."""

LONGEST_CONSTANT = 400
"""Letters of a text under a name in UPPER_CASE, which may be a prompt of one line."""

SEED_NAMES = frozenset(
    {"seed", "random_seed", "manual_seed", "global_seed", "rng_seed", "base_seed", "init_seed", "train_seed", "torch_seed"}
)


def facts_of_configuration(told: Any, scan: Scan, values: PlainValues) -> dict[str, Any]:  # noqa: ANN401 - whatever the user gives
    """What is known of the settings.

    Args:
        told: `attach(config=...)`; None where nothing was.
        scan: of the callers' variables.
        values: within whose limits all is read.

    Returns:
        `told`: class and values, or None; `found`: name, where, class and values of each of the settings; `constants`: those of modules, by
        file; `variables`: other numbers and words, by place.
    """
    return {
        "told": None if told is None else {"class": class_path(type(told)), "values": _values_of(told, "config", values)},
        "found": [
            {
                "name": each.name,
                "where": each.where,
                "class": class_path(type(each.value)),
                "values": _values_of(each.value, each.name, values),
            }
            for each in scan.by_kind.get("config", ())
        ],
        "constants": _by_place([each for each in scan.constants if _is_short(each.value)], values),
        "variables": _by_place([each for each in scan.scalars if _is_setting(each.value)], values),
    }


def seeds_in(configuration: dict[str, Any]) -> dict[str, int]:
    """Whole numbers called seed, with where they stand, in the order of trust: told, found, constants, variables."""
    sources = [("config", configuration["told"]["values"])] if configuration["told"] else []
    sources += [(each["name"], each["values"]) for each in configuration["found"]]
    sources += [(place, values) for kind in ("constants", "variables") for place, values in configuration[kind].items()]
    seeds: dict[str, int] = {}
    for place, values in sources:
        _collect_seeds(values, place, seeds, level=0)
    return seeds


def _collect_seeds(values: Any, place: str, seeds: dict[str, int], *, level: int) -> None:  # noqa: ANN401 - plain values
    if not isinstance(values, dict):
        return
    for name, value in values.items():
        if type(value) is int and name.lower() in SEED_NAMES:
            seeds.setdefault(f"{place}.{name}", value)
        elif isinstance(value, dict) and level < 2:  # noqa: PLR2004 - `trainer.seed`, `experiment.trainer.seed`
            _collect_seeds(value, f"{place}.{name}", seeds, level=level + 1)


def _values_of(settings: Any, name: str, values: PlainValues) -> Any:  # noqa: ANN401 - any object, a value of JSON
    """The settings of an object: of a record its fields; of a class, or of an instance of one, its plain attributes."""
    kind = type(settings)
    if fields_of(settings, MOST_ITEMS) is not None or not (issubclass(kind, type) or instance_dict(settings)):
        return values.read(settings, name)
    owner = settings if issubclass(kind, type) else kind
    found: dict[str, Any] = {}
    for base in reversed(mro(owner)):
        found.update({key: value for key, value in class_namespace(base).items() if _is_attribute(key, value)})
    if owner is kind:
        found.update({key: value for key, value in instance_dict(settings).items() if _is_attribute(key, value)})
    return values.read(found, name)


def _is_attribute(name: Any, value: Any) -> bool:  # noqa: ANN401 - any key, any value
    is_plain = value is None or type(value) in (bool, int, float, str, list, tuple, dict)
    return type(name) is str and not name.startswith("__") and is_plain


def _by_place(variables: list[Variable], values: PlainValues) -> dict[str, dict[str, Any]]:
    places: dict[str, dict[str, Any]] = {}
    for each in variables:
        places.setdefault(each.where, {})[each.name] = values.read(each.value, each.name)
    return places


def _is_short(value: Any) -> bool:  # noqa: ANN401 - a constant
    """Not a table, and not a text of several lines, which is a program or data."""
    if type(value) is str:
        return len(value) <= LONGEST_CONSTANT and "\n" not in value
    return type(value) not in (tuple, list, dict) or len(value) <= MOST_ITEMS


def _is_setting(value: Any) -> bool:  # noqa: ANN401 - a scalar
    """Numbers and single words; sentences may be data, or somebody's."""
    return type(value) is not str or (0 < len(value) <= LONGEST_WORD and value.split() == [value])
