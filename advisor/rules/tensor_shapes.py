"""Which tensor a refused request may have been: its bytes against products of sizes that the log names."""

from __future__ import annotations

import functools
import math
import re
from typing import TYPE_CHECKING

from advisor.model.dataclass import dataclass
from advisor.rules.clues import Clue, Words, anywhere, in_words, words
from advisor.rules.wording import GIB, MIB

if TYPE_CHECKING:
    from advisor.model.failure import Failure, LogText

ELEMENT_BYTES = {"fp32": 4, "bf16": 2}
"""Bytes an element, by the dtypes in which logits and attention scores are held."""

LARGE_BLOCK_BYTES = 2 * MIB
"""The caching allocator asks the driver for large blocks in multiples of 2 MiB, and messages print what was asked for."""

VOCABULARIES: dict[str, tuple[int, ...]] = {
    "llama-3": (128_256,),
    "llama3": (128_256,),
    "llama-4": (202_048,),
    "llama-2": (32_000,),
    "llama2": (32_000,),
    "llama": (32_000, 128_256),
    "mistral": (32_000, 32_768, 131_072),
    "mixtral": (32_000,),
    "qwen": (151_936, 152_064),
    "gemma": (256_000, 262_144, 262_208),
    "gpt-oss": (201_088,),
    "gpt2": (50_257,),
    "gpt-2": (50_257,),
    "deepseek": (102_400, 129_280),
    "phi": (32_064, 51_200, 100_352, 200_064),
    "bert": (30_522,),
    "mt5": (250_112,),
    "t5": (32_128,),
    "bloom": (250_880,),
    "falcon": (65_024,),
    "granite": (49_155,),
}
"""Rows of the embedding by family, as the published config.json files of their usual sizes have them;
longer names are looked for first."""

SETTINGS_OF_LENGTH = (
    "max_seq_length",
    "max_seq_len",
    "max_length",
    "sequence_length",
    "seq_length",
    "seq_len",
    "max_source_length",
    "block_size",
    "cutoff_len",
    "model_max_length",
)
SETTINGS_OF_BATCH = (
    "per_device_train_batch_size",
    "micro_batch_size",
    "train_batch_size",
    "batch_size",
)
SETTINGS_OF_VOCABULARY = ("vocab_size", "padded_vocab_size", "n_vocab")

_NUMBER = r"(?<!\d)(\d{1,3}(?:,\d{3})+|\d+(?:\.\d+)?)\s?(k\b)?"
_VOCABULARY = words(
    "v",
    rf"\b(?:V|vocab(?:ulary)?(?:[_ ]?size)?)\s*(?:=|:|of|is)?\s*{_NUMBER}|{_NUMBER}[- ](?:token )?vocab",
)
_TOKENS = words(
    "token|n=|t=|n =|t =",
    rf"\b[NT]\s?=\s?{_NUMBER}\s*(?:tokens)?|{_NUMBER}\s?tokens",
)
_LENGTH = words(
    "s|t|l",
    rf"\b(?:S|T|L|seq(?:uence)?[_ ]?len(?:gth)?|context(?:[_ ]len(?:gth)?)?)\s?(?:=|:|of|is)?\s?{_NUMBER}",
)
_PRODUCT = words(
    "x|×|*",
    r"(\d[\d,]*)\s?[x×*]\s?(\d[\d,]*)\s?[x×*]\s?(vocab\w*(?:[ _]size)?[ =]*)?(\d[\d,]*)"
    r"(?:\s?[x×*]\s?(2|4)(?:\s?(?:bytes|B)\b)?)?",
)
CHANCE_RATIO = 0.1
"""Share of all sizes that would match a multiple by chance, at most: in one of ten."""

ROUND_TOKENS = 1024
"""Micro-batches are made of sequences of a multiple of this many tokens more often than not."""

SMALLEST_VOCABULARY = 1_000
"""No language model has a smaller one; a smaller number is something else."""

SMALLEST_LENGTH = 256
"""Shorter sequences' scores are too small to fill a device, and their squares match by chance."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """A size that the log names, with the line that names it (None for a setting)."""

    count: int
    clue: Clue | None
    words: str


def resolution_bytes(failure: Failure) -> int:
    """Half of the printed request's last digit: what it may be off to either side."""
    request, printed = failure.requested_bytes or 0, failure.resolution_bytes or 0
    return max(printed, int(0.005 * GIB)) if request >= GIB else printed


def within_tolerance(failure: Failure, size_bytes: int) -> bool:
    """Whether the request is a tensor of that many bytes, rounded up to 2 MiB and printed as it is."""
    request, printed = failure.requested_bytes, resolution_bytes(failure)
    return request is not None and -printed <= request - size_bytes <= printed + LARGE_BLOCK_BYTES


