"""A training loop by the clock's tick: what hooks would call, with times that a test chooses."""

from advisor.client.layout import PHASES, Step, step_of
from advisor.client.timeline import Batch, Timeline

MILLISECOND = 1_000_000

EIGHT = Batch(sample_count=8)


class Loop:
    """Drives a timeline; every call takes as long as the test says."""

    def __init__(self) -> None:
        self.now = 1_000
        self.steps: list[Step] = []
        self.state = [0, 0, 0]
        self.timeline = Timeline(lambda values: self.steps.append(step_of(values)), self.state, clock=lambda: self.now)

    def spend(self, milliseconds: float) -> None:
        self.now += round(milliseconds * MILLISECOND)

    def batch(self, milliseconds: float, *, grad: bool = True, batch: Batch | None = EIGHT) -> None:
        self.timeline.batch_begin(grad)
        self.spend(milliseconds)
        self.timeline.batch_end(batch, grad)

    def backward(self, milliseconds: float) -> None:
        self.timeline.backward_begin()
        self.spend(milliseconds)
        self.timeline.backward_end()

    def optimizer(self, milliseconds: float, identity: int = 1) -> None:
        self.timeline.optimizer_begin()
        self.spend(milliseconds)
        self.timeline.optimizer_end(identity)

    def training_step(self, data: float = 2, forward: float = 3, backward: float = 6, optimizer: float = 1) -> None:
        self.batch(data)
        self.spend(forward)
        self.backward(backward)
        self.optimizer(optimizer)


def phases(step: Step) -> dict[str, float]:
    """Milliseconds of the phases that took any time."""
    return {name: round(seconds * 1e3, 3) for name, seconds in zip(PHASES, step.phases, strict=True) if seconds}
