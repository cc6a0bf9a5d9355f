"""The spool stays within its limits; the oldest evidence goes first, and nothing that is not ours is touched."""

import fcntl
import json
import os
import time
from pathlib import Path

import pytest
from a_trainer import a_ring
from watched_trainer import names_in

from advisor.client.sidecar import housekeeping
from advisor.client.sidecar.housekeeping import Housekeeping
from advisor.client.sidecar.index import read_index
from advisor.client.sidecar.log import MOST_BYTES, Log
from advisor.client.sidecar.upkeep import LOCK, Limits, keep, limits_of
from advisor.client.spool import make_rank_folder

DAY = 86400
MIB = 1024 * 1024
NO_LIMIT = Limits(10**12, 10**6)


def a_rank(root, run, *, days=0.0, evidence=(), is_dead=True, boot_id=None):  # noqa: PLR0913 - what a folder may be
    """A rank's folder whose files are so old, with evidence of so many MiB each."""
    folder = make_rank_folder(root, run, 0)
    ring = a_ring(folder)
    ring.close()
    if boot_id:
        with (folder / "ring").open("r+b") as file:
            file.seek(64)
            file.write(boot_id)
    for number, size in enumerate(evidence):
        (folder / f"profile-{number}.gz").write_bytes(b"x" * int(size * MIB))
    (folder / "run.json").write_bytes(b"{}")
    if is_dead:
        (folder / "end.json").write_bytes(b"{}")
    for at, path in enumerate(sorted(folder.iterdir())):
        moment = time.time() - days * DAY + at * 0.001
        os.utime(path, (moment, moment))
    return folder


def test_within_its_limits_nothing_is_touched(tmp_path):
    folder = a_rank(tmp_path, "a", days=3, evidence=(1,))
    before = names_in(folder)
    assert keep(tmp_path, NO_LIMIT).dropped_count == 0
    assert names_in(folder) == before


def test_runs_that_are_too_old_go_as_a_whole(tmp_path):
    old, young = a_rank(tmp_path, "old", days=15), a_rank(tmp_path, "young", days=13)
    done = keep(tmp_path, Limits(10**12, 14))
    assert not old.parent.exists()
    assert young.exists()
    assert (done.dropped_count, done.dropped_run_count) == (3, 1)
    assert json.loads((tmp_path / "dropped.json").read_bytes())["file_count"] == 3


def test_the_age_is_not_asked_after_a_jump_of_the_clock(tmp_path):
    old = a_rank(tmp_path, "old", days=15)
    assert keep(tmp_path, Limits(10**12, 14), by_age=False).dropped_count == 0
    assert old.exists()


def test_the_oldest_evidence_goes_first_and_is_counted(tmp_path):
    old, young = a_rank(tmp_path, "old", days=5, evidence=(1, 1)), a_rank(tmp_path, "young", days=2, evidence=(1, 1))
    done = keep(tmp_path, Limits(int(6.2 * MIB), 14))
    assert names_in(old) == {"ring", "run.json", "end.json", "profile-1.gz", "index.jsonl", "dropped.json"}
    assert "profile-0.gz" in names_in(young)
    assert json.loads((old / "dropped.json").read_bytes())["file_count"] == done.dropped_count == 1
    assert read_index((old / "index.jsonl").read_bytes()) == {}


def test_what_was_dropped_does_not_make_an_old_run_young(tmp_path):
    old, young = a_rank(tmp_path, "old", days=5, evidence=(1, 1)), a_rank(tmp_path, "young", days=2, evidence=(1, 1))
    keep(tmp_path, Limits(int(6.2 * MIB), 14))
    keep(tmp_path, Limits(int(5.2 * MIB), 14))
    assert not [name for name in names_in(old) if name.startswith("profile")]
    assert "profile-0.gz" in names_in(young)


def test_records_go_when_the_evidence_was_not_enough(tmp_path):
    old, young = a_rank(tmp_path, "old", days=5, evidence=(1,)), a_rank(tmp_path, "young", days=2)
    keep(tmp_path, Limits(int(2.9 * MIB), 14))
    assert not old.parent.exists()
    assert "ring" in names_in(young)


def test_of_a_living_run_only_evidence_goes_and_last(tmp_path):
    live, dead = a_rank(tmp_path, "live", days=9, evidence=(1, 1), is_dead=False), a_rank(tmp_path, "dead", evidence=(1,))
    keep(tmp_path, Limits(int(4 * MIB), 1))
    assert not dead.parent.exists()
    assert "profile-1.gz" in names_in(live)
    keep(tmp_path, Limits(1, 0.001))
    assert {"ring", "run.json"} <= names_in(live)
    assert not [name for name in names_in(live) if name.startswith("profile")]


def test_one_run_may_not_push_out_the_others(tmp_path):
    quiet, loud = a_rank(tmp_path, "quiet", days=5, evidence=(1,)), a_rank(tmp_path, "loud", evidence=(2, 2, 2), is_dead=False)
    keep(tmp_path, Limits(9 * MIB, 14))
    assert "profile-0.gz" in names_in(quiet)
    assert "profile-0.gz" not in names_in(loud)
    assert "profile-2.gz" in names_in(loud)