def vocabulary(failure: Failure | None, log: LogText | None) -> Said | None:
    """The vocabulary that a setting or the text names ("131k vocab"); None where none does."""
    return _setting(log, SETTINGS_OF_VOCABULARY, SMALLEST_VOCABULARY) or _said(_VOCABULARY, failure, log, SMALLEST_VOCABULARY, "vocabulary")


def family_vocabularies(failure: Failure | None, log: LogText | None) -> tuple[Said, ...]:
    """The vocabularies of the model family that a frame or the text names; empty where none does."""
    for family in sorted(VOCABULARIES, key=len, reverse=True):
        clue = anywhere(_family(family), failure, log)
        if clue is not None:
            words = f"{clue.found}'s vocabulary"
            return tuple(Said(count=count, clue=clue, words=f"{words} {count:,}") for count in VOCABULARIES[family])
    return ()


@functools.cache
def _family(name: str) -> Words:
    return Words((name,), rf"(?<![a-z]){re.escape(name)}(?![a-z])")


def token_count(failure: Failure | None, log: LogText | None) -> Said | None:
    """Tokens of a micro-batch: said as such, or batch × sequence of the settings."""
    found = _said(_TOKENS, failure, log, SMALLEST_LENGTH, "tokens")
    if found is not None:
        return found
    batch, length = _setting(log, SETTINGS_OF_BATCH, 1), _setting(log, SETTINGS_OF_LENGTH, 16)
    if batch is None or length is None:
        return None
    return Said(count=batch.count * length.count, clue=None, words=f"{batch.words} × {length.words}")


def sequence_length(failure: Failure | None, log: LogText | None) -> Said | None:
    """The sequence length by a setting or by words ("S=40320")."""
    return _setting(log, SETTINGS_OF_LENGTH, SMALLEST_LENGTH) or _said(_LENGTH, failure, log, SMALLEST_LENGTH, "sequence length")


def product(failure: Failure | None, log: LogText | None) -> tuple[tuple[int, int, int], int, Clue] | None:
    """A product that the log writes out ("4 x 4096 x vocab 151936 x 4 bytes").

    Returns:
        its three factors, bytes an element (4 where not said), and the line; None unless the line says
        that the last factor is a vocabulary, or how many bytes an element has.
    """
    clue = in_words(_PRODUCT, failure, log)
    match = _PRODUCT.search(clue.text) if clue is not None else None
    if clue is None or match is None or not (match.group(3) or match.group(5)):
        return None
    first, second, third = (int(match.group(place).replace(",", "")) for place in (1, 2, 4))
    if third < SMALLEST_VOCABULARY:
        return None
    return (first, second, third), int(match.group(5) or 4), clue


def multiple_of(unit_bytes: int, failure: Failure) -> int | None:
    """How many times `unit_bytes` the request is, where it is a whole number and not so by chance."""
    request = failure.requested_bytes
    if request is None or not _is_telling(unit_bytes, failure):
        return None
    times = round(request / unit_bytes)
    return times if times >= 1 and within_tolerance(failure, times * unit_bytes) else None


def tokens_of_logits(failure: Failure, vocabulary_size: int) -> tuple[int, str] | None:
    """A round number of tokens whose logits take exactly the request, with the dtype; None without one."""
    for dtype, element_bytes in ELEMENT_BYTES.items():
        times = multiple_of(ROUND_TOKENS * vocabulary_size * element_bytes, failure)
        if times is not None:
            return times * ROUND_TOKENS, dtype
    return None


def _is_telling(unit_bytes: int, failure: Failure) -> bool:
    """Whether a match with a multiple of the unit would be rare by chance."""
    window_bytes = 2 * resolution_bytes(failure) + LARGE_BLOCK_BYTES
    return window_bytes <= CHANCE_RATIO * unit_bytes


def side_of_square(size_bytes: int, element_bytes: int) -> int:
    """The side of a square matrix of that many bytes."""
    return math.isqrt(size_bytes // element_bytes)


def _setting(log: LogText | None, names: tuple[str, ...], smallest: int) -> Said | None:
    for name in names:
        text = (log.setting(name) or "") if log is not None else ""
        if text.isdigit() and int(text) >= smallest:
            return Said(count=int(text), clue=None, words=f"{name} {text}")
    return None


def _said(pattern: Words, failure: Failure | None, log: LogText | None, smallest: int, noun: str) -> Said | None:
    clue = in_words(pattern, failure, log)
    match = pattern.search(clue.text) if clue is not None else None
    if clue is None or match is None:
        return None
    groups = match.groups()
    number, thousand = next(((groups[at], groups[at + 1]) for at in range(0, len(groups), 2) if groups[at]), ("", None))
    if not number:
        return None
    count = int(float(number.replace(",", "")) * (1000 if thousand else 1))
    return Said(count=count, clue=clue, words=f"{noun} {count:,}") if count >= smallest else None
