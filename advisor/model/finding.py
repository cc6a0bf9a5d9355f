"""What a rule returns: one finding, with its evidence, its confidence and its remedies."""

import enum

from advisor.model.dataclass import dataclass, field
from advisor.model.evidence import Source


class Severity(enum.IntEnum):
    """How much it matters, larger is worse."""

    INFO = 1
    WARNING = 2
    ERROR = 3


class Verification(enum.Enum):
    """How the effect that an action predicts was verified."""

    REPLAY = "REPLAY"
    ARITHMETIC = "ARITHMETIC"
    MEASUREMENT = "MEASUREMENT"
    NONE = "NONE"


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """One fact that made a rule fire.

    Attributes:
        statement: the fact in words, its number with its unit in it.
        value: the number itself; None where the fact is not a number.
        unit: of `value`: "bytes", "seconds", "ratio", "count", "tokens", "celsius", ...; None without one.
        source: where it was seen.
    """

    statement: str
    source: Source
    value: float | None = None
    unit: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Impact:
    """The most that could be won, from this finding alone; None is unknown.

    Attributes:
        recoverable_bytes: device memory at the moment that decides.
        recoverable_seconds_per_step: exposed time only, never more than the step.
        step_ratio: that time over the step, 0 to 1.
    """

    recoverable_bytes: int | None = None
    recoverable_seconds_per_step: float | None = None
    step_ratio: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """What an action is expected to reach; None is unknown."""

    peak_bytes: int | None = None
    fits: bool | None = None
    step_seconds: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """One thing to do.

    Attributes:
        title: the fix in a few words.
        change: the exact setting or line of code.
        cost: what it costs in time, memory, accuracy or work; empty where it costs nothing.
        predicted: the effect that is expected.
        verified_by: how that effect was verified.
    """

    title: str
    change: str
    cost: str = ""
    predicted: Prediction = field(default_factory=Prediction)
    verified_by: Verification = Verification.NONE


@dataclass(frozen=True, slots=True, kw_only=True)
class RuledOut:
    """Another rule's cause that the evidence speaks against."""

    code: str
    because: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What one rule says of one case.

    Attributes:
        statement: one or two sentences for people who do not write kernels, with the numbers that made it fire.
        severity: ERROR for what failed or will fail, WARNING for what costs, INFO for what is worth knowing.
        confidence: the rule's own score, 0 to 1; the engine turns it into a frequency (see docs/ranking.md).
        observations: the facts, each with its source; never empty.
        actions: in the order to try them.
        settles: what to collect or to try that would confirm or refute it; None where nothing is left open.
        impact: what could be won.
        ruled_out: the look-alikes that the evidence excludes.
        supersedes: codes whose findings are this same cause seen from further away; the engine drops them
            from the ranking and lists them as explained by this one.
    """

    statement: str
    severity: Severity
    confidence: float
    observations: tuple[Observation, ...]
    actions: tuple[Action, ...] = ()
    settles: Action | None = None
    impact: Impact = field(default_factory=Impact)
    ruled_out: tuple[RuledOut, ...] = ()
    supersedes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not 0.0 <= self.confidence <= 1.0:
            raise ValueError(f"confidence {self.confidence} is not between 0 and 1")
        if not self.observations:
            raise ValueError("a finding without an observation is an opinion")
