import hashlib
import os
import time

import pytest

from advisor.client import file_digests
from advisor.client.file_digests import digest_files, list_folder, paths_in


def soon():
    return time.monotonic() + 60


def test_the_digest_of_a_small_file_is_that_of_its_content(tmp_path):
    path = tmp_path / "train.py"
    path.write_bytes(b"x" * 100_000)
    found = digest_files([str(path)], deadline=soon())[str(path)]
    assert found["sha256"] == hashlib.sha256(b"x" * 100_000).hexdigest()
    assert found["size_bytes"] == 100_000
    assert found["modified_seconds"] == pytest.approx(path.stat().st_mtime)
    assert found["sampled_sha256"] is None


def test_a_large_file_is_sampled_from_its_first_byte_to_its_last(tmp_path, monkeypatch):
    monkeypatch.setattr(file_digests, "MOST_WHOLE_BYTES", 1000)
    monkeypatch.setattr(file_digests, "SAMPLE_BYTES", 10)
    content = bytearray(os.urandom(5000))
    path = tmp_path / "train.bin"

    def digest():
        path.write_bytes(content)
        found = digest_files([str(path)], deadline=soon())[str(path)]
        assert found["sha256"] is None
        return found["sampled_sha256"]

    first = digest()
    assert first == digest()
    for at in (0, -1):
        content[at] ^= 1
        assert digest() != first
        content[at] ^= 1
    content.append(0)
    assert digest() != first


def test_what_is_no_regular_file_is_left_out(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    paths = [str(tmp_path / "pipe"), str(tmp_path / "folder"), str(tmp_path / "nothing"), "/dev/zero", "a\0b"]
    assert digest_files(paths, deadline=soon()) == {}


@pytest.mark.parametrize(
    "name", [".env", "prod.env", "id_rsa", "server.pem", "credentials.json", "my-secrets.yaml", ".netrc", "kaggle.json"]
)
def test_files_of_secrets_have_no_digest(tmp_path, name):
    (tmp_path / name).write_text("A=1")
    assert digest_files([str(tmp_path / name)], deadline=soon()) == {}


def test_what_is_not_done_in_time_has_no_digest(tmp_path):
    path = tmp_path / "train.py"
    path.write_bytes(b"x" * 10)
    found = digest_files([str(path)], deadline=time.monotonic() - 1)[str(path)]
    assert found["sha256"] is None
    assert found["size_bytes"] == 10


def test_files_and_folders_of_a_command_line_are_found(tmp_path):
    for name in ("config.yaml", "args.txt", "train.jsonl", "deep.json"):
        (tmp_path / name).write_text("")
    (tmp_path / "data").mkdir()
    argv = [
        "--config",
        "config.yaml",
        f"--train={tmp_path}/train.jsonl",
        "@args.txt",
        "model.file=deep.json",
        "--data",
        "data",
        "--lr",
        "3",
        "",
        "s3://x",
        "a\0",
    ]
    files, folders = paths_in(argv, str(tmp_path))
    assert files == [str(tmp_path / name) for name in ("config.yaml", "train.jsonl", "args.txt", "deep.json")]
    assert folders == [str(tmp_path / "data")]


def test_the_listing_of_a_folder_follows_names_and_sizes_but_not_places(tmp_path):
    def a_folder(name, **files):
        (tmp_path / name / "inner").mkdir(parents=True)
        for file, size in files.items():
            (tmp_path / name / "inner" / file).write_bytes(bytes(size))
        return list_folder(str(tmp_path / name), deadline=soon())

    first = a_folder("a", x=1, y=2)
    assert (first["file_count"], first["size_bytes"], first["is_cut"]) == (2, 3, False)
    assert a_folder("b", y=2, x=1)["listing_sha256"] == first["listing_sha256"]
    assert a_folder("c", x=1, y=3)["listing_sha256"] != first["listing_sha256"]
    assert a_folder("d", x=1, z=2)["listing_sha256"] != first["listing_sha256"]


def test_a_folder_that_was_not_seen_whole_has_no_digest(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a/x").write_text("")
    found = list_folder(str(tmp_path), deadline=time.monotonic() - 1)
    assert found["is_cut"]
    assert found["listing_sha256"] is None
