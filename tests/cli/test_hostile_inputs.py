"""Inputs made to harm: one error line, exit 2, bounded memory, and nothing runs."""

import gzip
import io
import json
import os
import pickle
import struct
import subprocess
import sys
import zlib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MOST_RESIDENT_KIB = 500 * 1024
PATIENCE_SECONDS = 30


class Calls:
    def __reduce__(self):
        return (os.system, ("touch ran",))


def a_memo_bomb():
    return b"\x80\x04" + b"]" + b"r" + struct.pack("<I", 2**31 - 1) + b"."


def a_claimed_length():
    return b"\x80\x04\x8e" + struct.pack("<Q", 10 * 10**9) + b"abc."


def a_dictionary_bomb():
    return b"\x80\x04](" + b"}" * 60_000_000 + b"e."


def a_gzip_bomb(payload, *, megabytes):
    out = io.BytesIO()
    with gzip.GzipFile(fileobj=out, mode="wb", compresslevel=1) as file:
        for _ in range(megabytes):
            file.write(payload)
    return out.getvalue()


def a_bomb_of_events():
    event = json.dumps({"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "ts": 1, "dur": 1}).encode() + b","
    start = zlib.compressobj(1, wbits=31)
    body = start.compress(b'{"traceEvents": [') + b"".join(start.compress(event * 20_000) for _ in range(400))
    return body + start.flush()


HOSTILE = {
    "a pickle that calls": lambda: pickle.dumps(Calls()),
    "a pickle of a global": lambda: pickle.dumps({"segments": [], "device_traces": [print]}),
    "a pickle of an old global": lambda: b"cos\nsystem\n(S'touch ran'\ntR.",
    "a persistent id": lambda: b"\x80\x04\x8c\x01aQ.",
    "a memo bomb": a_memo_bomb,
    "a claimed length of 10 GB": a_claimed_length,
    "a bomb of dictionaries": a_dictionary_bomb,
    "deep nesting in a pickle": lambda: b"\x80\x04" + b"](" * 2_000_000 + b"e" * 2_000_000 + b".",
    "deep nesting in JSON": lambda: b'{"traceEvents": ' + b"[" * 3_000_000,
    "deep nesting in an event": lambda: b'{"traceEvents": [{"ph": "X", "args": ' + b'{"a":' * 1_000_000,
    "deep nesting of a snapshot": lambda: b'{"segments": ' + b"[" * 3_000_000,
    "a gzip bomb of zeros": lambda: a_gzip_bomb(bytes(2**20), megabytes=600),
    "a gzip bomb of spaces": lambda: a_gzip_bomb(b" " * 2**20, megabytes=600),
    "a gzip bomb of a string": lambda: gzip.compress(b'{"traceEvents": [{"name": "' + b"a" * 400_000_000),
    "random bytes": lambda: os.urandom(5_000_000),
    "a truncated gzip": lambda: gzip.compress(os.urandom(1_000_000))[:500_000],
    "a truncated pickle": lambda: pickle.dumps({"segments": [{"address": n} for n in range(10_000)]})[:5_000],
    "nothing": lambda: b"",
    "wrong types at the top": lambda: pickle.dumps({"segments": 3, "device_traces": "x"}),
    "a number": lambda: pickle.dumps(10**5000),
    "JSON of numbers": lambda: b"[" + b"1," * 1_000_000 + b"1]",
}

PROBE = (
    "import re, sys\n"
    "from advisor.cli.main import main\n"
    "code = main(['diagnose', sys.argv[1]])\n"
    "sys.stdout.flush()\n"
    "sys.stderr.flush()\n"
    "print(re.search(r'VmHWM:\\s+(\\d+)', open('/proc/self/status').read())[1], file=open(sys.argv[2], 'w'))\n"
    "sys.exit(code)\n"
)


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_input_is_one_error_line_and_exit_code_2(name, tmp_path):
    path = tmp_path / "input"
    path.write_bytes(HOSTILE[name]())
    finished = subprocess.run(
        [sys.executable, "-c", PROBE, path, tmp_path / "resident"],
        cwd=tmp_path,
        env={"PYTHONPATH": f"{ROOT}:{ROOT / 'client'}", "PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    assert finished.returncode == 2, finished.stderr
    assert len(finished.stderr.strip().splitlines()) == 1, finished.stderr
    assert finished.stdout == ""
    assert int((tmp_path / "resident").read_text()) < MOST_RESIDENT_KIB
    assert not (tmp_path / "ran").exists()


def test_a_bomb_of_events_is_bounded(tmp_path):
    path = tmp_path / "input"
    path.write_bytes(a_bomb_of_events())
    finished = subprocess.run(
        [sys.executable, "-c", PROBE, path, tmp_path / "resident"],
        cwd=tmp_path,
        env={"PYTHONPATH": f"{ROOT}:{ROOT / 'client'}", "PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS * 2,
        check=False,
    )
    assert finished.returncode == 2, finished.stderr
    assert int((tmp_path / "resident").read_text()) < MOST_RESIDENT_KIB
