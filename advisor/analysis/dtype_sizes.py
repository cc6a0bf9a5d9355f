"""Bytes of one number by the names that people give to precisions."""

from advisor.model.errors import WrongUsage

BYTES_PER_ELEMENT = {
    "fp32": 4.0,
    "tf32": 4.0,
    "fp16": 2.0,
    "bf16": 2.0,
    "fp8": 1.0,
    "int8": 1.0,
    "int4": 0.5,
    "fp4": 0.5,
    "nf4": 0.5,
}
"""Payload only: the scales of quantized formats (0.02 to 0.06 bytes a weight) are counted where
memory is estimated."""

COMPUTE_DTYPE = {
    "fp32": "fp32",
    "tf32": "tf32",
    "fp16": "fp16",
    "bf16": "bf16",
    "fp8": "bf16",
    "int8": "bf16",
    "int4": "bf16",
    "fp4": "bf16",
    "nf4": "bf16",
}
"""What the matrix units compute in: quantized weights are widened to bf16 first unless the user
says otherwise."""

SPELLINGS = {
    "float32": "fp32",
    "float16": "fp16",
    "half": "fp16",
    "bfloat16": "bf16",
    "4bit": "int4",
    "8bit": "int8",
}


def dtype_named(text: str) -> str:
    """The precision that a user named, in this product's spelling.

    Raises:
        WrongUsage: no such precision.
    """
    name = text.strip().lower().removeprefix("torch.")
    name = SPELLINGS.get(name, name)
    if name not in BYTES_PER_ELEMENT:
        raise WrongUsage(f"unknown precision {text[:40]!r}", f"known: {', '.join(BYTES_PER_ELEMENT)}")
    return name
