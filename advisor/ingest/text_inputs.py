"""Read a text: a document of one kind is read by its reader; in a log every reader that recognizes something contributes."""

import importlib

from advisor.ingest.formats import UTF16_MARKS
from advisor.ingest.log_text import read_log
from advisor.model.dataclass import dataclass
from advisor.model.errors import UnreadableInput
from advisor.model.evidence import Evidence

HEAD_BYTES = 64 * 1024
"""How much of a document is looked at to tell its kind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """A reader by name, loaded when a text has one of its words: `looks_like_<subject>` and `read_<subject>` of its module.

    Attributes:
        module / subject: where it is and what it reads.
        words: a text without any of them holds nothing for it; they only spare loading it, its own `looks_like` decides.
    """

    module: str
    subject: str
    words: tuple[bytes, ...]

    def read(self, text: bytes, path: str, head: bytes) -> Evidence | None:
        """The evidence that the reader finds; None where its kind is not in the text."""
        if not any(word in head for word in self.words):
            return None
        module = importlib.import_module(f"advisor.ingest.{self.module}")
        if not getattr(module, f"looks_like_{self.subject}")(head):
            return None
        found: Evidence | None = getattr(module, f"read_{self.subject}")(text, path)
        return found


_CSV_COLUMNS = (b"memory.", b"utilization.", b"uuid", b"power.", b"temperature.", b"clocks", b"pcie.", b"used_memory", b"used_gpu_memory")

DOCUMENTS = (
    Reader(module="nvidia_smi_xml", subject="nvidia_smi_xml", words=(b"nvidia_smi_log", b"nvsmi_device_v")),
    Reader(module="nvidia_smi_text", subject="nvidia_smi_text", words=(b"NVSMI LOG", b"Attached GPUs")),
    Reader(module="nvidia_smi_csv", subject="nvidia_smi_csv", words=_CSV_COLUMNS),
    Reader(module="exporter_metrics", subject="exporter_metrics", words=(b"nvidia_smi_", b"DCGM_FI_DEV_")),
)
"""Kinds that fill a file alone."""

EMBEDDED = (
    Reader(module="operator_table", subject="operator_table", words=(b"Self CPU", b"% ", b"%|", b"%\t")),
    Reader(module="memory_summary", subject="memory_summary", words=(b" memory summary",)),
    Reader(module="memory_summary", subject="memory_stats", words=(b"allocated_bytes.all.", b"num_alloc_retries")),
    Reader(module="nvidia_smi_table", subject="nvidia_smi_table", words=(b"NVIDIA-SMI", b"Pwr:Usage/Cap")),
    Reader(module="nvidia_smi_listing", subject="nvidia_smi_listing", words=(b"(UUID: ",)),
    Reader(
        module="nvidia_smi_failure",
        subject="nvidia_smi_failure",
        words=(b"NVIDIA", b"NVML", b"nvidia", b"No devices were found", b"No running driver", b"Unable to determine"),
    ),
    Reader(module="kernel_log", subject="kernel_log", words=(b"] ", b"kern", b"NVRM: ", b"Killed process ", b"oom-kill")),
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
    if head.lstrip()[:1] == b"{":
        from advisor.ingest.json_lines import plain_log  # noqa: PLC0415 - json loads only for logs of records

        log = plain_log(text)
        if log is not None:
            return log.with_doubt(tuple(log.located(item) for item in _read_log(log.text, path)))
    return _read_log(text, path)


def _read_log(text: bytes, path: str) -> tuple[Evidence, ...]:
    """What a log says, and the documents that are pasted in it."""
    tables = [found for reader in EMBEDDED if (found := reader.read(text, path, text)) is not None]
    return (*read_log(text, path), *tables)
