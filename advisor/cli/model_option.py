"""What `--model` can mean: a built-in name, a config.json, a size, or the numbers themselves."""

import difflib
import re
from pathlib import Path

from advisor.analysis.known_models import known_model, known_model_names
from advisor.analysis.model_size import ModelSize, size_of
from advisor.cli.number_options import MODEL_SPELLING
from advisor.ingest.hugging_face_config import LARGEST_CONFIG_BYTES, parse_config
from advisor.model.errors import UnreadableInput, WrongUsage
from advisor.model.evidence import Source
from advisor.model.transformer import Experts, TransformerShape

SIZE = re.compile(r"(?P<number>\d{1,6}(?:\.\d{1,6})?)\s*(?P<scale>[MBT])", re.IGNORECASE)
SCALES = {"M": 10**6, "B": 10**9, "T": 10**12}
NUMBERS = (
    "layers",
    "hidden",
    "heads",
    "kv_heads",
    "head_size",
    "ffn",
    "vocab",
    "gated",
    "tied",
    "experts",
    "active",
    "expert_ffn",
)
NEEDED = ("layers", "hidden", "heads", "ffn", "vocab")
LARGEST_NUMBER = 10**9
NEIGHBOR_COUNT = 5


def model_of(text: str) -> ModelSize:
    """The model that the option names.

    Of a bare size ("70B") only the number of parameters is known.

    Raises:
        WrongUsage: it names nothing known.
        UnreadableInput: it names a file that is no known configuration.
    """
    match = SIZE.fullmatch(text.strip())
    if match is None:
        return size_of(shape_of(text))
    count = round(float(match["number"]) * SCALES[match["scale"].upper()])
    if not count:
        raise WrongUsage(f"--model {text}: a model without parameters", "write a size like 70B")
    return ModelSize(name=text.strip(), parameter_count=count, active_parameter_count=count)


def shape_of(text: str) -> TransformerShape:
    """The shape that the option names.

    Raises:
        WrongUsage: it names nothing known, or only a size.
        UnreadableInput: it names a file that is no known configuration.
    """
    try:
        return _shape_of(text)
    except OSError as error:
        raise WrongUsage(f"--model {text[:40]}...: {error.strerror}", "name a model or a config.json") from None


def _shape_of(text: str) -> TransformerShape:
    found = known_model(text)
    if found is not None:
        return found
    if "=" in text and not Path(text).exists():
        return _from_numbers(text)
    path = Path(text)
    if path.is_dir():
        path = path / "config.json"
    if path.is_file():
        return _from_file(path)
    if SIZE.fullmatch(text.strip()):
        raise WrongUsage(
            f"--model {text}: a size alone has no layers",
            f"name a model, or give numbers: {MODEL_SPELLING}",
        )
    near = difflib.get_close_matches(text.lower(), known_model_names(), n=NEIGHBOR_COUNT, cutoff=0.5)
    advice = f"near names: {', '.join(near)}" if near else f"known: {', '.join(known_model_names())}"
    raise WrongUsage(
        f"--model {text[:80]!r} is neither a built-in model nor a file",
        f"{advice}; or give numbers: {MODEL_SPELLING}",
    )


def beyond_context(shape: TransformerShape, tokens: int) -> tuple[str, ...]:
    """A sentence where a sequence is longer than the model declares to take; nothing otherwise."""
    if shape.context_size is None or tokens <= shape.context_size:
        return ()
    return (f"{tokens:,} tokens exceed the {shape.context_size:,} that {shape.name} declares",)


def _from_file(path: Path) -> TransformerShape:
    try:
        with path.open("rb") as file:
            data = file.read(LARGEST_CONFIG_BYTES + 1)
    except OSError as error:
        raise UnreadableInput(f"{path}: {error.strerror}", "check the path") from error
    return parse_config(data, str(path))


def _from_numbers(text: str) -> TransformerShape:
    values: dict[str, int] = {}
    for part in text.split(","):
        key, _, value = part.strip().partition("=")
        if key not in NUMBERS:
            raise WrongUsage(f"--model: unknown number {key[:40]!r}", f"known: {', '.join(NUMBERS)}")
        if not value.isascii() or not value.isdigit() or int(value[:10]) > LARGEST_NUMBER or len(value) > len("1000000000"):
            raise WrongUsage(
                f"--model: {key}={value[:20]!r} is no number that a model has",
                f"write {MODEL_SPELLING}",
            )
        values[key] = int(value)
    missing = [key for key in NEEDED if key not in values]
    if missing:
        raise WrongUsage(f"--model: {', '.join(missing)} missing", f"write {MODEL_SPELLING}")
    try:
        return _shape(values)
    except ValueError as error:
        raise WrongUsage(f"--model: {error}", f"write {MODEL_SPELLING}") from error


def _shape(values: dict[str, int]) -> TransformerShape:
    heads = values["heads"]
    experts = None
    if "experts" in values:
        experts = Experts(
            expert_count=values["experts"],
            active_count=values.get("active", 1),
            expert_ffn_size=values.get("expert_ffn", values["ffn"]),
        )
    return TransformerShape(
        source=Source(path="command line", where="--model"),
        name="the model of the command line",
        layer_count=values["layers"],
        hidden_size=values["hidden"],
        head_count=heads,
        kv_head_count=values.get("kv_heads", heads),
        head_size=values.get("head_size", values["hidden"] // max(1, heads)),
        ffn_size=values["ffn"],
        vocabulary_size=values["vocab"],
        experts=experts,
        ffn_is_gated=bool(values.get("gated", 1)),
        embeddings_are_tied=bool(values.get("tied", 0)),
    )
