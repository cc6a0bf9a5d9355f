"""Files cut short: every kind in which an end is known, so that a cut can be told."""

import gzip
import io
import json
import pickle
from dataclasses import dataclass

import zstandard


@dataclass(frozen=True)
class Whole:
    """A file to be cut.

    Attributes:
        name: tells it apart.
        kind: of its content.
        data: all of it.
    """

    name: str
    kind: str
    data: bytes

    def cut(self, percent):
        return self.data[: len(self.data) * percent // 100]


class Plain(pickle.Unpickler):
    """For the corpus' own snapshots, which hold no global."""

    def find_class(self, module, name):
        raise pickle.UnpicklingError(f"{module}.{name}")


def kind_of(path, data):
    """A short word for what a file of the corpus is."""
    name = path.name
    for ending, kind in ((".json.gz", "trace-gz"), (".pickle", "pickle"), (".xml", "xml"), (".jsonl", "jsonl"), (".metrics", "metrics")):
        if name.endswith(ending):
            return kind
    if name.endswith(".json"):
        return "trace-json"
    if b"NVSMI LOG" in data[:4096]:
        return "nvidia-smi-text"
    return "text"


def wholes(path):
    """A file of the corpus, and the same content in the other packings that its kind has."""
    data = path.read_bytes()
    kind = kind_of(path, data)
    yield Whole(path.name, kind, data)
    if kind == "trace-gz":
        plain = gzip.decompress(data)
        yield Whole(path.name, "trace-plain", plain)
        yield Whole(path.name, "trace-zst", zstandard.compress(plain))
    elif kind == "pickle":
        text = json.dumps(Plain(io.BytesIO(data)).load()).encode()
        yield Whole(path.name, "snapshot-json", text)
        yield Whole(path.name, "pickle-gz", gzip.compress(data, 1))
    elif kind == "jsonl":
        for number, line in enumerate(data.splitlines()):
            text = json.loads(line)["error_text"]
            if text:
                yield Whole(f"{path.stem}-{number}", "error-text", text.encode())
    elif kind in ("xml", "text", "nvidia-smi-text"):
        yield Whole(path.name, f"{kind}-utf16", data.decode("utf-8", "replace").encode("utf-16"))
        yield Whole(path.name, f"{kind}-gz", gzip.compress(data))


CLOSED = (
    "trace-gz",
    "trace-zst",
    "trace-json",
    "trace-plain",
    "xml",
    "xml-gz",
    "xml-utf16",
    "snapshot-json",
    "pickle",
    "pickle-gz",
    "text-gz",
    "nvidia-smi-text-gz",
)
"""Kinds whose content says where it ends: of a cut one the report has to say so."""
