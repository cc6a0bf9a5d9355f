"""`advisor-cli diagnose`: read what was saved, advise, print the report."""

import argparse
import os
import sys
from typing import TYPE_CHECKING

from advisor.cli import exit_codes
from advisor.cli.intake import gather
from advisor.cli.run_folder import newest_run
from advisor.cli.terminal import HelpText, colors_wanted, terminal_columns
from advisor.engine.advise import advise
from advisor.model.case import Case
from advisor.model.dataclass import replace
from advisor.model.errors import UnreadableInput, WrongUsage
from advisor.model.evidence import Evidence, Source
from advisor.model.report import Report

if TYPE_CHECKING:
    import threading

COMMAND_LINE = Source(path="command line")

DESCRIPTION = """Read files that somebody saved and say what they tell: why the job ran out of memory, or why it is slow.

Files are recognized by their content: logs and tracebacks, allocator snapshots (torch.cuda.memory._dump_snapshot), profiler traces
(plain, gzip, zstd), profiler tables, memory summaries, nvidia-smi outputs, kernel logs. Several files or a folder make one case."""

PROGRESS_AFTER_SECONDS = 1.0

WIDEST = 100
"""Columns of a report on a wide terminal: longer lines are hard to read."""


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command's options."""
    parser = commands.add_parser("diagnose", description=DESCRIPTION, formatter_class=HelpText)
    parser.add_argument(
        "paths",
        nargs="*",
        metavar="PATH",
        help="a file, a folder, or - for standard input; without any, the newest run that attach() watched",
    )
    parser.add_argument("--device", metavar="NAME", help="the device, where the files do not say (for example 'NVIDIA A100-SXM4-80GB')")
    parser.add_argument("--model", metavar="NAME_OR_CONFIG", help="the model: a built-in name (llama-3-8b) or a config.json")
    parser.add_argument("--rank", type=int, metavar="N", help="look only at this rank of a distributed job")
    parser.add_argument("--format", choices=("text", "json", "markdown"), default="text", help="of the report (text by default)")
    parser.add_argument("-o", "--output", metavar="FILE", help="write the report to FILE instead of standard output")


def run(arguments: argparse.Namespace) -> int:
    """Diagnose; the exit code says whether anything was found."""
    paths = arguments.paths or [newest_run()]
    _refuse_to_overwrite(paths, arguments.output)
    return show(report_of(paths, arguments), arguments)


def report_of(paths: list[str], arguments: argparse.Namespace) -> Report:
    """Read the inputs and advise."""
    declared = _declared(arguments)
    with _Progress() as progress:
        gathered = gather(paths, progress=progress.show)
        case = _of_rank(gathered.case, arguments.rank).with_evidence(declared)
        return replace(advise(case), read=gathered.read)


def show(report: Report, arguments: argparse.Namespace) -> int:
    """Print the report as asked for; the exit code says whether anything was found."""
    for item in report.unreadable:
        sys.stderr.write(f"advisor-cli: {_one_line(f'{item.path}: {item.because}')}\n")
    if report.read or arguments.format == "json":
        _write(_rendered(report, arguments), arguments.output)
    if not report.read:
        return exit_codes.UNREADABLE
    return exit_codes.DIAGNOSES_FOUND if report.diagnoses else exit_codes.NOTHING_FOUND


def _refuse_to_overwrite(paths: list[str], output: str | None) -> None:
    if output is None or not os.path.exists(output):  # noqa: PTH110 - pathlib costs start-up time
        return
    for path in paths:
        if path != "-" and os.path.exists(path) and os.path.samefile(path, output):  # noqa: PTH110, PTH121 - the same
            raise WrongUsage(f"diagnose: -o {output} is one of the inputs", "choose another file for the report")


def _declared(arguments: argparse.Namespace) -> tuple[Evidence, ...]:
    found: list[Evidence] = []
    if arguments.device:
        from advisor.hardware.catalogue import require  # noqa: PLC0415 - the catalogue is only read when asked for

        found.append(replace(require(arguments.device), source=COMMAND_LINE))
    if arguments.model:
        from advisor.cli.model_option import shape_of  # noqa: PLC0415 - the same

        found.append(shape_of(arguments.model))
    return tuple(found)


def _of_rank(case: Case, rank: int | None) -> Case:
    if rank is None:
        return case
    if rank not in case.ranks():
        known = ", ".join(map(str, case.ranks())) or "none is named"
        raise WrongUsage(f"diagnose: no evidence of rank {rank}", f"ranks in the files: {known}")
    return Case(evidence=tuple(item for item in case.evidence if item.rank in (rank, None)), unreadable=case.unreadable)


def _rendered(report: Report, arguments: argparse.Namespace) -> str:
    if arguments.format == "json":
        from advisor.render.contract import as_json  # noqa: PLC0415 - one renderer is loaded, not three

        return as_json(report) + "\n"
    if arguments.format == "markdown":
        from advisor.render.markdown import as_markdown  # noqa: PLC0415 - the same

        return as_markdown(report)
    from advisor.render.text import as_text  # noqa: PLC0415 - the same

    to_terminal = not arguments.output and sys.stdout.isatty()
    width = min(terminal_columns(), WIDEST) if to_terminal else None
    return as_text(report, width=width, color=to_terminal and colors_wanted())


def _write(text: str, path: str | None) -> None:
    if path is None:
        sys.stdout.buffer.write(text.encode("utf-8", "replace"))
        return
    try:
        with open(path, "w", encoding="utf-8", errors="replace") as file:  # noqa: PTH123 - pathlib costs start-up time
            file.write(text)
    except OSError as error:
        raise UnreadableInput(f"{path}: the report cannot be written ({error.strerror})", "choose another -o FILE") from None


def _one_line(text: str) -> str:
    from advisor.render.plain import printable  # noqa: PLC0415 - only with something to say

    return " ".join(printable(text).split())


class _Progress:
    """Say on a terminal's standard error what is being read, once it takes longer than a second."""

    def __init__(self) -> None:
        self._path = ""
        self._timer: threading.Timer | None = None

    def __enter__(self) -> "_Progress":  # noqa: PYI034 - typing.Self is 3.11's
        if sys.stderr.isatty():
            import threading  # noqa: PLC0415 - only a terminal needs it

            self._timer = threading.Timer(PROGRESS_AFTER_SECONDS, self._say)
            self._timer.daemon = True
            self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._timer is not None:
            self._timer.cancel()
            sys.stderr.write("\r\x1b[K")

    def show(self, path: str) -> None:
        """Remember what is being read, and say it if a second has passed."""
        self._path = path
        if self._timer is not None and self._timer.finished.is_set():
            self._say()

    def _say(self) -> None:
        sys.stderr.write(f"\r\x1b[Kreading {_one_line(self._path)[-60:]} ...")
        sys.stderr.flush()