@pytest.mark.parametrize(("days", "is_kept"), [(0.5, True), (2, False)])
def test_a_run_of_another_host_lives_as_long_as_it_was_changed_lately(tmp_path, days, is_kept):
    folder = a_rank(tmp_path, "elsewhere", days=days, is_dead=False, boot_id=b"0123456789abcdef")
    keep(tmp_path, Limits(1, 14))
    assert folder.exists() is is_kept


def test_folders_that_are_not_ours_are_never_touched(tmp_path):
    photos = tmp_path / "photos" / "rank-00000"
    photos.mkdir(parents=True)
    (photos / "ring").write_bytes(b"a picture of a ring")
    (photos / "b.jpg").write_bytes(b"x" * MIB)
    documents = tmp_path / "documents"
    documents.mkdir()
    (documents / "run.json").write_bytes(b"{}")
    assert keep(tmp_path, Limits(1, 0.0001)).dropped_count == 0
    assert (photos / "b.jpg").exists()
    assert (documents / "run.json").exists()


def test_links_lead_nowhere(tmp_path):
    outside = tmp_path / "outside"
    target = a_rank(outside, "run", days=99, evidence=(1,))
    root = tmp_path / "root"
    rank = a_rank(root, "old", days=99)
    (root / "linked").symlink_to(target.parent)
    (rank / "link").symlink_to(target / "profile-0.gz")
    (root / "old" / "rank-00001").symlink_to(target)
    keep(root, Limits(1, 14))
    assert (target / "profile-0.gz").exists()
    assert names_in(rank) == {"link"}  # what is no file of ours stays, and its folder with it
    with pytest.raises(OSError, match=r"symbolic links|Not a directory"):
        keep(root / "linked", Limits(1, 14))


def test_while_one_is_at_it_the_others_go_on(tmp_path):
    a_rank(tmp_path, "old", days=99)
    with (tmp_path / LOCK).open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert keep(tmp_path, Limits(1, 14)) is None
    assert keep(tmp_path, Limits(1, 14)).dropped_run_count == 1


def test_what_dead_writers_left_half_made_is_removed(tmp_path):
    folder, live = a_rank(tmp_path, "dead"), a_rank(tmp_path, "live", is_dead=False)
    for place in (folder, live):
        for name in (".new-999999999-profile", f".new-{os.getpid()}-profile", ".newer"):
            (place / name).write_bytes(b"half")
    keep(tmp_path, NO_LIMIT)
    assert {name for name in names_in(folder) if name.startswith(".new")} == {f".new-{os.getpid()}-profile", ".newer"}
    assert ".new-999999999-profile" in names_in(live)


def test_counts_add_up_and_a_damaged_file_starts_them_anew(tmp_path):
    for turn in range(3):
        a_rank(tmp_path, f"run{turn}", days=99)
        keep(tmp_path, Limits(10**12, 14))
    assert json.loads((tmp_path / "dropped.json").read_bytes())["run_count"] == 3
    (tmp_path / "dropped.json").write_bytes(b"[1")
    a_rank(tmp_path, "more", days=99)
    keep(tmp_path, Limits(10**12, 14))
    assert json.loads((tmp_path / "dropped.json").read_bytes())["run_count"] == 1


def test_limits_come_from_the_environment_where_they_are_numbers():
    assert limits_of({}) == Limits(2 * 1024**3, 14.0)
    assert limits_of({"ADVISOR_SPOOL_MAX_BYTES": "1e6", "ADVISOR_SPOOL_MAX_DAYS": "0.5"}) == Limits(1_000_000, 0.5)
    assert limits_of({"ADVISOR_SPOOL_MAX_BYTES": "-1", "ADVISOR_SPOOL_MAX_DAYS": "nan"}) == Limits()


def test_a_clock_that_was_set_forward_drops_nothing(tmp_path, monkeypatch):
    old = a_rank(tmp_path, "old", days=3)
    own = a_rank(tmp_path, "own", is_dead=False)
    log = (tmp_path / "log").open("ab+")
    house = Housekeeping(own, Log(log.fileno()))
    later = time.time() + 400 * DAY
    monkeypatch.setattr(housekeeping.time, "time", lambda: later)
    house.finish(0)
    assert old.exists()
    assert "the clock jumped" in (tmp_path / "log").read_text("utf-8")


def test_the_log_is_bounded_and_keeps_its_newer_lines(tmp_path):
    with (tmp_path / "log").open("ab+") as file:
        log = Log(file.fileno())
        for number in range(2000):
            log.write(f"line {number} {'x' * 60}")
        log.write("once")
        log.write("once")
    text = (tmp_path / "log").read_text("utf-8")
    assert len(text) <= MOST_BYTES
    assert text.count("once") == 1
    assert all(line[:2] == "20" for line in text.splitlines())
    assert "line 1999" in text
    assert "line 0 " not in text


def test_a_log_that_cannot_be_written_is_no_error():
    with Path(os.devnull).open("rb") as file:
        Log(file.fileno()).write("nobody hears this")
