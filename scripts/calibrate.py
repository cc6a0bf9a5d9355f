"""Make the map from rules' scores to frequencies from the public corpus: advisor/engine/calibration.json and docs/calibration.md."""

import argparse
import itertools
import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from labelled_cases import Labelled, reports, traces

from advisor.engine.advise import advise
from advisor.model.finding import Severity

ROOT = Path(__file__).resolve().parents[1]
TABLE = ROOT / "advisor" / "engine" / "calibration.json"
PAGE = ROOT / "docs" / "calibration.md"

EDGES = (0.0, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0001)
"""Borders between bins of scores: a tenth each, wider where findings are rare."""

IMAGINARY_CASES = 8
"""How many cases a rule's own score counts as in each bin: as many as the corpus has in a thin one."""


def observations(corpus: Path) -> Iterator[tuple[float, bool]]:
    """(score, was right) of every problem that the rules named in a labelled case."""
    cases: list[Labelled] = []
    for file in ("oom.jsonl", "slow.jsonl"):
        for with_context in (False, True):
            cases.extend(reports(corpus, file, with_context=with_context))
    cases.extend(traces(corpus))
    for labelled in cases:
        for diagnosis in advise(labelled.case).diagnoses:
            if diagnosis.finding.severity > Severity.INFO and (labelled.expected or labelled.is_settled):
                yield diagnosis.finding.confidence, diagnosis.name in labelled.expected


def bins(seen: Iterable[tuple[float, bool]]) -> list[tuple[float, int, int]]:
    """(mean score, cases, right ones) of each bin that has cases."""
    rows = []
    gathered = list(seen)
    for low, high in itertools.pairwise(EDGES):
        inside = [(score, right) for score, right in gathered if low <= score < high]
        if inside:
            mean = sum(score for score, _ in inside) / len(inside)
            rows.append((mean, len(inside), sum(right for _, right in inside)))
    return rows


def pooled(rows: list[tuple[float, int, int]]) -> list[tuple[float, float]]:
    """(score, frequency), never falling and never above the score.

    Each bin is drawn towards its score, then neighbors that fall are pooled. The rules were written with this corpus in view, so its
    frequencies flatter them: the table may take confidence away and never adds any.
    """
    blocks: list[list[float]] = []
    for score, count, right in rows:
        weight = count + IMAGINARY_CASES
        blocks.append([score, min(score, (right + IMAGINARY_CASES * score) / weight), weight])
        while len(blocks) > 1 and blocks[-2][1] > blocks[-1][1]:
            last, before = blocks.pop(), blocks.pop()
            weight = last[2] + before[2]
            blocks.append([(last[i] * last[2] + before[i] * before[2]) / weight for i in (0, 1)] + [weight])
    return [(round(score, 3), round(frequency, 3)) for score, frequency, _ in blocks]


def main() -> None:
    """Write the table and its page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--corpus", type=Path, default=ROOT.parent / "shared" / "corpus")
    corpus = parser.parse_args().corpus
    if not corpus.is_dir():
        sys.exit(f"the corpus is not at {corpus}; name its folder with --corpus")
    rows = bins(observations(corpus))
    inner = [point for point in pooled(rows) if 0 < point[0] < 1]
    top = 0.98  # no evidence of this kind is certain
    points = [(0.0, 0.0), *inner, (1.0, top)]
    TABLE.write_text(json.dumps({"points": points}) + "\n", encoding="utf-8")
    lines = "".join(f"| {score:.2f} | {count} | {right} | {right / count:.2f} |\n" for score, count, right in rows)
    mapped = "".join(f"| {score:.3f} | {frequency:.3f} |\n" for score, frequency in points)
    PAGE.write_text(
        "# Calibration\n\nMade by `make calibrate` from the public corpus; see [ranking.md](ranking.md).\n\n"
        "Problems that rules named in labelled cases, by the rules' own score:\n\n"
        f"| mean score | findings | right | frequency |\n|---:|---:|---:|---:|\n{lines}\n"
        f"The table in use, interpolated between its points:\n\n| score | frequency |\n|---:|---:|\n{mapped}",
        encoding="utf-8",
    )


if __name__ == "__main__":
    main()
