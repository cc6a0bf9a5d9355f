"""`advisor-cli demo`: train a tiny GPT on the CPU with a planted fault, then diagnose what PyTorch saved."""

import argparse
import importlib.util
import subprocess
import sys
import tempfile
from pathlib import Path

from advisor.cli import diagnose, exit_codes
from advisor.model.errors import AdvisorError, WrongUsage
from advisor.model.finding import Severity
from advisor.model.report import Report

TRAINING_TIMEOUT_SECONDS = 300
"""Far beyond what the training takes on a slow laptop (about 20 s); then something is wrong and is said."""


PLANTED = ("INP101", "INP102")
"""What names the planted fault: the loop waits for a loader that works in the training process."""


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command's options."""
    parser = commands.add_parser(
        "demo",
        description="Train a GPT of 0.84 M parameters on the CPU, with a data loader that was made slow on purpose; save what PyTorch "
        "itself can save (log, operator table, trace) and diagnose that. Takes less than a minute and needs torch.",
    )
    parser.add_argument("--out", metavar="FOLDER", help="keep what the training saved in FOLDER (a temporary folder by default)")
    parser.add_argument("--healthy", action="store_true", help="plant no fault, to see what a healthy run looks like")
    parser.add_argument("--format", choices=("text", "json", "markdown"), default="text", help="of the report (text by default)")


def run(arguments: argparse.Namespace) -> int:
    """Train, diagnose; 0 where the report names what was planted first (or, with --healthy, nothing), 3 where it does not."""
    if importlib.util.find_spec("torch") is None:
        raise WrongUsage("demo: torch is not installed here", "pip install torch, or run make demo in a clone")
    if arguments.out:
        return _demonstrate(Path(arguments.out), arguments)
    with tempfile.TemporaryDirectory(prefix="advisor-demo-") as folder:
        return _demonstrate(Path(folder), arguments)


def _demonstrate(folder: Path, arguments: argparse.Namespace) -> int:
    folder.mkdir(parents=True, exist_ok=True)
    planted = "no fault" if arguments.healthy else "a fault planted in its data loading"
    sys.stderr.write(f"training a tiny GPT on the CPU, with {planted} ...\n")
    command = [sys.executable, "-m", "advisor.collect.reference_training", "--out", str(folder)]
    if arguments.healthy:
        command.append("--healthy")
    log = folder / "train.log"
    with log.open("wb") as output:
        try:
            trained = subprocess.run(command, stdout=output, stderr=subprocess.STDOUT, timeout=TRAINING_TIMEOUT_SECONDS, check=False)  # noqa: S603 - our own module
        except subprocess.TimeoutExpired:
            raise AdvisorError(f"demo: the training took longer than {TRAINING_TIMEOUT_SECONDS} s", f"its log is {log}") from None
    if trained.returncode:
        last = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-1:]
        raise AdvisorError(f"demo: the training failed ({' '.join(last) or trained.returncode})", f"its log is {log}")
    saved = [str(folder / name) for name in ("train.log", "operators.txt", "trace.json")]
    sys.stderr.write(f"advisor-cli diagnose {' '.join(saved)}\n\n")
    wanted = argparse.Namespace(paths=saved, device=None, model=None, rank=None, format=arguments.format, output=None)
    report = diagnose.report_of(saved, wanted)
    diagnose.show(report, wanted)
    because = _why_wrong(report, is_healthy=arguments.healthy)
    if because:
        sys.stderr.write(f"advisor-cli: demo: the diagnosis is wrong, a fault of the advisor: {because}\n")
        return exit_codes.INTERNAL
    return exit_codes.NOTHING_FOUND


def _why_wrong(report: Report, *, is_healthy: bool) -> str:
    """What is wrong with the report, by what was planted; empty where it is right."""
    if report.faulted:
        return f"{report.faulted[0].code} crashed ({report.faulted[0].because})"
    problems = [item.code for item in report.diagnoses if item.finding.severity > Severity.INFO]
    if is_healthy:
        return f"no fault was planted, and it names {', '.join(problems)}" if problems else ""
    return (
        ""
        if problems[:1] and problems[0] in PLANTED
        else f"the loader is slow, and it names {problems[0] if problems else 'nothing'} first"
    )
