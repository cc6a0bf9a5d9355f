"""Records go from the ring to `steps` once, whole and in order, whatever was cut or overwritten."""

import os

import pytest
from a_trainer import a_ring, a_step, say_state
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.client.layout import HEADER_BYTES, RECORD_BYTES, SLOT_COUNT, STATE_OFFSET, SUFFIX_OFFSET, Event, Metric, Step
from advisor.client.ring_reader import NotARing, read_drained
from advisor.client.sidecar.drain import Drain


def numbers(folder):
    return [number for number, _ in read_drained((folder / "steps").read_bytes())]


def write(ring, count, first=1):
    for number in range(first, first + count):
        ring.step(a_step(number))


@settings(max_examples=25, deadline=None)
@given(turns=st.lists(st.integers(0, 3000), max_size=8))
def test_every_record_arrives_once_and_in_order(tmp_path_factory, turns):
    folder = tmp_path_factory.mktemp("rank")
    ring, drain = a_ring(folder), Drain(folder)
    for count in turns:
        write(ring, count)
        assert drain.drain() == count
    assert numbers(folder) == list(range(1, sum(turns) + 1))
    assert (drain.drained_count, drain.lost_count) == (sum(turns), 0)


def test_what_was_overwritten_is_counted_as_lost(tmp_path):
    ring, drain = a_ring(tmp_path), Drain(tmp_path)
    write(ring, SLOT_COUNT + 100)
    drain.drain()
    # One more than was overwritten: its slot is the next to be written, perhaps at this moment.
    assert drain.lost_count == 101
    assert numbers(tmp_path) == list(range(102, SLOT_COUNT + 101))


@given(cut=st.integers(1, RECORD_BYTES - 1))
@settings(max_examples=10, deadline=None)
def test_a_torn_tail_is_cut_and_the_drain_goes_on_behind_it(tmp_path_factory, cut):
    folder = tmp_path_factory.mktemp("rank")
    ring, drain = a_ring(folder), Drain(folder)
    write(ring, 10)
    drain.drain()
    os.truncate(folder / "steps", 10 * RECORD_BYTES - cut)
    again = Drain(folder)
    assert again.after == 9
    again.drain()
    assert numbers(folder) == list(range(1, 11))


def test_records_of_zeros_that_a_crash_of_the_host_left_are_cut(tmp_path):
    ring, drain = a_ring(tmp_path), Drain(tmp_path)
    write(ring, 3)
    drain.drain()
    with (tmp_path / "steps").open("ab") as file:
        file.write(bytes(5 * RECORD_BYTES))
    assert Drain(tmp_path).after == 3
    assert (tmp_path / "steps").stat().st_size == 3 * RECORD_BYTES


def test_a_record_that_was_written_but_not_counted_comes_with_the_last_drain(tmp_path):
    ring, drain = a_ring(tmp_path), Drain(tmp_path)
    write(ring, 5)
    with (tmp_path / "ring").open("r+b") as file:
        file.seek(1024)
        file.write((4).to_bytes(8, "little"))
    assert drain.drain() == 4
    drain.drain(is_last=True)
    assert (numbers(tmp_path), drain.lost_count) == ([1, 2, 3, 4, 5], 0)


def test_a_record_that_was_being_written_at_the_death_is_left_out(tmp_path):
    ring, drain = a_ring(tmp_path), Drain(tmp_path)
    write(ring, 5)
    with (tmp_path / "ring").open("r+b") as file:
        file.seek(HEADER_BYTES + 5 * RECORD_BYTES)
        file.write((6).to_bytes(8, "little"))
    drain.drain(is_last=True)
    assert (numbers(tmp_path), drain.lost_count) == ([1, 2, 3, 4, 5], 0)


def test_a_damaged_record_in_the_middle_is_counted_and_passed(tmp_path):
    ring, drain = a_ring(tmp_path), Drain(tmp_path)
    write(ring, 5)
    with (tmp_path / "ring").open("r+b") as file:
        file.seek(HEADER_BYTES + 2 * RECORD_BYTES + SUFFIX_OFFSET)
        file.write(bytes(8))
    drain.drain()
    assert (numbers(tmp_path), drain.lost_count) == ([1, 2, 4, 5], 1)


def test_a_long_run_keeps_its_newer_half_and_thins_the_older(tmp_path):
    ring, drain = a_ring(tmp_path), Drain(tmp_path, most_bytes=1000 * RECORD_BYTES)
    ring.event(Event(0, 0, "note", "kept"))
    for turn in range(40):
        write(ring, 100, turn * 100 + 1)
        ring.metric(Metric(turn, 0, 1.0, "loss"))
        drain.drain()
    records = read_drained((tmp_path / "steps").read_bytes())
    kept = [number for number, _ in records]
    assert len(records) <= 1101
    assert kept == sorted(set(kept))
    assert kept[-500:] == list(range(kept[-500], kept[-1] + 1))
    assert isinstance(records[0][1], Event)
    assert drain.drained_count - drain.thinned_count == len(records)
    assert drain.last_step() == next(record for _, record in reversed(records) if isinstance(record, Step))


def test_what_a_full_disk_refuses_is_kept_in_the_ring_and_comes_later(tmp_path, monkeypatch):
    ring, drain = a_ring(tmp_path), Drain(tmp_path)
    write(ring, 2000)
    write_there = os.write

    def refuse(descriptor, data):
        if len(data) < 1024 * RECORD_BYTES:
            raise OSError(28, "No space left on device")
        return write_there(descriptor, data[:1000])

    monkeypatch.setattr(os, "write", refuse)
    with pytest.raises(OSError, match="No space"):
        drain.drain()
    monkeypatch.undo()
    assert (tmp_path / "steps").stat().st_size == 0
    drain.drain()
    assert numbers(tmp_path) == list(range(1, 2001))


def test_a_file_that_is_no_ring_is_refused(tmp_path):
    (tmp_path / "ring").write_bytes(b"x" * 8192)
    with pytest.raises(NotARing):
        Drain(tmp_path)


def test_a_link_in_place_of_steps_is_refused(tmp_path):
    a_ring(tmp_path)
    (tmp_path / "steps").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="symbolic links"):
        Drain(tmp_path)
    assert not (tmp_path / "elsewhere").exists()


def test_the_states_flags_are_read_in_place(tmp_path):
    ring, drain = a_ring(tmp_path), Drain(tmp_path)
    assert drain.flags() == 0
    say_state(ring, 1, 7, 2)
    assert drain.flags() == 2
    assert STATE_OFFSET < HEADER_BYTES
