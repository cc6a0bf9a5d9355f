"""Run the command line in a forked child: as fast as a call, with the time, the memory and the crash of a process of its own."""

import contextlib
import importlib
import io
import json
import os
import pkgutil
import sys
import tempfile
import time
from dataclasses import dataclass, field

from advisor.cli import diagnose
from advisor.cli.main import main
from advisor.rules.registry import REGISTRY

PATIENCE_SECONDS = 60
"""When a child is given up: thirty times what it may take."""


@dataclass(frozen=True)
class Run:
    """What one call did.

    Attributes:
        code: its exit code; -9 and the like where a signal ended it.
        err: what it wrote to standard error.
        out: what it wrote to standard output.
        shown: the same report in every format, where one was rendered.
        seconds: wall-clock time of the call.
        peak_bytes: the largest resident memory of its process, the preloaded modules included.
    """

    code: int
    err: str
    out: str
    shown: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    peak_bytes: int = 0


def preload():
    """Load every module once, so that a child has nothing to import."""
    for package in ("analysis", "ingest", "hardware", "rules", "engine", "render", "cli"):
        loaded = importlib.import_module(f"advisor.{package}")
        for module in pkgutil.iter_modules(loaded.__path__, f"advisor.{package}."):
            importlib.import_module(module.name)
    for entry in REGISTRY:
        entry.load()


def run_forked(arguments, *, in_all_formats=True):
    """Run `main(arguments)` in a child."""
    with tempfile.TemporaryFile() as answer:
        started = time.perf_counter()
        child = os.fork()
        if not child:
            _answer(arguments, answer, in_all_formats=in_all_formats)
        _, status, usage = os.wait4(child, 0)
        seconds = time.perf_counter() - started
        code = os.waitstatus_to_exitcode(status)
        answer.seek(0)
        told = answer.read()
    if code < 0 or not told:
        return Run(code=code, err="", out="", seconds=seconds, peak_bytes=usage.ru_maxrss * 1024)
    kept = json.loads(told)
    return Run(seconds=kept.pop("seconds"), peak_bytes=usage.ru_maxrss * 1024, **kept)


def _answer(arguments, answer, *, in_all_formats):
    """The child: call, write what came of it, and leave without any of the parent's clean-up."""
    status = 70
    try:
        import signal

        signal.alarm(PATIENCE_SECONDS)
        shown = {}
        if in_all_formats:
            diagnose._rendered = _in_all_formats(shown, diagnose._rendered)
        out, err = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            started = time.perf_counter()
            try:
                code = main([str(argument) for argument in arguments])
            except SystemExit as left:
                code = left.code or 0
            seconds = time.perf_counter() - started - shown.pop("_seconds", 0.0)
        out.flush()
        told = {"code": code, "err": err.getvalue(), "out": out.buffer.getvalue().decode("utf-8"), "shown": shown, "seconds": seconds}
        answer.write(json.dumps(told).encode())
        answer.flush()
        status = 0
    except BaseException as fault:  # noqa: BLE001 - a child must never run the parent's tests
        print(f"{type(fault).__name__}: {fault}", file=sys.__stderr__)
    finally:
        os._exit(status)


def _in_all_formats(shown, rendered):
    """The renderer of the command, which renders the report in the other formats too; their time is not counted."""

    def all_of_them(report, arguments):
        wanted, started = arguments.format, time.perf_counter()
        for name in ("json", "markdown", "text"):
            arguments.format = name
            shown[name] = rendered(report, arguments)
        shown["_seconds"] = time.perf_counter() - started
        arguments.format = wanted
        return rendered(report, arguments)

    return all_of_them
