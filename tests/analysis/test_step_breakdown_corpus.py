"""Real traces: as busy as the catalogue says, split without remainder, and the known jobs told apart."""

import re

import pytest
from corpus_location import corpus

from advisor.analysis.step_breakdown import step_breakdown
from advisor.ingest.kineto import read_kineto
from advisor.model.step_time import PARTS, Bound

ROW = re.compile(r"^\| (?P<path>traces/\S+) \|(?:[^|]*\|){6} (?:(?P<busy>[\d.]+)% / (?P<kernels>\d+) / [^|]*|- )\|")
EXPOSED = re.compile(r"/ [\d.]+ \(([\d.]+)\)\s*\|")


def catalogued():
    """Path and catalogue row of every trace; the catalogue is a table in markdown."""
    try:
        lines = (corpus() / "CATALOG.md").read_text("utf-8").splitlines()
    except pytest.skip.Exception as missing:
        return [pytest.param("", "", marks=pytest.mark.skip(reason=str(missing)))]
    rows = [(found["path"], line) for line in lines if (found := ROW.match(line)) and "NOT a chrome trace" not in line]
    assert len(rows) > 60
    return rows


def breakdowns(path):
    with (corpus() / path).open("rb") as stream:
        return step_breakdown(read_kineto(stream, path))


@pytest.mark.parametrize(("path", "line"), catalogued())
def test_a_real_trace_is_as_busy_as_the_catalogue_says_and_its_parts_fill_the_window(path, line):
    primary, *others = breakdowns(path)
    busy = ROW.match(line)["busy"]
    if busy is None:
        assert primary.busy_ratio is None
        assert primary.device_index is None
        assert any("how busy" in note for note in primary.notes)
        assert not primary.parts or sum(primary.parts.values()) == pytest.approx(1, abs=1e-6)
        return
    assert primary.busy_ratio * 100 == pytest.approx(float(busy), abs=1)
    for found in (primary, *others):
        assert sum(found.parts.values()) == pytest.approx(1, abs=1e-6)
        assert min(found.parts[name] for name in PARTS) >= 0
        assert found.window_seconds > 0
    exposed = EXPOSED.search(line)
    if exposed and "b200" not in path:  # there our names of collectives know one that the catalogue's do not
        assert primary.seconds["exposed_communication"] * 1e3 == pytest.approx(float(exposed[1]), abs=0.01)


def test_the_loader_in_the_process_waits_clearly_more_than_the_one_with_workers():
    folder = corpus() / "traces" / "pytorch+kineto"
    shares = {
        workers: [breakdowns(path)[0].parts["input_wait"] for path in sorted(folder.glob(f"*resnet50_num_workers_{workers}__*"))]
        for workers in (0, 4)
    }
    assert len(shares[0]) == len(shares[4]) == 4
    assert min(shares[0]) > 0.15
    assert max(shares[4]) < 0.02


def test_generation_out_of_a_graph_and_training_out_of_numpy_are_told_apart():
    folder = corpus() / "traces"
    (vision,) = folder.glob("*/*h100__facebook_timesformer*")
    found = breakdowns(vision)[0]
    assert found.bound is Bound.HOST  # most of the window prepares the picture, before the first launch
    assert found.parts["launch"] < 0.05
    assert found.parts["synchronization"] < 0.05
