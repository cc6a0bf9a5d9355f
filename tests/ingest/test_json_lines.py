"""Logs of a JSON object a line."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.ingest.json_lines import MOST_LINES, plain_log
from advisor.ingest.text_inputs import read_text
from advisor.model.failure import Failure, LogText

OOM = "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 1 has a total capacity of 79.10 GiB of which 1.00 GiB is free."
TRACEBACK = f'Traceback (most recent call last):\n  File "train.py", line 31, in step\n    loss.backward()\ntorch.OutOfMemoryError: {OOM}'


def lines(*records):
    return "\n".join(json.dumps(record) for record in records).encode()


def failures(text):
    return [item for item in read_text(text, "ranks.jsonl") if isinstance(item, Failure)]


def test_records_that_name_a_rank_are_that_ranks():
    found = failures(lines(*({"rank": rank, "message": TRACEBACK} for rank in range(3))))
    assert [(failure.rank, failure.line) for failure in found] == [(0, 1), (1, 2), (2, 3)]
    assert [failure.source.where for failure in found] == ["line 1", "line 2", "line 3"]
    assert [frame.function for frame in found[0].frames] == ["step"]


@pytest.mark.parametrize("rank", [3, "3"])
@pytest.mark.parametrize("field", ["rank", "global_rank", "RANK"])
def test_a_rank_is_a_number_under_one_of_its_names(field, rank):
    assert failures(lines({field: rank, "msg": TRACEBACK}, {"msg": "bye"}))[0].rank == 3


@pytest.mark.parametrize("rank", [True, -1, 10**9, "x", None, 1.5, [1], "9" * 5000])
def test_what_is_no_rank_names_none(rank):
    assert failures(lines({"rank": rank, "msg": TRACEBACK}, {"msg": "bye"}))[0].rank is None


def test_failures_of_several_records_without_a_rank_are_said_to_be_taken_for_one_jobs():
    (log, *found) = read_text(lines({"id": 1, "error_text": TRACEBACK}, {"id": 2, "error_text": TRACEBACK.replace("2.00", "3.00")}), "a")
    assert len([item for item in found if isinstance(item, Failure)]) == 2
    assert any("2 records name no rank" in gap for gap in log.gaps)


def test_one_failure_in_a_structured_log_says_nothing_of_the_kind():
    records = [{"time": "12:00", "level": "INFO", "msg": f"step {number}"} for number in range(5)]
    (log, *_) = read_text(lines(*records, {"level": "ERROR", "msg": "it failed", "exc_info": TRACEBACK}), "a")
    assert log.gaps == ()
    assert log.line_count == 6


def test_settings_in_other_fields_are_still_read():
    (log, *_) = read_text(lines({"msg": "arguments", "num_workers": 0}, {"msg": "training"}), "a")
    assert isinstance(log, LogText)
    assert log.setting("num_workers") == "0"


@pytest.mark.parametrize(
    "text",
    [
        b"step 1\nstep 2",
        b'{"a": 1}\nnot json',
        lines({"loss": 1.5}, {"loss": 1.4}),
        b"{" * 5000 + b"\n" + b"{" * 5000,
        b"{}\n" * (MOST_LINES + 1),
        b"",
    ],
)
def test_other_texts_are_left_as_they_are(text):
    assert plain_log(text) is None


@given(st.lists(st.fixed_dictionaries({}, optional={"rank": st.integers(-2, 9), "msg": st.text(), "x": st.integers()}), min_size=2))
def test_every_line_comes_from_a_record(records):
    found = plain_log(lines(*records))
    if found is not None:
        assert len(found.record_lines) == found.text.count(b"\n") + 1
        assert found.record_lines == sorted(found.record_lines)
        assert set(found.record_lines) <= set(range(1, len(records) + 1))
