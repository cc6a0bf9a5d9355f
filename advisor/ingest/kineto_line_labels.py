"""Give the first lines of events, which recur, small numbers: category, name, process and thread as they are printed."""

import numpy as np

from advisor.ingest.kineto_events import HEADING
from advisor.ingest.kineto_labels import Labels
from advisor.ingest.kineto_words import MARGIN_BYTES, WORD_BYTES, Column, Text

RECORD_WORDS = MARGIN_BYTES // WORD_BYTES
"""Longer labels, those of kernels mostly, are looked up one by one."""

MOST_RECORDS = 20_000
"""Labels that are looked up all at once; in a trace with more, names do not recur."""

_WIDTHS = np.arange(RECORD_WORDS * WORD_BYTES + 1)
_INSIDE = np.clip(_WIDTHS[:, None] - WORD_BYTES * np.arange(RECORD_WORDS), 0, WORD_BYTES).astype(np.uint64)
_MASKS = ~(np.uint64(2**64 - 1) << (_INSIDE * np.uint64(WORD_BYTES)))
"""By a label's length: the bits of each of its words that are its own."""

_FACTORS = np.array([(0x9E3779B97F4A7C15 * (2 * number + 1)) % 2**64 for number in range(RECORD_WORDS)], np.uint64)
"""Odd and spread over all bits; a hash only finds the place of a record, which is then compared whole."""


class LineLabels(dict[bytes, int]):
    """Codes of `Labels` by the text that stands for them."""

    def __init__(self, labels: Labels) -> None:
        super().__init__()
        self._labels = labels
        self._hashes = np.zeros(1, np.uint64)
        self._records = np.zeros((1, RECORD_WORDS), np.uint64)
        self._codes = np.zeros(1, np.int32)

    def __missing__(self, key: bytes) -> int:
        """Read a label.

        Raises:
            ValueError: it holds something else, or something else as well.
        """
        read = HEADING.decode(b"{" + key.rstrip().removesuffix(b",") + b"}")
        code = self[key] = self._labels[read.cat, read.name, read.pid, read.tid]
        return code

    def codes(self, text: Text, starts: Column, ends: Column) -> Column:
        """The codes of labels, int32, in this order.

        Raises:
            ValueError: one holds something else, or something else as well.
        """
        codes = np.empty(len(starts), np.int32)
        widths = ends - starts
        short = np.flatnonzero(widths < len(_WIDTHS))
        records = text.records(starts[short], RECORD_WORDS) & _MASKS[widths[short]]
        hashes = records @ _FACTORS
        places = np.minimum(np.searchsorted(self._hashes, hashes), len(self._hashes) - 1)
        is_found = (self._records[places] == records).all(axis=1)
        codes[short] = self._codes[places]
        is_left = np.ones(len(starts), bool)
        is_left[short] = ~is_found
        left = np.flatnonzero(is_left)
        codes[left] = np.fromiter(map(self.__getitem__, text.pieces(starts[left], ends[left])), np.int32, len(left))
        self._learn(hashes[~is_found], records[~is_found], codes[short[~is_found]])
        return codes

    def _learn(self, hashes: Column, records: Column, codes: Column) -> None:
        if not len(hashes) or len(self._hashes) + len(hashes) > MOST_RECORDS:
            return
        self._hashes, order = np.unique(np.concatenate((self._hashes, hashes)), return_index=True)
        self._records = np.concatenate((self._records, records))[order]
        self._codes = np.concatenate((self._codes, codes))[order]
