"""What git knows of a run's code beyond the commit: the remote, what was changed and what is not tracked. For the sidecar.

Git is asked so that it changes nothing and runs nothing of the repository's: no locks, no hooks, no file system monitor, no external diff
or text conversion, no pager, no prompt, no fetching of missing objects. Secrets in what it answers are hidden.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from advisor.client.capped_output import Output, output_of
from advisor.client.git_head import head_of, is_commit
from advisor.client.randomness import digest_of
from advisor.client.redaction import redact_text

MOST_DIFF_BYTES = 1024 * 1024
"""Four times the median patch of a week's work; a changed notebook or data file is what is longer."""
MOST_STATUS_BYTES = 1024 * 1024
MOST_NAMES = 200
MOST_NEW_TEXT_BYTES = 256 * 1024
"""Of all new source files together."""
MOST_REMOTES = 8

PATIENCE_SECONDS = 10.0
"""For one question; a repository of 100,000 files on a network disk answers in a few seconds."""

QUIET = (
    *("--no-pager", "--no-optional-locks", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "core.quotePath=false"),
    *("-c", "protocol.allow=never", "-c", "color.ui=false", "-c", "diff.external=", "-c", "diff.noprefix=false"),
)

ENVIRONMENT = {
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_PAGER": "cat",
    "GIT_ASKPASS": "/bin/false",
    "LC_ALL": "C",
}
KEPT_VARIABLES = ("PATH", "HOME", "XDG_CONFIG_HOME", "LD_LIBRARY_PATH", "TMPDIR")

PRIVATE_NAMES = (
    *(
        "*.env",
        ".env*",
        "*.pem",
        "*.key",
        "*.p12",
        "*.pfx",
        "*.jks",
        "*.kdbx",
        "id_rsa*",
        "id_ed25519*",
        "id_ecdsa*",
        ".netrc",
        ".htpasswd",
    ),
    *("*credentials*", "*secret*", ".pypirc", ".npmrc", "kaggle.json", "*.tfstate", "*.ovpn"),
)
"""Files whose changes are named and never kept, as all in them may be secret."""

SOURCE_ENDINGS = (".py", ".sh", ".yaml", ".yml", ".toml", ".cfg", ".ini", ".cu", ".cpp", ".h")
"""Of new files whose text is kept: without them a run of code that was never added cannot be repeated."""


def facts_of_code(folders: Sequence[str], environment: Mapping[str, str], *, files: Sequence[str] = ()) -> dict[str, Any]:
    """Commit, remotes and changes.

    Args:
        folders: where the code may be, the most telling first.
        environment: the trainer's or the sidecar's, of which a few variables are passed to git.
        files: of the user's code, which may be tracked or not.

    Returns:
        `root`, `commit`, `branch`, `because` as in `git_head.Head`; `remotes`: name → URL without credentials; `changes`, None where git
        cannot tell: `is_dirty`, whether tracked files differ from the commit, `status` (two letters and path), `untracked` names, `diff`
        against the commit, `diff_digest`, `is_cut`, `cut` (what of it and why), `new_files`: path → text of untracked sources;
        `tracked`: of `files`, which git knows; `refusal`, why git did not answer, None where it did.
    """
    head = head_of(tuple(folders), environment)
    facts: dict[str, Any] = {**head._asdict(), "remotes": {}, "changes": None, "tracked": {}, "refusal": None}
    if head.root is None:
        return facts
    git = _Git(head.root, environment)
    status = git.ask("status", "--porcelain=v1", "-z", "--untracked-files=normal", most_bytes=MOST_STATUS_BYTES)
    if status.return_code != 0 and not status.is_cut:
        facts["refusal"] = _why(status)
        return facts
    if head.commit is None:
        asked = git.ask("rev-parse", "--verify", "--quiet", "HEAD").data.decode("ascii", "replace").strip()
        if is_commit(asked):
            facts.update(commit=asked, because="")
    facts["remotes"] = _remotes(git)
    facts["tracked"] = _tracked(git, files)
    facts["changes"] = _changes(git, status, has_commit=facts["commit"] is not None)
    return facts


class _Git:
    """Git at one working tree."""

    def __init__(self, root: str, environment: Mapping[str, str]) -> None:
        self.root = root
        self._environment = {name: environment[name] for name in KEPT_VARIABLES if name in environment} | ENVIRONMENT

    def ask(self, *words: str, most_bytes: int = 64 * 1024) -> Output:
        command = ("git", *QUIET, *words)
        return output_of(command, cwd=self.root, environment=self._environment, most_bytes=most_bytes, patience_seconds=PATIENCE_SECONDS)


