"""A checkpoint is loaded onto the device, beside the model that it is for.

## What it means

`torch.load` puts every tensor back onto the device that it was saved from, usually `cuda:0`. The
weights are then there twice, with the optimizer's states on top, and in a job of several ranks every
rank puts its copy onto the first device and makes a context there.

## How it is recognized

The refused request comes from the frames of `torch.load`; a snapshot shows live memory from them; or
the text says that ranks load onto GPU 0, or that it fails only after a restart.

## What to do

Load to the host (`map_location="cpu"`, `mmap=True`), and let `load_state_dict` copy.

## What it is confused with

Weights that do not fit at all (MEM101). Ranks that share a device throughout (MEM603), not only while
they resume.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.model.failure import Failure, Frame, LogText, Phase
from advisor.model.finding import Action, Finding, Impact, Severity
from advisor.rules.blocks import is_attributed, ledger_severity, site_facts
from advisor.rules.capacity import failure_fact, is_capacity_failure, severity_of, what_would_settle
from advisor.rules.clues import Clue, in_frames, in_words, is_report, words
from advisor.rules.remedies import saving
from advisor.rules.rule import rule
from advisor.rules.samples import GIB, MIB, a_case, a_failure
from advisor.rules.shortage import told_of_refusal
from advisor.rules.wording import bytes_text

if TYPE_CHECKING:
    from advisor.model.case import Case
    from advisor.model.memory import AllocatorRecord, MemoryLedger

LEAST_LOADED_BYTES = 256 * MIB
"""A checkpoint smaller than this does not decide whether a job fits."""

RESTORING_SCORE = 0.9
"""Score where the refused request is torch.load's own, which puts a tensor onto the device."""

LOADING_SCORE = 0.55
"""Score where it is load_state_dict or a trainer's resume: the copy may be legitimate."""

STATED_SCORE = 0.75
"""Score where the text says that checkpoints are loaded onto one device, or without map_location."""

RESUMED_SCORE = 0.5
"""Score where the text only says that it fails after a restart."""

_RESTORING = words(
    "deserialize|restore_location|persistent_load|legacy_load|serialization.py|torch.load",
    r"_cuda_deserialize|restore_location|persistent_load|legacy_load|_legacy_load"
    r"|serialization\.py.{0,60}\b_?load|torch\.load\(",
)
_LOADING = words(
    "load|resume",
    r"load_state_dict|_load_optimizer|load_checkpoint|_load_from_checkpoint|resume",
)
_STATED = words(
    "map_location|load",
    r"(?:without|no|missing|forgot\w*|omit\w*)\s+(?:a\s+|the\s+|set\w*\s+|specif\w+\s+|pass\w*\s+)?"
    r"[`'\"]?map_location"
    r"|map_location[`'\"]?\s+(?:is\s+|was\s+)?(?:not|never|missing|omitted)"
    r"|\b(?:all|every|each)\b.{0,20}\b(?:ranks?|process\w*|workers?)\b.{0,40}\bload\w*\b.{0,40}"
    r"(?:\bgpu[ _:]?0|cuda:0|device[ _:]?0|first (?:gpu|device)|same (?:gpu|device))"
    r"|(?:checkpoint|torch\.load|weights)\b.{0,40}\b(?:loads?|loaded)\b.{0,20}\b(?:on|onto|to|into)\b.{0,12}"
    r"(?:gpu[ _:]?0|cuda:0|device[ _:]?0).{0,40}(?:all|every|each)",
)
_RESUMED = words(
    "resum|restart|checkpoint|torch.load",
    r"--resume\b|\bresum(?:e|es|ed|ing)\b|after (?:a |the )?restart|restart(?:ed|ing)? from"
    r"|from (?:a |the )?(?:\w+ )?checkpoint|restor(?:e|ing) (?:a |the )?checkpoint|torch\.load\(",
)


@rule("MEM107", "checkpoint-loaded-on-device")
def checkpoint_loaded_on_device(
    failure: Failure | None,
    log: LogText | None,
    ledger: MemoryLedger | None,
    record: AllocatorRecord | None,
) -> Finding | None:
    """torch.load holds device memory, or a job fails when it resumes."""
    if is_attributed(ledger):
        return _from_ledger(ledger, failure, record)
    stated = in_words(_STATED, failure, log)
    if failure is None and stated is not None and is_report(log):
        return _finding(None, stated, STATED_SCORE)
    if failure is None or not is_capacity_failure(failure) or failure.phase is Phase.CHECKPOINT:
        return None
    for clue, score in (
        (in_frames(_RESTORING, failure), RESTORING_SCORE),
        (stated, STATED_SCORE),
        (in_frames(_LOADING, failure), LOADING_SCORE),
        (in_words(_RESUMED, failure, log) if _may_be_resuming(failure) else None, RESUMED_SCORE),
    ):
        if clue is not None:
            return _finding(failure, clue, score)
    return None


