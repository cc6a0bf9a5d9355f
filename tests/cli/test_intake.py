import gzip
import io
import json
import os
from pathlib import Path

import pytest
from run_cli import run_cli

from advisor.cli.intake import gather
from advisor.ingest.formats import Format, detect
from advisor.model.failure import Failure
from advisor.model.tables import MemorySummary

MESSAGE = b"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"


def test_a_kind_is_found_from_the_content_and_not_the_name(tmp_path):
    path = tmp_path / "holiday.jpg"
    path.write_bytes(MESSAGE)
    assert gather([str(path)]).case.first(Failure) is not None


def test_what_cannot_be_read_is_named_and_the_rest_is_kept(tmp_path):
    (tmp_path / "train.log").write_bytes(MESSAGE)
    (tmp_path / "noise.bin").write_bytes(bytes(range(256)) * 64)
    case = gather([str(tmp_path), str(tmp_path / "missing")]).case
    assert case.first(Failure) is not None
    assert {Path(item.path).name for item in case.unreadable} == {"noise.bin", "missing"}


def test_a_folder_is_never_left_by_a_link(tmp_path):
    secret = tmp_path / "secret.log"
    secret.write_bytes(MESSAGE)
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "link.log").symlink_to(secret)
    (folder / "train.log").write_bytes(b"step 1\n")
    assert gather([str(folder)]).case.first(Failure) is None


def test_a_rank_is_taken_from_the_name_where_the_content_has_none(tmp_path):
    path = tmp_path / "rank-3.log"
    path.write_bytes(MESSAGE)
    assert gather([str(path)]).case.ranks() == (3,)


def test_a_compressed_log_is_a_log(tmp_path):
    path = tmp_path / "train.log.gz"
    path.write_bytes(gzip.compress(MESSAGE))
    assert gather([str(path)]).case.first(Failure) is not None


def test_a_text_of_a_powershell_redirect_is_read(tmp_path):
    path = tmp_path / "train.log"
    path.write_bytes(MESSAGE.decode().encode("utf-16"))
    assert gather([str(path)]).case.first(Failure) is not None


def test_memory_statistics_are_read_as_json_and_as_a_printed_dictionary(tmp_path):
    stats = {"allocated_bytes.all.current": 1024, "reserved_bytes.all.peak": 4096, "num_ooms": 1, "num_alloc_retries": 2}
    for name, text in (("stats.json", json.dumps(stats)), ("printed.txt", f"OrderedDict({list(stats.items())!r})")):
        path = tmp_path / name
        path.write_text(text)
        summary = gather([str(path)]).case.first(MemorySummary)
        assert summary is not None, name
        assert summary.ooms == 1


def test_of_a_very_long_log_the_start_and_the_end_are_read(tmp_path, monkeypatch):
    monkeypatch.setattr("advisor.cli.intake.LARGEST_LOG_BYTES", 8 * 2**20)
    lines = b"".join(b"step %d loss 2.0\n" % step for step in range(900_000))
    for name, data in (("train.log", lines + MESSAGE), ("train.log.gz", gzip.compress(lines + MESSAGE, 1))):
        path = tmp_path / name
        path.write_bytes(data)
        assert gather([str(path)]).case.first(Failure) is not None


def test_a_file_of_the_kernel_is_refused_instead_of_waiting_for_it():
    if not Path("/proc/version").exists():
        pytest.skip("no /proc here")
    assert "empty" in gather(["/proc/version"]).case.unreadable[0].because


def test_endless_noise_on_standard_input_is_refused_at_its_head(monkeypatch):
    class Endless(io.RawIOBase):
        taken = 0

        def readable(self):
            return True

        def readinto(self, buffer):
            self.taken += len(buffer)
            assert self.taken < 10 * 2**20, "more was read than its head"
            buffer[:] = bytes(len(buffer))
            return len(buffer)

    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BufferedReader(Endless(), 65536)))
    assert "binary" in gather(["-"]).case.unreadable[0].because


def test_a_report_never_overwrites_what_it_is_about(tmp_path):
    path = tmp_path / "train.log"
    path.write_bytes(MESSAGE)
    finished = run_cli("diagnose", path, "-o", path)
    assert finished.code == 2
    assert path.read_bytes() == MESSAGE


def test_a_pipe_is_refused_instead_of_waiting_for_ever(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    assert "regular file" in gather([str(path)]).case.unreadable[0].because


@pytest.mark.parametrize(
    ("head", "format_"),
    [
        (b"", Format.EMPTY),
        (b" \n\t\n", Format.EMPTY),
        (b"\xef\xbb\xbf", Format.EMPTY),
        (b"\x80" * 4096, Format.BINARY),
        ("Übergröße: Speicher erschöpft, läuft nicht\n".encode("latin-1"), Format.TEXT),
        (b"\x1f\x8b\x08", Format.GZIP),
        (b"PK\x03\x04", Format.ZIP),
        (b"\x80\x04\x95", Format.PICKLE),
        (b'{"traceEvents": [', Format.KINETO),
        (b'[{"ph": "X", "ts": 1}]', Format.KINETO),
        (b'{"segments": []}', Format.SNAPSHOT_JSON),
        (b'{"level": "info"}\n{"level": "error"}\n', Format.TEXT),
        (b"[rank0]: Traceback (most recent call last):\n", Format.TEXT),
        (b"[2024-01-01 00:00:00] start\n", Format.TEXT),
        (b"{'loss': 2.0}\n{'loss': 1.9}\n", Format.TEXT),
        (b"<?xml version='1.0'?>", Format.XML),
        (b"\x1b[31merror\x1b[0m: out of memory\n", Format.TEXT),
        ("CUDA out of memory".encode("utf-16"), Format.TEXT),
        (bytes(range(256)), Format.BINARY),
    ],
)
def test_formats_are_told_by_their_first_bytes(head, format_):
    assert detect(head) is format_
