"""How large the model is, from its declared shape or from the name that a log prints, and what its training states take."""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.model.dataclass import dataclass
from advisor.model.finding import Observation
from advisor.rules.clues import Clue, anywhere, in_words, words
from advisor.rules.wording import bytes_text, parameters_text

if TYPE_CHECKING:
    from advisor.model.failure import Failure, LogText
    from advisor.model.transformer import TransformerShape

HALF_BYTES_PER_PARAMETER = 2
"""bf16 or fp16 weights, bytes a parameter."""

FULL_BYTES_PER_PARAMETER = 4
"""fp32 weights, bytes a parameter."""

STATE_BYTES_PER_PARAMETER = 16
"""bf16 weight 2, gradient 2, fp32 master 4, two AdamW moments 8: mixed-precision training, bytes a trainable parameter."""

OPTIMIZER_BYTES_PER_PARAMETER = 12
"""Of these, what the optimizer keeps: fp32 master 4 and two moments 8."""

LARGEST_PARAMETER_COUNT = 5e12
"""A number of billions beyond every published model is not a model's size."""

SMALLEST_BILLIONS = 0.1
"""Names below a tenth of a billion parameters are not written with a B."""

_BILLIONS = words(
    "b",
    r"(?<![A-Za-z\d.])(\d{1,4}(?:\.\d{1,2})?)b(?![\w/])",
)
_LORA = words(
    "lora|peft|adapter|trainable params:",
    r"\b(?:q?lora|peft|adapters?)\b|\blora_(?:r|rank|alpha)\b|LoraConfig|get_peft_model|only_optimize_lora|trainable params:",
)
_FULL = words(
    "full",
    r"\bfull[-_ ]?(?:parameter[-_ ]?)?(?:fine-?\s?tun\w+|ft|training|sft)\b",
)
_SHARDED = words(
    "fsdp|fully_shard|zero",
    r"\bfsdp\d?\b|fully_shard|zero[-_ ]?(?:stage[-_ ]?)?3|zero3",
)
_INT4 = words(
    "4|nf4|awq|gptq|qlora",
    r"\b(?:4[-_ ]?bit|int4|nf4|q4\w*|awq|gptq|qlora)\b|load_in_4bit",
)
_INT8 = words(
    "8",
    r"\b(?:8[-_ ]?bit|int8|fp8)\b(?!.{0,12}(?:adam|optim))|load_in_8bit",
)
_FP32 = words(
    "32|precision",
    r"\b(?:fp32|float32|full[- ]precision)\b",
)
_CARDS = words(
    "x|×",
    r"\b(\d{1,4})\s?[x×]\s?(?:nvidia\s+|amd\s+)?(?:[abhlvptg]\d{1,4}\w*|gb\d{3}|rtx|gtx|gpus?\b|mi\d{3}|tesla)",
)
_NO_LORA = words(
    "finetuning_type|use_lora|lora_enable|use_peft",
    r"finetuning_type\W{1,4}full|(?:use_lora|lora_enable|use_peft)\W{1,4}(?:false|0)\b",
)
_PARTLY_SHARDED = words("zero|deepspeed", r"zero[-_ ]?(?:stage[-_ ]?)?[12]\b|\bdeepspeed\b")
_OFFLOAD = words(
    "offload",
    r"\boffload",
)
_CARDS_AFTER = words(
    "gpus|cards|devices|accelerators",
    r"\b(\d{1,5})\s+(?:gpus|cards|devices|accelerators)\b",
)
MODEL_SETTINGS = (
    "model_name_or_path",
    "model_name",
    "model",
    "pretrained_model_name_or_path",
    "base_model",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSize:
    """How many parameters, and where that was said.

    Attributes:
        parameter_count: of the whole model.
        fact: the observation that says so.
    """

    parameter_count: float
    fact: Observation


def model_size(failure: Failure | None, log: LogText | None, shape: TransformerShape | None) -> ModelSize | None:
    """The size by the declared shape, else by the name in the log; None where neither is known."""
    if shape is None:
        return named_size(failure, log)
    from advisor.analysis.transformer_parameters import parameter_count  # noqa: PLC0415 - only a declared shape needs it

    count = float(parameter_count(shape))
    fact = Observation(
        statement=f"{shape.name} has {parameters_text(count)} parameters",
        source=shape.source,
        value=count,
        unit="count",
    )
    return ModelSize(parameter_count=count, fact=fact)


def named_size(failure: Failure | None, log: LogText | None) -> ModelSize | None:
    """The size in the model's name ("llama-7b" has 7 billion parameters); None where no line names one."""
    if log is not None:
        for setting in MODEL_SETTINGS:
            billions = _billions(log.setting(setting) or "")
            if billions is not None:
                return _size(billions, f"{setting} is {log.setting(setting)}", log)
    clue = in_words(_BILLIONS, failure, log)
    if clue is None:
        return None
    billions = _billions(clue.text)
    if billions is None:
        return None
    fact = clue.observation(f"the log names a model of {parameters_text(billions * 1e9)} parameters")
    return ModelSize(parameter_count=billions * 1e9, fact=fact)


def _billions(text: str) -> float | None:
    for match in _BILLIONS.compiled.finditer(text.lower()):
        billions = float(match.group(1))
        if SMALLEST_BILLIONS <= billions <= LARGEST_PARAMETER_COUNT / 1e9:
            return billions
    return None


def _size(billions: float, statement: str, log: LogText) -> ModelSize:
    return ModelSize(
        parameter_count=billions * 1e9,
        fact=Observation(statement=statement, source=log.source, value=billions * 1e9, unit="count"),
    )


def adapters(failure: Failure | None, log: LogText | None) -> Clue | None:
    """The line that speaks of LoRA or other adapters; None where none does, or where they are off."""
    if in_words(_NO_LORA, None, log) is not None or is_full_finetune(failure, log):
        return None
    return anywhere(_LORA, failure, log)


def is_full_finetune(failure: Failure | None, log: LogText | None) -> bool:
    """Whether the log says that all parameters are trained."""
    return in_words(_FULL, failure, log) is not None


def weight_bytes_per_parameter(failure: Failure | None, log: LogText | None, shape: TransformerShape | None = None) -> float:
    """Bytes a parameter by the precision that the log names, else the shape's; bf16 where none does."""
    if anywhere(_INT4, failure, log):
        return 0.5
    if anywhere(_INT8, failure, log):
        return 1.0
    return float(
        FULL_BYTES_PER_PARAMETER if anywhere(_FP32, failure, log) or (shape and shape.stored_dtype == "fp32") else HALF_BYTES_PER_PARAMETER
    )


def keeps_weights_on_host(failure: Failure | None, log: LogText | None) -> bool:
    """Whether the log says that parameters are offloaded, so that a device need not hold them all."""
    return anywhere(_OFFLOAD, failure, log) is not None


def device_count(failure: Failure | None, log: LogText | None) -> int:
    """Devices of the job by its world size or by "8x V100"; 1 where nothing says more."""
    if log is not None and log.world_size:
        return log.world_size
    for pattern in (_CARDS, _CARDS_AFTER):
        clue = in_words(pattern, failure, log)
        match = pattern.search(clue.text) if clue is not None else None
        if match:
            return max(1, int(match.group(1)))
    return 1


@dataclass(frozen=True, slots=True, kw_only=True)
class StateBytes:
    """What mixed-precision training with AdamW keeps on each device before any activation.

    Attributes:
        rest: weights and gradients.
        optimizer: fp32 master copy and two moments.
        words: bytes a parameter and over how many devices, as a sentence has it.
    """

    rest: float
    optimizer: float
    words: str

    @property
    def total(self) -> float:
        """All states of one device."""
        return self.rest + self.optimizer


def state_bytes(parameter_count: float, failure: Failure | None, log: LogText | None) -> StateBytes:
    """States of one device: 16 bytes a parameter, less what FSDP or ZeRO splits over the devices.

    FSDP and ZeRO-3 split all of it; ZeRO-1 and 2, and DeepSpeed where the stage is not said, at least
    the optimizer's 12 bytes and the gradients.
    """
    devices = device_count(failure, log)
    frameworks = set(log.frameworks) if log is not None else set()
    splits_all = "fsdp" in frameworks or anywhere(_SHARDED, failure, log) is not None
    splits_some = "deepspeed" in frameworks or anywhere(_PARTLY_SHARDED, failure, log) is not None
    over = f" over {devices} devices" if devices > 1 and (splits_all or splits_some) else ""
    half = HALF_BYTES_PER_PARAMETER
    weights = half / devices if splits_all else half
    gradients = half / devices if splits_all or splits_some else half
    optimizer = OPTIMIZER_BYTES_PER_PARAMETER / (devices if splits_all or splits_some else 1)
    if splits_some and not splits_all and over:
        over = f", gradients and optimizer states{over}"
    return StateBytes(
        rest=parameter_count * (weights + gradients),
        optimizer=parameter_count * optimizer,
        words=f"{parameters_text(parameter_count)} parameters × {STATE_BYTES_PER_PARAMETER} bytes{over}",
    )


def arithmetic_fact(statement: str, size_bytes: float, basis: Observation) -> Observation:
    """A computed number of bytes, with the source of what it was computed from."""
    return Observation(
        statement=f"{statement} = {bytes_text(size_bytes)}",
        source=basis.source,
        value=float(size_bytes),
        unit="bytes",
    )
