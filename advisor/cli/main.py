"""`advisor-cli`: choose the command, load only its module, turn errors into one line and an exit code."""

import argparse
import importlib
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

from advisor.cli import exit_codes
from advisor.cli.terminal import HelpText
from advisor.model.errors import AdvisorError, WrongUsage

COMMANDS = {
    "diagnose": "say what saved files (error texts, snapshots, traces, tables, node logs) tell of a job",
    "explain": "the page of one rule: what it means, how it is recognized, what to do",
    "rules": "all rules, with what each says",
    "roofline": "where a model on a device is bound: compute or memory bandwidth, and by how much",
    "estimate": "will it fit: memory of a training step or of serving, by block",
    "doctor": "what works here, what is missing and how to get it",
    "demo": "train a tiny GPT on the CPU with a planted fault, and diagnose what it saved",
}
"""Every command with its line in the help; each is a module of this package with `add_parser` and `run`."""

EPILOG = """examples:
  advisor-cli diagnose train.log                    why did it fail?
  advisor-cli diagnose snapshot.pickle              who holds the memory?
  advisor-cli diagnose trace.json.gz                where does the step's time go?
  advisor-cli explain MEM203                        the page of a rule

exit codes: 0 nothing found, 1 diagnoses found (remarks count too), 2 bad usage or unreadable input, 3 internal error, 4 daemon unreachable
"""


class Parser(argparse.ArgumentParser):
    """An argument parser whose errors are one line with a remedy."""

    def error(self, message: str) -> NoReturn:
        """Raise instead of printing the usage and leaving."""
        raise WrongUsage(f"{self.prog}: {message}", f"see {self.prog} --help")


def build_parser(only: str | None = None) -> Parser:
    """The parser of all commands; of one alone, loading its module, where `only` names it."""
    parser = Parser(
        prog="advisor-cli",
        description="Why did this GPU job run out of memory, why is it slow, and what change helps?",
        epilog=EPILOG,
        formatter_class=HelpText,
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version and leave")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=Parser, required=True)
    for name, line in COMMANDS.items():
        if only is None:
            commands.add_parser(name, help=line, add_help=False)
        elif name == only:
            importlib.import_module(f"advisor.cli.{name}").add_parser(commands)
    return parser


def run(arguments: Sequence[str] | None = None) -> NoReturn:
    """The entry point of the console script."""
    sys.exit(main(sys.argv[1:] if arguments is None else arguments))


def main(arguments: Sequence[str]) -> int:
    """Run a command.

    Returns:
        The exit code; see docs/exit-codes.md.
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # its threads only cost start-up time and memory here
    command = next((word for word in arguments if not word.startswith("-")), None)
    try:
        parsed = build_parser(command if command in COMMANDS else None).parse_args(arguments)
        code: int = importlib.import_module(f"advisor.cli.{parsed.command}").run(parsed)
        sys.stdout.flush()
    except AdvisorError as error:
        return _fail(str(error), exit_codes.UNREADABLE)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the reader left: nobody to write to
        return exit_codes.READER_LEFT
    except KeyboardInterrupt:
        return _fail("interrupted", exit_codes.INTERRUPTED)
    except Exception as fault:  # noqa: BLE001 - the last line of defence: a fault of ours is said to be one
        import traceback  # noqa: PLC0415 - slow to load, and only a fault needs it

        if os.environ.get("ADVISOR_DEBUG"):
            traceback.print_exc()
        place = traceback.extract_tb(fault.__traceback__)[-1]
        where = f"{os.path.basename(place.filename)}:{place.lineno}"  # noqa: PTH119 - pathlib costs start-up time
        problem = f"internal error, a fault of the advisor: {type(fault).__name__}: {fault} at {where}"
        return _fail(f"{problem}; set ADVISOR_DEBUG=1 to see the whole traceback", exit_codes.INTERNAL)
    return code


def _fail(problem: str, code: int) -> int:
    line = " ".join(problem.split()).encode("utf-8", "replace").decode("utf-8")
    sys.stderr.write(f"advisor-cli: {line.removeprefix('advisor-cli: ')}\n")
    return code


class _Version(argparse.Action):
    """Print the version; the package's metadata is only read when asked for, since that is slow."""

    def __call__(self, *_: object, **__: object) -> NoReturn:
        metadata = importlib.import_module("importlib.metadata")
        try:
            version = metadata.version("gpu-advisor")
        except metadata.PackageNotFoundError:
            version = "(a source tree that is not installed: make install)"
        sys.stdout.write(f"advisor-cli {version}\n")
        sys.exit(exit_codes.NOTHING_FOUND)


if __name__ == "__main__":
    run()
