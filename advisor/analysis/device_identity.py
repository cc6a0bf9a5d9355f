"""Which devices of the catalogue a trace or a node's reading names."""

from advisor.hardware.catalogue import look_up
from advisor.model.ceilings import DeviceCeilings
from advisor.model.dataclass import replace
from advisor.model.node import NodeReading
from advisor.model.trace import KinetoTrace


def traced_ceilings(trace: KinetoTrace) -> tuple[DeviceCeilings, ...]:
    """The devices that the trace's device properties name, each once, with the trace as their source."""
    names = dict.fromkeys(device.name for device in trace.devices if device.name)
    found = ((name, look_up(name)) for name in names)
    return tuple(
        replace(ceilings, source=trace.source.at(f"deviceProperties: {name}"), rank=trace.rank)
        for name, ceilings in found
        if ceilings is not None
    )


def node_ceilings(reading: NodeReading) -> tuple[DeviceCeilings, ...]:
    """The devices that nvidia-smi names, each once."""
    names = dict.fromkeys(gpu.name for gpu in reading.gpus if gpu.name)
    found = ((name, look_up(name)) for name in names)
    return tuple(replace(ceilings, source=reading.source.at(name)) for name, ceilings in found if ceilings is not None)