def _may_be_resuming(failure: Failure) -> bool:
    """Whether a log's word about resuming can concern the failure: a traceback from a step says no."""
    return not failure.frames or failure.phase in {Phase.UNKNOWN, Phase.LOADING}


def _finding(failure: Failure | None, clue: Clue, score: float) -> Finding:
    facts = (failure_fact(failure),) if failure is not None else ()
    return Finding(
        statement="A checkpoint is being loaded onto the device, beside the model that it is for"
        + ("." if score >= STATED_SCORE else "; the text suggests it by a restart, and does not show it."),
        severity=severity_of(failure),
        confidence=score,
        observations=(*facts, clue.observation("it loads a checkpoint")),
        actions=_actions(None, None, 0),
        settles=None if score >= RESTORING_SCORE else what_would_settle(failure),
        supersedes=_explained(failure, score),
    )


def _explained(failure: Failure | None, score: float) -> tuple[str, ...]:
    """Weights that do not fit; and, where another rank restores onto the first device, its neighbors."""
    if score < STATED_SCORE:
        return ()
    is_elsewhere = failure is not None and failure.rank not in {None, 0} and failure.device_index == 0
    return ("MEM101", "MEM601") if score >= RESTORING_SCORE and is_elsewhere else ("MEM101",)


def _from_ledger(ledger: MemoryLedger, failure: Failure | None, record: AllocatorRecord | None) -> Finding | None:
    severity = ledger_severity(ledger, failure, record)
    restored = [site for site in ledger.sites if site.live_bytes and any(_RESTORING.search(frame) for frame in site.stack)]
    loaded = sum(site.live_bytes for site in restored)
    others = ledger.entry("weights") - sum(site.live_bytes for site in restored if site.block == "weights")
    if severity is None or loaded < LEAST_LOADED_BYTES or others < loaded // 2:
        return None
    return told_of_refusal(
        Finding(
            statement=f"A checkpoint holds {bytes_text(loaded)} of the device beside the model's own "
            "weights: torch.load put its tensors there.",
            severity=min(severity, Severity.ERROR),
            confidence=0.8,
            observations=site_facts(restored, ledger.source),
            actions=_actions(ledger, record, loaded),
            impact=Impact(recoverable_bytes=loaded),
            supersedes=("MEM101",),
        ),
        ledger,
        failure,
        record,
    )


def _actions(ledger: MemoryLedger | None, record: AllocatorRecord | None, loaded_bytes: int) -> tuple[Action, ...]:
    predicted, verified_by = saving(ledger, record, loaded_bytes)
    return (
        Action(
            title="Load the checkpoint to the host",
            change='state = torch.load(path, map_location="cpu", mmap=True, weights_only=True)\nmodel.load_state_dict(state); del state',
            cost="host memory for the checkpoint; with mmap=True only for what is read",
            predicted=predicted,
            verified_by=verified_by,
        ),
        Action(
            title="Bind every rank to its own device before anything is loaded",
            change='torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))',
        ),
        Action(
            title="Build the model without memory and take the checkpoint's tensors as they are",
            change='with torch.device("meta"): model = Model(); model.load_state_dict(state, assign=True)',
            cost="the loaded tensors keep the checkpoint's dtype",
        ),
    )


def fires() -> Case:
    """The refused request is torch.load's, which restores a tensor onto cuda:0."""
    return a_case(
        a_failure(
            phase=Phase.LOADING,
            requested_bytes=64 * MIB,
            frames=(
                Frame(filename="train.py", line=41, function="main", code="state = torch.load(args.resume)"),
                Frame(
                    filename="torch/serialization.py",
                    line=1416,
                    function="persistent_load",
                    code="typed_storage = load_tensor(dtype, nbytes, key, location)",
                ),
                Frame(
                    filename="torch/serialization.py",
                    line=391,
                    function="default_restore_location",
                    code="result = fn(storage, location)",
                ),
            ),
        )
    )


def clean() -> Case:
    """The model itself is moved to the device and does not fit; no checkpoint is involved."""
    return a_case(
        a_failure(
            phase=Phase.LOADING,
            requested_bytes=64 * MIB,
            allocated_bytes=78 * GIB,
            frames=(Frame(filename="train.py", line=12, function="main", code='model = Model().to("cuda")'),),
        )
    )