def _why(output: Output) -> str:
    if output.is_late:
        return f"git did not answer within {PATIENCE_SECONDS:.0f} s"
    return redact_text(output.error.splitlines()[0] if output.error else f"git ended with {output.return_code}")[:500]


def _remotes(git: _Git) -> dict[str, str]:
    found = {}
    for line in git.ask("config", "--get-regexp", r"^remote\..*\.url$").data.decode("utf-8", "replace").splitlines()[:MOST_REMOTES]:
        name, _, url = line.partition(" ")
        found[name.removeprefix("remote.").removesuffix(".url")] = redact_text(url)
    return found


def _tracked(git: _Git, files: Sequence[str]) -> dict[str, bool]:
    inside = [path for path in files if os.path.realpath(path).startswith(os.path.realpath(git.root) + os.sep)][:MOST_NAMES]
    return {path: git.ask("ls-files", "--error-unmatch", "--", os.path.realpath(path)).return_code == 0 for path in inside}


def _changes(git: _Git, status: Output, *, has_commit: bool) -> dict[str, Any]:
    entries, untracked = _entries(status.data)
    cut = ["the status: there are too many changes"] if status.is_cut else []
    diff = _diff(git, cut) if has_commit and entries else ""
    new_files = _new_files(git.root, untracked, cut)
    if len(entries) > MOST_NAMES or len(untracked) > MOST_NAMES:
        cut.append(f"names: {MOST_NAMES} of {len(entries)} changed and {len(untracked)} untracked files are listed")
    if not has_commit and entries:
        cut.append("the diff: there is no commit to compare with")
    return {
        "is_dirty": bool(entries),
        "status": entries[:MOST_NAMES],
        "changed_count": len(entries),
        "untracked": untracked[:MOST_NAMES],
        "untracked_count": len(untracked),
        "diff": diff,
        "diff_digest": digest_of(diff.encode("utf-8", "surrogateescape")) if diff else None,
        "new_files": new_files,
        "is_cut": bool(cut),
        "cut": cut,
    }


def _entries(data: bytes) -> tuple[list[str], list[str]]:
    """Changed entries ("M  path") and untracked paths of `status --porcelain=v1 -z`: a renamed file is followed by its old name."""
    entries, untracked = [], []
    fields = iter(data.decode("utf-8", "replace").split("\0"))
    for field in fields:
        if len(field) < 4:  # noqa: PLR2004 - two letters, a space and a name
            continue
        if field.startswith("??"):
            untracked.append(field[3:])
            continue
        entries.append(field)
        if field[0] in "RC":
            entries[-1] = f"{field} (was {next(fields, '')})"
    return entries, untracked


def _diff(git: _Git, cut: list[str]) -> str:
    private = [f":(exclude,icase,glob)**/{name}" for name in PRIVATE_NAMES]
    options = ("--no-ext-diff", "--no-textconv", "--no-color", "--full-index", "--submodule=short")
    output = git.ask("diff", *options, "HEAD", "--", ".", *private, most_bytes=MOST_DIFF_BYTES)
    if output.is_cut:
        cut.append(f"the diff: it is longer than {MOST_DIFF_BYTES} bytes")
    elif output.return_code != 0:
        cut.append(f"the diff: {_why(output)}")
    return redact_text(output.data.decode("utf-8", "replace"))


def _new_files(root: str, untracked: Sequence[str], cut: list[str]) -> dict[str, str]:
    """Texts of new source files; a new folder is named by git without what is in it, and is looked into here."""
    found: dict[str, str] = {}
    room, left_out = MOST_NEW_TEXT_BYTES, 0
    for name in untracked[:MOST_NAMES]:
        for path in _sources(Path(root) / name):
            try:
                data = path.read_bytes() if path.stat().st_size <= room else None
            except OSError:
                continue
            if data is None:
                left_out += 1
                continue
            room -= len(data)
            found[str(path.relative_to(root))] = redact_text(data.decode("utf-8", "replace"))
    if left_out:
        cut.append(f"the texts of {left_out} new source files: together they are longer than {MOST_NEW_TEXT_BYTES} bytes")
    return found


def _sources(path: Path) -> list[Path]:
    if path.is_symlink():
        return []
    candidates = [path] if path.is_file() else sorted(path.iterdir())[:MOST_NAMES] if path.is_dir() else []
    return [
        each
        for each in candidates
        if each.suffix in SOURCE_ENDINGS
        and each.is_file()
        and not each.is_symlink()
        and not any(each.match(name) for name in PRIVATE_NAMES)
    ]
