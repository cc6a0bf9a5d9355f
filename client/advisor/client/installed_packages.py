"""Which distributions a search path offers, by the names and heads of their metadata files. For the sidecar.

The same answer as `importlib.metadata`, without its parser of mails: a third of the time and none of its 10 MB in a process that lasts as
long as the training.
"""

import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from advisor.client.git_head import head_of
from advisor.client.redaction import redact_text

MOST_HEAD_BYTES = 16 * 1024
MOST_PACKAGES = 4000
MOST_ORIGIN_BYTES = 64 * 1024


def facts_of_packages(search_path: Iterable[str], *, executable: str | None = None) -> dict[str, Any]:
    """All distributions of the trainer's search path.

    Args:
        search_path: `sys.path` of the trainer; its process's own is of no use.
        executable: its interpreter, beside which a conda environment lists its packages.

    Returns:
        `versions`: name → version, the first on the path; `origins`: name → where it was installed from, if not from an index (URL without
        credentials, commit, whether it is editable and at which commit its folder is); `shadowed`: others of the same name, further down;
        `conda`: name-version-build of a conda environment.
    """
    versions: dict[str, str] = {}
    origins: dict[str, Any] = {}
    shadowed: list[str] = []
    for folder in dict.fromkeys(search_path):
        for metadata in _metadata_in(folder):
            name, version = _name_and_version(metadata)
            if name is None or len(versions) >= MOST_PACKAGES:
                continue
            if name in versions:
                shadowed.append(f"{name} {version} in {folder}")
                continue
            versions[name] = version
            origin = _origin(metadata)
            if origin:
                origins[name] = origin
    return {"versions": dict(sorted(versions.items())), "origins": origins, "shadowed": shadowed, "conda": _conda(executable)}


def _metadata_in(folder: str) -> Iterator[Path]:
    """The metadata files of a folder of the path, in the order of their names."""
    try:
        entries = sorted(os.scandir(folder or "."), key=lambda entry: entry.name)
    except OSError:
        return
    for entry in entries:
        if entry.name.endswith(".dist-info"):
            yield Path(entry.path) / "METADATA"
        elif entry.name.endswith(".egg-info"):
            path = Path(entry.path)
            yield path / "PKG-INFO" if path.is_dir() else path
        elif entry.name.endswith(".egg"):
            yield Path(entry.path) / "EGG-INFO" / "PKG-INFO"


def _name_and_version(metadata: Path) -> tuple[str | None, str]:
    name, version = None, ""
    try:
        with metadata.open("rb") as file:
            head = file.read(MOST_HEAD_BYTES).decode("utf-8", "replace")
    except OSError:
        # Without its file the folder's own name still tells both: `name-version.dist-info`.
        stem = metadata.parent.name.removesuffix(".dist-info")
        name, _, version = stem.partition("-")
        return (name or None, version) if stem != metadata.parent.name and version else (None, "")
    for line in head.splitlines():
        if not line:
            break
        field, _, value = line.partition(":")
        if field.lower() == "name" and name is None:
            name = value.strip()
        elif field.lower() == "version" and not version:
            version = value.strip()
    return name or None, version


def _origin(metadata: Path) -> dict[str, Any]:
    """Where a distribution came from, by its direct_url.json (PEP 610)."""
    try:
        with (metadata.parent / "direct_url.json").open("rb") as file:
            told = json.loads(file.read(MOST_ORIGIN_BYTES))
        url, version, folder = told.get("url"), told.get("vcs_info") or {}, told.get("dir_info") or {}
        found = {"url": redact_text(str(url)), "commit": version.get("commit_id"), "is_editable": bool(folder.get("editable"))}
    except (OSError, ValueError, AttributeError, RecursionError):
        return {}
    if found["is_editable"] and isinstance(url, str) and url.startswith("file://"):
        found["commit"] = head_of((url.removeprefix("file://"),)).commit
    return found


def _conda(executable: str | None) -> list[str]:
    if not executable:
        return []
    folder = Path(executable).parent.parent / "conda-meta"
    try:
        return sorted(entry.name.removesuffix(".json") for entry in os.scandir(folder) if entry.name.endswith(".json"))[:MOST_PACKAGES]
    except OSError:
        return []
