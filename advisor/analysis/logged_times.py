"""A log's own figures of time → how long a step waits for data, where the trainer prints it."""

import re

from advisor.model.dataclass import dataclass
from advisor.model.evidence import Source
from advisor.model.failure import LogText

_NUMBER = r"(\d+(?:\.\d+)?)\s*(ms|s(?:ec(?:onds?)?)?)?\b"

_DATA = re.compile(
    rf"\bdata(?:[ _]?(?:loading|wait))?[ _]?(?:time)?(?:\s+per\s+\w+)?\s*[:= ]\s*{_NUMBER}",
    re.IGNORECASE,
)
"""What trainers call it: "data_time: 0.217", "Data 0.031 (0.040)", "data loading time 0.2 s"."""

_STEP = re.compile(
    rf"(?<![a-z_])(?:(?:step|iter(?:ation)?|batch)[ _]?(?:time)?|time)\s*[:= ]\s*{_NUMBER}",
    re.IGNORECASE,
)
"""The whole step, beside it: "time: 0.342", "step 100 ms", "batch_time 0.3"."""

_IDLE = re.compile(r"\bGPU\s+(?:is\s+)?idle\s*:?\s*(\d+(?:\.\d+)?)\s*(?:-\s*\d+(?:\.\d+)?\s*)?%", re.IGNORECASE)
"""The device's idle share, in prose: "GPU idle 70-92%"; the lower figure counts."""

TOPIC = "data-time"
"""The topic under which a log's mentions keep such lines."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedDataTime:
    """What one line says of waiting for data.

    Attributes:
        data_seconds: the wait a step.
        step_seconds: the whole step; None where the line does not say.
        idle_ratio: share of the time in which the line says that the device idles; None where not.
        text / source: the line.
    """

    data_seconds: float
    step_seconds: float | None
    idle_ratio: float | None
    text: str
    source: Source

    @property
    def ratio(self) -> float | None:
        """Wait over step, 0 to 1; None where the step is unknown."""
        if not self.step_seconds:
            return None
        return min(1.0, self.data_seconds / self.step_seconds)


def logged_data_time(log: LogText) -> LoggedDataTime | None:
    """The median line, by its wait, of those that print a time for data; None without one."""
    found = sorted(
        (
            line
            for mention in log.mentions
            if mention.topic == TOPIC and (line := _read(mention.text, log.source.at(f"line {mention.line}")))
        ),
        key=lambda line: line.data_seconds,
    )
    return found[len(found) // 2] if found else None


def _read(text: str, source: Source) -> LoggedDataTime | None:
    data = _DATA.search(text)
    if data is None:
        return None
    # The word before a data time ("data_time") must not be taken for the step's.
    step = _STEP.search(text[: data.start()] + " " + text[data.end() :])
    return LoggedDataTime(
        data_seconds=_seconds(data),
        step_seconds=_seconds(step) if step else None,
        idle_ratio=float(idle[1]) / 100 if (idle := _IDLE.search(text)) else None,
        text=text.strip(),
        source=source,
    )


def _seconds(figure: re.Match[str]) -> float:
    value, unit = float(figure[1]), (figure[2] or "s").lower()
    return value * (1e-3 if unit == "ms" else 1.0)
