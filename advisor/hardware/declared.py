"""A device given by its numbers instead of by its name: "500TFLOPS,2TB/s,80GB"."""

import re

from advisor.model.ceilings import DeviceCeilings, Figure
from advisor.model.errors import WrongUsage
from advisor.model.evidence import Source

SCALES = {"G": 1e9, "T": 1e12, "P": 1e15}
DECIMAL_BYTES = {"M": 1e6, "G": 1e9, "T": 1e12}
GIBIBYTE = 1024**3

NUMBER = r"(?P<number>\d{1,9}(?:\.\d{1,9})?)\s*"
PEAK = re.compile(rf"(?:(?P<dtype>[a-z]{{2,4}}\d{{1,2}})=)?{NUMBER}(?P<scale>[GTP])FLOP(?:/?S)?", re.IGNORECASE)
BANDWIDTH = re.compile(rf"{NUMBER}(?P<scale>[MGT])B/S", re.IGNORECASE)
MEMORY = re.compile(rf"{NUMBER}GI?B", re.IGNORECASE)
DTYPES = ("fp64", "fp32", "tf32", "fp16", "bf16", "fp8", "int8", "fp4")
HALF_PRECISIONS = ("bf16", "fp16")
"""What a peak without a dtype is of: the precision that people train and serve in."""

REMEDY = "write it like 500TFLOPS,2TB/s,80GB (a peak of another precision: fp8=1000TFLOPS)"


def declared_device(text: str) -> DeviceCeilings:
    """The ceilings that the numbers give.

    Args:
        text: comma-separated: one or more dense peaks, the memory bandwidth, and where wanted the
            capacity (GB as vendors and runtimes mean it: GiB).

    Raises:
        WrongUsage: a part cannot be read, or the peak or the bandwidth is missing.
    """
    peaks: dict[str, Figure] = {}
    bandwidth: Figure | None = None
    memory_bytes: int | None = None
    for part in (part.strip() for part in text.split(",")):
        if match := PEAK.fullmatch(part):
            peak = float(match["number"]) * SCALES[match["scale"].upper()]
            dtype = (match["dtype"] or "").lower()
            if dtype and dtype not in DTYPES:
                raise WrongUsage(
                    f"unknown precision {dtype!r} in the device {text[:80]!r}",
                    f"known: {', '.join(DTYPES)}",
                )
            peaks |= dict.fromkeys((dtype,) if dtype else HALF_PRECISIONS, _declared(peak, part))
        elif match := BANDWIDTH.fullmatch(part):
            bandwidth = _declared(float(match["number"]) * DECIMAL_BYTES[match["scale"].upper()], part)
        elif match := MEMORY.fullmatch(part):
            memory_bytes = int(float(match["number"]) * GIBIBYTE)
        else:
            raise WrongUsage(f"cannot read {part[:80]!r} in the device {text[:80]!r}", REMEDY)
    if not peaks or bandwidth is None:
        missing = "bandwidth" if peaks else "peak"
        raise WrongUsage(f"the device {text[:80]!r} has no {missing}", REMEDY)
    return DeviceCeilings(
        source=Source(path="command line", where="--device"),
        name=text,
        matched_name=text,
        vendor="",
        architecture="",
        capability="",
        sm_count=None,
        memory_bytes=memory_bytes,
        bandwidth=bandwidth,
        dense_peaks=peaks,
        measured_peaks={},
        notes="declared by its numbers; nothing else is known of it",
    )


def _declared(value: float, part: str) -> Figure:
    if not value:
        raise WrongUsage(f"{part!r} is zero", REMEDY)
    return Figure(value=value, source="command line", verified=False)
