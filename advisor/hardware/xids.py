"""NVIDIA's Xid numbers: what each means, and whom it accuses.

Source: the Xid catalog of NVIDIA's "Xid Errors" guide,
docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html, as of October 2025; its immediate
action decides the class: RESTART_APP with CHECK_APP or a workflow for the application's own
faults, RESET_GPU, RESTART_BM and the memory and NVLink workflows for hardware. For cards before
Ampere its older edition agrees on the numbers below.
"""

import enum

from advisor.model.dataclass import dataclass


class XidClass(enum.Enum):
    """Whom an Xid accuses."""

    APPLICATION = "the program"
    MEMORY = "the card's memory"
    DEVICE = "the card or its driver"
    LINK = "a link"
    UNCLEAR = "the program or the card"
    CONSEQUENCE = "an earlier fault"
    HARMLESS = "nothing"


@dataclass(frozen=True, slots=True)
class XidMeaning:
    """One Xid.

    Attributes:
        meaning: in a few words.
        accused: its class.
    """

    meaning: str
    accused: XidClass


_APPLICATION = {
    11: "invalid or corrupted command stream",
    13: "a kernel did something illegal (address out of range or misaligned, bad instruction)",
    25: "invalid or illegal command stream",
    31: "a kernel read or wrote an address that is not mapped",
    32: "invalid or corrupted command stream",
    43: "a kernel of the program failed and its channel was reset; the card is well",
    69: "illegal use of the compute engine's class",
    80: "corrupted data sent to the card",
}
_UNCLEAR = {
    8: "the card stopped working on a channel",
    **dict.fromkeys((39, 40, 41, 70, 71, 72, 75, 76, 77, 85, *range(126, 136)), "a copy engine failed"),
    60: "the video processor failed",
    **dict.fromkeys((68, 83, 84, 88, 89, 96, 97, 98), "a video decoder failed"),
    **dict.fromkeys((82, 99, 100, 101, 102, 103, 104, 105), "a JPEG decoder failed"),
    **dict.fromkeys((86, 139), "the optical flow engine failed"),
    44: "a fault during a context switch",
    151: "a key rotation failed",
}
_MEMORY = {
    48: "an uncorrectable memory error",
    63: "a row was marked for remapping (or a page retired)",
    64: "remapping a row (or retiring a page) failed",
    92: "a high rate of correctable memory errors",
    94: "an uncorrectable memory error, contained to the programs that used it",
    95: "an uncorrectable memory error that was not contained",
    140: "an unrecovered memory error",
    156: "a part of the card was retired",
    157: "retiring a part of the card failed",
    160: "a memory channel was retired",
    161: "retiring a memory channel failed",
    168: "less memory than the card should have",
    171: "an uncorrectable error in DRAM",
    172: "an uncorrectable error in SRAM",
}
_DEVICE = {
    46: "the card stopped processing",
    54: "auxiliary power is not connected",
    62: "a microcontroller of the card halted",
    79: "the card fell off the bus",
    109: "a context switch timed out",
    110: "a security fault",
    119: "the card's system processor (GSP) does not answer",
    120: "the card's system processor (GSP) failed",
    143: "the card could not be initialized",
    158: "a fatal timeout of the card",
    167: "a fatal timeout of the PCIe link",
    169: "a microcontroller of the card halted",
}
_LINK = {
    74: "an NVLink error",
    121: "an error of the chip-to-chip link",
    136: "an NVLink could not be trained",
    137: "a privilege error of NVLink",
    **dict.fromkeys(range(144, 151), "an NVLink error"),
    155: "an NVLink error",
}
_CONSEQUENCE = {
    45: "channels cleaned up after an earlier fault, or because the program was ended",
    154: "the driver changed its advice on how to recover the card",
}
_HARMLESS = {
    14: "a test of the driver",
    37: "a message of the driver's firmware",
    38: "a message of the driver's firmware",
    66: "an access that the driver refused itself",
    67: "an access that the driver refused itself",
    93: "wear of the card's configuration memory",
    106: "a test message",
    107: "a test message",
    141: "a fast path of CUDA was left",
    162: "power smoothing is on again",
    163: "power smoothing is off",
}

XIDS: dict[int, XidMeaning] = {
    number: XidMeaning(meaning, accused)
    for accused, meanings in (
        (XidClass.APPLICATION, _APPLICATION),
        (XidClass.UNCLEAR, _UNCLEAR),
        (XidClass.DEVICE, _DEVICE),
        (XidClass.MEMORY, _MEMORY),
        (XidClass.LINK, _LINK),
        (XidClass.CONSEQUENCE, _CONSEQUENCE),
        (XidClass.HARMLESS, _HARMLESS),
    )
    for number, meaning in meanings.items()
}
"""By number; one that is missing is unknown here, not harmless."""
