"""`advisor-cli doctor`: what works here, what is missing and how to get it."""

import argparse
import importlib.metadata
import importlib.util
import json
import shutil
import sys
from collections.abc import Callable

from advisor.cli import exit_codes
from advisor.model.dataclass import dataclass

OLDEST_PYTHON = (3, 10)


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One thing that was looked for.

    Attributes:
        name: what.
        works: whether it is here.
        seen: what was seen.
        remedy: how to get it; empty where it works.
        essential: whether the command line is useless without it.
    """

    name: str
    works: bool
    seen: str
    remedy: str = ""
    essential: bool = False


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command's options."""
    parser = commands.add_parser("doctor", description="Say what works on this machine, what is missing and how to get it.")
    parser.add_argument("--format", choices=("text", "json"), default="text", help="of the answer (text by default)")


def run(arguments: argparse.Namespace) -> int:
    """Check; 0 where everything essential works, 2 otherwise."""
    found = [check() for check in CHECKS]
    if arguments.format == "json":
        rows = [{name: getattr(check, name) for name in Check.__slots__} for check in found]
        sys.stdout.write(json.dumps(rows, indent=2) + "\n")
    else:
        for check in found:
            mark = "works  " if check.works else "missing"
            sys.stdout.write(f"{mark}  {check.name}: {check.seen}\n")
            if check.remedy:
                sys.stdout.write(f"         to get it: {check.remedy}\n")
    broken = any(check.essential and not check.works for check in found)
    return exit_codes.UNREADABLE if broken else exit_codes.NOTHING_FOUND


def _python() -> Check:
    version = ".".join(map(str, sys.version_info[:3]))
    works = sys.version_info >= OLDEST_PYTHON
    remedy = "" if works else "install Python 3.10 or newer"
    return Check(name="Python", works=works, seen=version, remedy=remedy, essential=True)


def _library(module: str, distribution: str, purpose: str) -> Callable[[], Check]:
    def check() -> Check:
        works = importlib.util.find_spec(module) is not None
        seen = f"{importlib.metadata.version(distribution)}, {purpose}" if works else f"not installed, {purpose}"
        remedy = "" if works else "pip install 'gpu-advisor[node]'"
        return Check(name=distribution, works=works, seen=seen, remedy=remedy, essential=True)

    return check


def _torch() -> Check:
    works = importlib.util.find_spec("torch") is not None
    seen = importlib.metadata.version("torch") if works else "not installed; files are diagnosed without it, `demo` needs it"
    return Check(name="torch", works=works, seen=seen, remedy="" if works else "pip install torch")


def _nvidia_smi() -> Check:
    found = shutil.which("nvidia-smi")
    seen = found or "not found: this machine's own GPUs cannot be listed; saved outputs of others are read"
    remedy = "" if found else "install the NVIDIA driver where there is an NVIDIA GPU"
    return Check(name="nvidia-smi", works=found is not None, seen=seen, remedy=remedy)


def _catalogue() -> Check:
    from advisor.hardware.catalogue import all_devices  # noqa: PLC0415 - a broken install must still be able to run the other checks

    devices = all_devices()
    return Check(name="hardware catalogue", works=bool(devices), seen=f"{len(devices)} devices", essential=True)


def _rules() -> Check:
    from advisor.rules.registry import REGISTRY  # noqa: PLC0415 - the same

    return Check(name="rules", works=bool(REGISTRY), seen=f"{len(REGISTRY)} rules", essential=True)


def _daemon() -> Check:
    return Check(
        name="daemon",
        works=False,
        seen="this version has none: it reads files that somebody saved",
        remedy="name files: advisor-cli diagnose PATH",
    )


CHECKS: tuple[Callable[[], Check], ...] = (
    _python,
    _library("numpy", "numpy", "for traces and snapshots"),
    _library("msgspec", "msgspec", "for traces"),
    _library("rich", "rich", "for text on terminals"),
    _library("zstandard", "zstandard", "for zstd-compressed traces"),
    _library("defusedxml", "defusedxml", "for nvidia-smi -q -x"),
    _catalogue,
    _rules,
    _torch,
    _nvidia_smi,
    _daemon,
)
