"""The index of a folder names its finished files with their hashes, and can be rebuilt from the folder at any time."""

import hashlib

import pytest

from advisor.client.sidecar import hashing
from advisor.client.sidecar.index import Index, append_line, read_index


def the_index(folder):
    return read_index((folder / "index.jsonl").read_bytes())


def test_new_files_are_added_and_changing_ones_are_not(tmp_path):
    for name in ("run.json", "profile-1.json.gz", "steps", "ring", ".new-7-end.json"):
        (tmp_path / name).write_bytes(name.encode())
    index = Index(tmp_path)
    assert index.update()
    before = (tmp_path / "index.jsonl").read_bytes()
    assert index.update()
    assert (tmp_path / "index.jsonl").read_bytes() == before
    assert set(the_index(tmp_path)) == {"run.json", "profile-1.json.gz"}
    assert the_index(tmp_path)["run.json"]["sha256"] == hashlib.sha256(b"run.json").hexdigest()
    index.update(also=("steps",))
    assert "steps" in the_index(tmp_path)


def test_a_file_that_was_replaced_gets_a_new_line(tmp_path):
    index = Index(tmp_path)
    for content in (b"one", b"three"):
        (tmp_path / "run.json").write_bytes(content)
        index.update()
    assert the_index(tmp_path)["run.json"]["bytes"] == 5


def test_a_torn_index_is_put_right_by_the_folder(tmp_path):
    for name in ("a", "b", "c"):
        (tmp_path / name).write_bytes(name.encode())
    Index(tmp_path).update()
    data = (tmp_path / "index.jsonl").read_bytes()
    (tmp_path / "index.jsonl").write_bytes(data[:-20])
    (tmp_path / "a").unlink()
    again = Index(tmp_path)
    assert set(the_index(tmp_path)) == {"b"}
    assert again.update()
    assert set(the_index(tmp_path)) == {"b", "c"}


def test_files_that_were_dropped_are_left_out(tmp_path):
    (tmp_path / "a").write_bytes(b"a")
    Index(tmp_path).update()
    append_line(tmp_path, {"name": "a", "bytes": None})
    assert the_index(tmp_path) == {}


def test_a_line_after_a_torn_one_begins_anew(tmp_path):
    (tmp_path / "index.jsonl").write_bytes(b'{"name": "b", "byt')
    append_line(tmp_path, {"name": "a", "bytes": 1})
    assert set(the_index(tmp_path)) == {"a"}


def test_links_and_pipes_are_not_followed(tmp_path):
    (tmp_path / "link").symlink_to("/etc/hostname")
    assert Index(tmp_path).update()
    assert the_index(tmp_path) == {}
    (tmp_path / "index.jsonl").unlink()
    (tmp_path / "index.jsonl").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="symbolic links"):
        append_line(tmp_path, {"name": "a", "bytes": 1})


@pytest.mark.parametrize("data", [b"[]\n", b"null\n", b'{"name": 3}\n', b'{"name": "../a", "bytes": 1}\n', b"[" * 100_000, b"\xff\n"])
def test_lines_that_are_none_are_left_out(data):
    assert read_index(data) == {}


def test_large_files_and_small_ones_have_the_same_hash(tmp_path, monkeypatch):
    (tmp_path / "a").write_bytes(b"x" * 300_000)
    for most in (hashing.SMALL_BYTES, 0):
        monkeypatch.setattr(hashing, "SMALL_BYTES", most)
        (tmp_path / "index.jsonl").unlink(missing_ok=True)
        Index(tmp_path).update()
        assert the_index(tmp_path)["a"]["sha256"] == hashlib.sha256(b"x" * 300_000).hexdigest()


def test_a_large_file_is_hashed_in_turns_and_anew_when_it_changed(tmp_path):
    content = b"y" * 1_000_000
    (tmp_path / "a").write_bytes(content)
    index = Index(tmp_path)
    assert not index.update(most_bytes=300_000)
    (tmp_path / "a").write_bytes(content + b"z")
    assert not index.update(most_bytes=300_000)
    assert the_index(tmp_path) == {}
    assert index.update(most_bytes=600_000)
    assert the_index(tmp_path)["a"]["sha256"] == hashlib.sha256(content + b"z").hexdigest()
