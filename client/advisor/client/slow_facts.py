"""What takes longer to find out of a run than its start may take: for the sidecar, which writes it to record.json."""

import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from advisor.client.file_digests import digest_files, list_folder, paths_in
from advisor.client.git_changes import facts_of_code
from advisor.client.installed_packages import facts_of_packages
from advisor.client.machine_facts import facts_of_machine
from advisor.client.own_code import folders_of_code

PATIENCE_SECONDS = 20.0
"""For all digests together."""
MOST_FOLDERS = 8


def facts_of_folder(  # noqa: PLR0913 - what the trainer knows of itself
    cwd: str,
    argv: Sequence[str],
    *,
    script: str | None = None,
    code_files: Sequence[str] = (),
    data_files: Sequence[str] = (),
    search_path: Sequence[str] = (),
    executable: str | None = None,
    environment: Mapping[str, str] | None = None,
    root: Path = Path("/"),
    patience_seconds: float = PATIENCE_SECONDS,
) -> dict[str, Any]:
    """Git, packages, digests, machine.

    Args:
        cwd: the trainer's working folder.
        argv: its command line, redacted or not.
        script: the file that it runs.
        code_files: other files of the user's code.
        data_files: that it reads data from.
        search_path: its `sys.path`.
        executable: its interpreter.
        environment: variables for git and of the container; this process's own by default.
        root: of the file system.
        patience_seconds: for digests.

    Returns:
        `code`, `packages`, `machine` as their modules say; `code_files`, `argument_files`, `data_files`: path → digest; `argument_folders`:
        path → listing; `faults`: part → class of the error; `seconds` that it took. Never raises.
    """
    began = time.perf_counter()
    deadline = time.monotonic() + patience_seconds
    known = os.environ if environment is None else environment
    own_files = [path for path in dict.fromkeys((script, *code_files)) if path]
    files, folders = paths_in(argv[1:], cwd)
    facts: dict[str, Any] = {}
    faults: dict[str, str] = {}
    parts: dict[str, Callable[[], Any]] = {
        "code": lambda: facts_of_code(folders_of_code(script, code_files, cwd), known, files=own_files),
        "packages": lambda: facts_of_packages(search_path, executable=executable),
        "machine": lambda: facts_of_machine(root, known),
        "code_files": lambda: digest_files(own_files, deadline=deadline),
        "argument_files": lambda: digest_files(files, deadline=deadline),
        "data_files": lambda: digest_files(data_files, deadline=deadline),
        "argument_folders": lambda: {folder: list_folder(folder, deadline=deadline) for folder in folders[:MOST_FOLDERS]},
    }
    for name, find in parts.items():
        try:
            facts[name] = find()
        except Exception as fault:  # noqa: BLE001, PERF203 - one part's fault leaves the others
            facts[name], faults[name] = None, type(fault).__name__
    return {**facts, "faults": faults, "seconds": time.perf_counter() - began}


def facts_after_attach(facts: Mapping[str, Any], *, environment: Mapping[str, str] | None = None) -> dict[str, Any]:
    """The same for what `facts_at_attach` found, or what was read of it from run.json.

    Args:
        facts: of the run.
        environment: as in `facts_of_folder`; variables that the trainer had and this process has not are added from the facts.
    """
    process, data = facts.get("process") or {}, facts.get("data") or {}
    told = (facts.get("environment") or {}).get("values") or {}
    return facts_of_folder(
        process.get("cwd") or "/",
        process.get("argv") or [],
        script=process.get("script"),
        code_files=process.get("code_files") or [],
        data_files=data.get("files") or [],
        search_path=process.get("search_path") or [],
        executable=process.get("executable"),
        environment={**told, **(os.environ if environment is None else environment)},
    )
