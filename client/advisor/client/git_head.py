"""Which commit a folder is at, by reading a handful of small files: no process is started, nothing in the repository is run or changed."""

# ruff: noqa: PTH110, PTH118, PTH120 - os.path takes a third of the time of pathlib, and this runs in the start of a training

import os
import re
from collections.abc import Mapping
from os.path import dirname, exists, join, normpath
from typing import NamedTuple

HASH_LENGTHS = (40, 64)

GIT_FILE, REFERENCE = "gitdir:", "ref:"
"""How the `.git` file of a linked worktree or submodule begins, and how a symbolic reference does."""

MOST_REFERENCE_BYTES = 4096
MOST_READ_BYTES = 1024 * 1024
MOST_PACKED_BYTES = 16 * 1024 * 1024
"""100,000 tags; a longer packed-refs is not searched."""

DEEPEST_REFERENCE = 5
"""Symbolic references may point to others; git follows as many."""

DEEPEST_FOLDER_COUNT = 64

COMMIT_VARIABLES = ("GIT_COMMIT", "GITHUB_SHA", "CI_COMMIT_SHA", "COMMIT_SHA", "SOURCE_COMMIT", "SLURM_GIT_COMMIT")
"""What builds of containers leave where the repository itself was not copied into the image."""


class Head(NamedTuple):
    """Where a working tree stands.

    Attributes:
        root: the working tree's folder; None where there is none.
        commit: its name in hexadecimal; None where it is not known.
        branch: the reference, shortened ("main"); None where the head is detached.
        because: why the commit is not known, or where it comes from if not from the repository; empty otherwise.
    """

    root: str | None
    commit: str | None
    branch: str | None
    because: str


def is_commit(text: str) -> bool:
    """Whether a text is the whole name of a commit: SHA-1, or SHA-256 in hexadecimal (gitformat-hash)."""
    return len(text) in HASH_LENGTHS and not text.strip("0123456789abcdef")


def head_of(folders: tuple[str, ...], environment: Mapping[str, str] | None = None) -> Head:
    """The head of the first of the folders that lies in a working tree; else the commit that the environment names.

    Args:
        folders: absolute paths, the most telling first (the script's, the working folder).
        environment: variables to look into where no folder is in a repository.
    """
    for folder in folders:
        found = _root_above(folder)
        if found is not None:
            return _read_head(*found)
    for name in COMMIT_VARIABLES:
        value = (environment or {}).get(name, "").strip().lower()
        if is_commit(value):
            return Head(None, value, None, f"named by the environment variable {name}; no repository was found")
    return Head(None, None, None, "no git repository was found")


def _root_above(folder: str) -> tuple[str, str] | None:
    """The working tree that a folder lies in, and the content of its `.git` where that is a file."""
    path = folder
    for _ in range(DEEPEST_FOLDER_COUNT):
        marker = join(path, ".git")
        if exists(join(marker, "HEAD")):
            return path, ""
        if (pointer := _text(marker)).startswith(GIT_FILE):
            return path, pointer
        above = dirname(path)
        if above == path:
            return None
        path = above
    return None


def _read_head(root: str, pointer: str) -> Head:
    git_folder = normpath(join(root, pointer[len(GIT_FILE) :].strip())) if pointer else join(root, ".git")
    content = _text(join(git_folder, "HEAD"))
    if is_commit(content):
        return Head(root, content, None, "")
    if not content.startswith(REFERENCE):
        return Head(root, None, None, "its HEAD cannot be read")
    # The references of a linked worktree lie in the main repository, but for its own head.
    beside = _text(join(git_folder, "commondir")) if pointer else ""
    common = normpath(join(git_folder, beside)) if beside else git_folder
    reference = content[len(REFERENCE) :].strip()
    branch = reference.removeprefix("refs/heads/")
    commit = _commit_of(reference, (git_folder, common))
    if commit is None and exists(join(common, "reftable")):
        return Head(root, None, None, "it keeps its references in the reftable format, which git alone reads")
    return Head(root, commit, branch, "" if commit else f"the branch {branch} has no commit yet")


def _commit_of(reference: str, folders: tuple[str, str]) -> str | None:
    for _ in range(DEEPEST_REFERENCE):
        if ".." in reference.split("/") or reference.startswith("/"):
            return None
        content = next((found for folder in folders if (found := _text(join(folder, reference)))), "")
        if is_commit(content):
            return content
        if not content.startswith(REFERENCE):
            return _packed(reference, folders[1])
        reference = content[len(REFERENCE) :].strip()
    return None


def _packed(reference: str, folder: str) -> str | None:
    data = _bytes(join(folder, "packed-refs"), MOST_PACKED_BYTES)
    name = re.escape(reference.encode("utf-8", "surrogateescape"))
    match = re.search(rb"(?m)^([0-9a-f]{40,64}) " + name + rb"\r?$", data)
    return match.group(1).decode("ascii") if match else None


def _text(path: str) -> str:
    return _bytes(path, MOST_REFERENCE_BYTES).decode("utf-8", "surrogateescape").strip()


def _bytes(path: str, most: int) -> bytes:
    """The content of a file, at most so much of it; empty where there is none."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except (OSError, ValueError):
        return b""
    try:
        pieces = []
        while most > 0 and (piece := os.read(descriptor, min(most, MOST_READ_BYTES))):
            pieces.append(piece)
            most -= len(piece)
        return b"".join(pieces)
    except OSError:  # a folder
        return b""
    finally:
        os.close(descriptor)
