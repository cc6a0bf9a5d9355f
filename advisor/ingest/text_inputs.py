"""Read a text: a document of one kind is read by its reader; in a log every reader that recognizes something contributes."""

import importlib
from dataclasses import dataclass

from advisor.ingest.formats import UTF16_MARKS
from advisor.ingest.log_text import read_log
from advisor.model.errors import UnreadableInput
from advisor.model.evidence import Evidence

HEAD_BYTES = 64 * 1024
"""How much of a document is looked at to tell its kind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """A reader by name, loaded when it is asked: `looks_like_<subject>` and `read_<subject>` of its module."""

    module: str
    subject: str

    def read(self, text: bytes, path: str, head: bytes) -> Evidence | None:
        """The evidence that the reader finds; None where its kind is not in the text."""
        module = importlib.import_module(f"advisor.ingest.{self.module}")
        if not getattr(module, f"looks_like_{self.subject}")(head):
            return None
        found: Evidence | None = getattr(module, f"read_{self.subject}")(text, path)
        return found


DOCUMENTS = (
    Reader(module="nvidia_smi_xml", subject="nvidia_smi_xml"),
    Reader(module="nvidia_smi_text", subject="nvidia_smi_text"),
    Reader(module="nvidia_smi_csv", subject="nvidia_smi_csv"),
    Reader(module="exporter_metrics", subject="exporter_metrics"),
)
"""Kinds that fill a file alone."""

EMBEDDED = (
    Reader(module="operator_table", subject="operator_table"),
    Reader(module="memory_summary", subject="memory_summary"),
    Reader(module="memory_summary", subject="memory_stats"),
    Reader(module="nvidia_smi_table", subject="nvidia_smi_table"),
    Reader(module="nvidia_smi_listing", subject="nvidia_smi_listing"),
    Reader(module="nvidia_smi_failure", subject="nvidia_smi_failure"),
    Reader(module="kernel_log", subject="kernel_log"),
)
"""Kinds that stand alone, or somewhere in a log."""


def read_text(text: bytes, path: str) -> tuple[Evidence, ...]:
    """All evidence in a text.

    Raises:
        UnreadableInput: the text is XML or JSON of no kind that is known here.
    """
    if text.startswith(UTF16_MARKS):
        text = text.decode("utf-16", "replace").encode("utf-8", "replace")
    head = text[:HEAD_BYTES]
    for reader in DOCUMENTS:
        document = reader.read(text, path, head)
        if document is not None:
            return (document,)
    if head.lstrip().startswith((b"<?xml", b"<!DOCTYPE nvidia")):
        raise UnreadableInput("it is XML, but not that of nvidia-smi", "save nvidia-smi -q -x, or give another file")
    tables = [found for reader in EMBEDDED if (found := reader.read(text, path, text)) is not None]
    return (*read_log(text, path), *tables)
