"""Look a device up by the exact name that the runtime prints, or by a short one that is typed.

A name is never matched by its beginning: A10, A10G and A100 are three cards. An unknown name is
None, or an error that lists its neighbors, and never another card.
"""

import functools
import importlib
import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from advisor.hardware.declared import declared_device
from advisor.model.ceilings import DeviceCeilings, Figure
from advisor.model.errors import WrongUsage
from advisor.model.evidence import Source

CATALOGUE = Path(__file__).with_name("catalogue.toml")
ENTRY_HEADING = "\n[[device]]\n"

NEIGHBOR_COUNT = 6
"""Names that an error lists: more do not fit in one line."""
NEIGHBOR_SIMILARITY_RATIO = 0.6
"""difflib's own default; below it the names have little in common."""


def look_up(name: str) -> DeviceCeilings | None:
    """The device that a runtime calls `name` ("NVIDIA A100-SXM4-80GB"), or None.

    Only full names match, letter for letter; short names of the command line do not (see
    `require`).
    """
    wanted = name.strip()
    for text in _entries_with(wanted):
        entry = _parse(text)
        if wanted in entry["runtime_names"]:
            return _ceilings(entry, wanted)
    return None


def require(name: str) -> DeviceCeilings:
    """The device that somebody declared, by name or by numbers ("500TFLOPS,2TB/s,80GB").

    A short name that fits several cards is answered where one of them is meant by most; then a gap
    says which was taken.

    Raises:
        WrongUsage: no such device (the error lists near names), or numbers that cannot be read.
    """
    found = look_up(name)
    if found is not None:
        return found
    short = "-".join(name.lower().replace("_", " ").split())
    for text in _entries_with(short):
        entry = _parse(text)
        if short in entry["aliases"]:
            return _ceilings(entry, name.strip())
        other = entry.get("assumed_aliases", {}).get(short)
        if other is not None:
            taken = f"{name.strip()!r} was taken for {entry['name']}: {other}"
            return _ceilings(entry, name.strip(), gaps=(taken,))
    if "," in name and any(character.isdigit() for character in name):
        return declared_device(name)
    raise WrongUsage(f"{name.strip()[:80]!r} is not the name of one known device", _advice(short))


def device_names() -> tuple[str, ...]:
    """Every short name, sorted."""
    return tuple(sorted(alias for entry in _all_entries() for alias in _aliases(entry)))


def all_devices() -> tuple[DeviceCeilings, ...]:
    """The whole catalogue, in its order; each as its first runtime name finds it."""
    return tuple(_ceilings(entry, entry["runtime_names"][0]) for entry in _all_entries())


@functools.lru_cache(maxsize=1)
def _texts() -> tuple[str, ...]:
    return tuple(CATALOGUE.read_text(encoding="utf-8").split(ENTRY_HEADING)[1:])


def _entries_with(word: str) -> Iterator[str]:
    """The texts of the entries that contain a name; parsing only those keeps a look-up fast."""
    quoted, key = json.dumps(word), f"\n{word} = "
    return (text for text in _texts() if quoted in text or key in text)


def _parse(text: str) -> dict[str, Any]:
    # Imported late: it is slow to load, and most commands need no device.
    toml = importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
    parsed: dict[str, Any] = toml.loads(ENTRY_HEADING + text)
    entry: dict[str, Any] = parsed["device"][0]
    return entry


def _all_entries() -> list[dict[str, Any]]:
    return [_parse(text) for text in _texts()]


def _aliases(entry: Mapping[str, Any]) -> tuple[str, ...]:
    return (*entry["aliases"], *entry.get("assumed_aliases", {}))


def _advice(short: str) -> str:
    import difflib  # noqa: PLC0415 - only an error needs it

    known = {alias: alias for alias in device_names()}
    for entry in _all_entries():
        for runtime in entry["runtime_names"]:
            known.setdefault(runtime.lower(), runtime)
    containing = [name for key, name in known.items() if short and short in key]
    similar = difflib.get_close_matches(short, known, n=NEIGHBOR_COUNT, cutoff=NEIGHBOR_SIMILARITY_RATIO)
    near = list(dict.fromkeys((*containing, *(known[key] for key in similar))))[:NEIGHBOR_COUNT]
    numbers = "or give its numbers, like 500TFLOPS,2TB/s,80GB"
    return f"near names: {', '.join(near)}; {numbers}" if near else f"name it as nvidia-smi does, {numbers}"


def _ceilings(entry: Mapping[str, Any], matched: str, gaps: tuple[str, ...] = ()) -> DeviceCeilings:
    def figure(value: Any) -> Figure | None:  # noqa: ANN401 - a number or a table, as the file has it
        if value is None:
            return None
        if isinstance(value, Mapping):
            return Figure(value=float(value["value"]), source=value["source"], verified=value["verified"])
        return Figure(value=float(value), source=entry["source"], verified=entry["verified"])

    def figures(table: str) -> dict[str, Figure]:
        cells = {dtype: figure(value) for dtype, value in entry.get(table, {}).items()}
        return {dtype: cell for dtype, cell in cells.items() if cell is not None}

    return DeviceCeilings(
        source=Source(path="hardware catalogue", where=entry["name"]),
        gaps=gaps,
        name=entry["name"],
        matched_name=matched,
        vendor=entry["vendor"],
        architecture=entry["architecture"],
        capability=entry["capability"],
        sm_count=entry.get("sm_count"),
        memory_bytes=entry.get("memory_bytes"),
        memory_kind=entry["memory_kind"],
        bandwidth=figure(entry.get("bandwidth")),
        dense_peaks=figures("dense"),
        measured_peaks=figures("measured"),
        link_bandwidth=figure(entry.get("link")),
        power_watts=figure(entry.get("power")),
        notes=entry["notes"],
        unverified=tuple(entry.get("unverified", ())),
    )
