"""The seeds and the states of the random generators at the attachment, as digests: equal digests mean equal numbers from here on."""

import struct
import sys
from collections.abc import Iterable
from types import ModuleType
from typing import Any

GREATEST_SEED_BY_HAND = 2**32
"""Libraries seed themselves with 53 or 64 random bits; people choose below 2^32, the most that numpy takes."""

DIGEST_BYTES = 16
STATE_WORDS = struct.Struct("<625I")
"""Python's generator: 624 words of the Mersenne Twister and its position."""

MOST_SEEDS_TRIED = 3


def facts_of_randomness(seeds: Iterable[int]) -> dict[str, Any]:
    """State and seed of each generator that is loaded: "random", "numpy", "torch", and "cuda" where CUDA is initialized already.

    Args:
        seeds: that may have been used: told, or called so in the configuration.

    Returns:
        For each: `state_digest`; `initial_seed` where the library keeps it; `is_seeded`: True where somebody fixed a seed, False where the
        library chose one at random, None where that cannot be seen.
    """
    found: dict[str, Any] = {}
    torch = sys.modules.get("torch")
    tried = list(seeds)
    if torch is not None and hasattr(torch, "default_generator"):
        found["torch"] = _of_torch(torch)
        if found["torch"]["is_seeded"]:
            tried.append(found["torch"]["initial_seed"])
        cuda = _of_cuda(torch)
        if cuda is not None:
            found["cuda"] = cuda
    numpy = sys.modules.get("numpy.random.mtrand")
    if numpy is not None:
        found["numpy"] = _of_numpy(numpy)
    module = sys.modules.get("random")
    if module is not None:
        found["random"] = _of_python(module, list(dict.fromkeys(tried)))
    return found


def digest_of(data: bytes) -> str:
    """A short name for the bytes."""
    import hashlib  # noqa: PLC0415 - torch has loaded it; the attachment's own import must not

    return hashlib.blake2b(data, digest_size=DIGEST_BYTES).hexdigest()


def _of_torch(torch: ModuleType) -> dict[str, Any]:
    generator = torch.default_generator
    return {"state_digest": digest_of(_bytes_of(generator.get_state())), **_seeding(generator.initial_seed())}


def _of_cuda(torch: ModuleType) -> dict[str, Any] | None:
    """The generator of the current device; its state lies in host memory, so that reading it waits for nothing."""
    if not torch.cuda.is_initialized():
        return None
    index = torch.cuda.current_device()
    generator = torch.cuda.default_generators[index]
    return {"device": index, "state_digest": digest_of(_bytes_of(generator.get_state())), **_seeding(generator.initial_seed())}


def _seeding(seed: int) -> dict[str, Any]:
    return {"initial_seed": seed, "is_seeded": 0 <= seed < GREATEST_SEED_BY_HAND}


def _bytes_of(state: Any) -> bytes:  # noqa: ANN401 - a tensor of bytes on the CPU
    ctypes = sys.modules.get("ctypes")
    if ctypes is not None:
        data: bytes = ctypes.string_at(state.data_ptr(), state.numel())
        return data
    return bytes(state.tolist())


def _of_numpy(mtrand: ModuleType) -> dict[str, Any]:
    """The legacy global generator; those that `default_rng` makes belong to whoever made them."""
    generator = getattr(mtrand, "_rand", None)
    bits = getattr(generator, "_bit_generator", None)
    name, key, *rest = mtrand.get_state()
    digest = digest_of(name.encode() + key.tobytes() + repr([float(number) for number in rest]).encode())
    # numpy forgets the sequence that it drew from the system when somebody seeds.
    for attribute in ("_seed_seq", "seed_seq"):
        if hasattr(bits, attribute):
            return {"state_digest": digest, "is_seeded": getattr(bits, attribute) is None}
    return {"state_digest": digest, "is_seeded": None}


def _of_python(random: ModuleType, seeds: list[int]) -> dict[str, Any]:
    version, words, gauss = random.getstate()
    digest = digest_of(STATE_WORDS.pack(*words) + repr((version, gauss)).encode())
    is_seeded = any(_comes_from(random, seed, words[:-1]) for seed in seeds[:MOST_SEEDS_TRIED])
    return {"state_digest": digest, "is_seeded": True if is_seeded else None}


def _comes_from(random: ModuleType, seed: int, words: tuple[int, ...]) -> bool:
    """Whether the state is that of a seed, or that of its first 624 words, which stays until they are used."""
    generator = random.Random(seed)
    if generator.getstate()[1][:-1] == words:
        return True
    generator.getrandbits(32)
    return bool(generator.getstate()[1][:-1] == words)
