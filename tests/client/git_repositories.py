"""Small repositories for tests: made by git itself, with nothing of the machine's own settings."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ENVIRONMENT = {
    "PATH": os.environ.get("PATH", ""),
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_SYSTEM": "/dev/null",
    "GIT_AUTHOR_NAME": "a",
    "GIT_AUTHOR_EMAIL": "a@b",
    "GIT_COMMITTER_NAME": "a",
    "GIT_COMMITTER_EMAIL": "a@b",
    "HOME": "/nonexistent",
}


def git(folder: Path, *words: str) -> str:
    """What git answers."""
    if shutil.which("git") is None:
        pytest.skip("there is no git here")
    command = ["git", "-C", str(folder), "-c", "init.defaultBranch=main", "-c", "protocol.file.allow=always", *words]
    return subprocess.run(command, env=ENVIRONMENT, check=True, capture_output=True, text=True).stdout.strip()


def a_repository(folder: Path, files: dict[str, str] | None = None) -> str:
    """A repository with one commit; its name."""
    folder.mkdir(parents=True, exist_ok=True)
    git(folder, "init", "-q")
    for name, text in (files or {"train.py": "print(1)\n"}).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "first")
    return git(folder, "rev-parse", "HEAD")
