"""Numbers of the command line, within bounds that a slip exceeds, and how models are spelled."""

from advisor.model.errors import WrongUsage

LARGEST_BATCH = 2**20
LARGEST_CONTEXT_TOKENS = 10**8
MOST_BATCHES = 32
LARGEST_CAPACITY_GIB = 10**6
GIBIBYTE = 1024**3

MODEL_SPELLING = "layers=32,hidden=4096,heads=32,kv_heads=8,ffn=14336,vocab=128256"
MODEL_HELP = (
    "a built-in name (llama-3-8b, qwen2.5-7b, mixtral-8x7b, ...), the path of a config.json, a "
    "size (70B), or numbers (layers=32,hidden=4096,heads=32,kv_heads=8, ffn=14336,vocab=128256)"
)


def whole_number(option: str, text: str, *, least: int, most: int) -> int:
    """A whole number between two bounds.

    Raises:
        WrongUsage: it is none.
    """
    word = text.strip().replace("_", "")
    if not word.isascii() or not word.isdigit() or len(word) > len(str(most)) or not least <= int(word) <= most:
        raise WrongUsage(f"{option} {text[:40]!r}", f"give a whole number from {least} to {most:,}")
    return int(word)


def batch_list(text: str) -> tuple[int, ...]:
    """Batches separated by commas or blanks.

    Raises:
        WrongUsage: one of them is no number, or there are none or too many.
    """
    words = text.replace(",", " ").split()
    if not 0 < len(words) <= MOST_BATCHES:
        raise WrongUsage(f"--batch {text[:40]!r}", f"give 1 to {MOST_BATCHES} numbers, like 1,32,128,512")
    return tuple(whole_number("--batch", word, least=1, most=LARGEST_BATCH) for word in words)


def capacity_bytes(text: str) -> int:
    """A capacity in GiB: "80", "79.1", "80GiB".

    Raises:
        WrongUsage: it is none.
    """
    word = text.strip().lower().removesuffix("gib").removesuffix("gb").strip()
    try:
        value = float(word)
    except ValueError:
        value = 0.0
    if not 0 < value <= LARGEST_CAPACITY_GIB:
        raise WrongUsage(f"--capacity {text[:40]!r}", "give it in GiB, as torch reports it: --capacity 79.1")
    return int(value * GIBIBYTE)
