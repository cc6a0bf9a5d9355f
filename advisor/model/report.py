"""The report: ranked diagnoses, the memory ledger, the breakdown of time, and what could not be checked."""

from advisor.model.case import Unreadable
from advisor.model.dataclass import dataclass
from advisor.model.finding import Finding
from advisor.model.memory import MemoryLedger
from advisor.model.run import RunRecord
from advisor.model.step_time import OperatorCost, StepBreakdown


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """A finding with its place in the ranking.

    Attributes:
        rank: its place, from 1.
        code / name: of the rule.
        confidence: a frequency: of the diagnoses that say 0.9, nine in ten are right on the corpus.
        finding: what the rule said; its own score is not the confidence.
        job_ranks: the ranks of the job on which it was found; empty where the evidence names none.
        explains: codes whose findings this one explains; they are not ranked.
    """

    rank: int
    code: str
    name: str
    confidence: float
    finding: Finding
    job_ranks: tuple[int, ...] = ()
    explains: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SkippedRule:
    """A rule that lacked evidence.

    Attributes:
        code: of the rule.
        needs: what it needs, in words, one for each way of collecting.
        collect_with: how to collect the first of them, whole.
        kind: the first of them in a few words, the same for all that are collected in the same way.
        hint: how, in a few words that fit behind it on a line; empty where `collect_with` is as short.
    """

    code: str
    needs: tuple[str, ...]
    collect_with: str
    kind: str = ""
    hint: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultedRule:
    """A rule that crashed: a fault of ours, reported; the other rules went on."""

    code: str
    because: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What the advisor has to say of a case.

    Attributes:
        diagnoses: ranked.
        memory: the ledger that decides; None without evidence about memory.
        time: the breakdown that decides; None without evidence about time.
        operators: the costliest operators, most device time first.
        checked_count: rules that had what they need.
        skipped / faulted: rules that had not, and rules that crashed.
        unreadable: inputs that could not be read.
        read: a line for each input that was read ("train.log: a log of 120 lines, 1 failure").
        reasons: why the case looks healthy, one sentence each; only read where nothing wrong was found.
        gaps: what the evidence itself lacks, one sentence each.
        failures: the first words of each failure message that was read, with where it stands.
        record: what the run was; None where no run was watched.
        ended: how a watched run failed, in words; empty where it did not fail or nobody saw.
    """

    diagnoses: tuple[Diagnosis, ...]
    memory: MemoryLedger | None = None
    time: StepBreakdown | None = None
    operators: tuple[OperatorCost, ...] = ()
    checked_count: int = 0
    skipped: tuple[SkippedRule, ...] = ()
    faulted: tuple[FaultedRule, ...] = ()
    unreadable: tuple[Unreadable, ...] = ()
    read: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()
    gaps: tuple[str, ...] = ()
    failures: tuple[str, ...] = ()
    record: RunRecord | None = None
    ended: str = ""
