"""The labelled cases of the public corpus: what was printed, and the rule names that the settled cause stands for."""

import json
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from advisor.cli.intake import gather
from advisor.model.case import Case

TRACES = "traces/pytorch+kineto/*num_workers_{workers}__*.gz"
FAMILIES = {"device-fault": ("xid-error", "memory-errors", "device-lost")}
"""Labels that name a family of rules, and the rules."""

INPUT_NAMES = ("input-bound", "synchronous-data-loader")


@dataclass(frozen=True, slots=True)
class Labelled:
    """A case with its label.

    Attributes:
        name: of the report or file.
        case: its evidence.
        expected: rule names, any of which is right; empty where no rule of the catalogue is.
        is_settled: whether the cause was settled on ("unlabelled" otherwise).
    """

    name: str
    case: Case
    expected: tuple[str, ...]
    is_settled: bool


def reports(corpus: Path, file: str, *, with_context: bool) -> Iterator[Labelled]:
    """The reports of one file, as somebody would save them: the printed text, alone or below what they wrote about it."""
    for line in (corpus / "reports" / file).read_text("utf-8").splitlines():
        report = json.loads(line)
        text = f"{report['context']}\n\n{report['error_text']}" if with_context else report["error_text"]
        if text.strip():
            yield Labelled(
                name=report["id"],
                case=case_of(text),
                expected=tuple(name for label in report["expected"] for name in FAMILIES.get(label, (label,))),
                is_settled=report["confidence"] != "unlabelled",
            )


def case_of(text: str) -> Case:
    """The case that a saved text makes."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "report.log"
        path.write_text(text, "utf-8")
        return gather([str(path)]).case


def traces(corpus: Path) -> Iterator[Labelled]:
    """The profiler traces whose answer their source gives."""
    for workers, expected in ((0, INPUT_NAMES), (4, ())):
        for path in sorted(corpus.glob(TRACES.format(workers=workers))):
            if "autograd_api" not in path.name:
                case = gather([str(path)]).case
                yield Labelled(name=path.name, case=case, expected=expected, is_settled=True)
