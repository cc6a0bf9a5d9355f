"""Memory runs out while a checkpoint is made, not while the model trains.

## What it means

Saving a sharded model gathers its parameters, and often its optimizer states, into whole tensors; some
savers make a second copy on the device before they write it. Training that leaves no room for that
fails at the first save.

## How it is recognized

The refused request comes from frames of `state_dict` or of a saver; or the text says that it trains
and fails at saving.

## What to do

Save sharded (each rank its part), gather to the host and one rank at a time, or save only what is
trained.

## What it is confused with

Loading a checkpoint onto the device (MEM107). A full device (MEM201): here training itself fits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.model.failure import Failure, Frame, LogText, Phase
from advisor.model.finding import Action, Finding, Impact, Severity
from advisor.rules.capacity import (
    failure_fact,
    is_capacity_failure,
    ruled_out_by_figures,
    severity_of,
    what_would_settle,
)
from advisor.rules.clues import Clue, in_frames, in_words, is_report, words
from advisor.rules.rule import rule
from advisor.rules.samples import GIB, MIB, a_case, a_failure

if TYPE_CHECKING:
    from advisor.model.case import Case

PHASE_SCORE = 0.85
"""Score where the traceback lies in saving."""

STATED_SCORE = 0.8
"""Score where the text says that it fails at saving."""

GATHERS_SCORE = 0.55
"""Score where the text speaks of gathering a whole state dict, and not of a failure."""

_SAVING_FRAME = words(
    "state_dict|save|_params",
    r"_full_state_dict|full_state_dict|_consolidated_16bit_state_dict|save_checkpoint|save_pretrained|save_model"
    r"|_save_checkpoint|\bstate_dict\(|optim_state_dict|torch\.save\(|summon_full_params",
)
_STATED = words(
    "sav|state dict|state_dict",
    r"(?:fail\w*|oom\w*|out of memory|crash\w*|dies|error\w*)\b.{0,40}\b(?:at|on|in|when|while|during|after)\b.{0,20}"
    r"\b(?:sav(?:e|ing)|checkpoint(?:ing)? sav\w*|checkpoint save|state[ _]dict|save_\w+)"
    r"|(?:when|while|during|at|on)\s+(?:\w+\s+){0,2}(?:saving|checkpoint save)\b|\bcheckpoint save\b"
    r"|\bsav(?:e|es|ing)\b.{0,40}(?:oom|out of memory|fails)",
)
_GATHERS = words(
    "state|parameters|weights|zero|fsdp",
    r"(?:consolidat|gather|materiali[sz])\w*\s+(?:\w+\s+){0,3}(?:complete|full|whole|entire)?\s*(?:state[ _]dict|parameters|weights)"
    r"|(?:zero[- ]?3|fsdp)\b.{0,30}\bsave\b",
)
_CHECKPOINTING = words(
    "checkpoint",
    r"(?:gradient|activation)[ _-]?checkpoint",
)


@rule("MEM704", "state-dict-spike")
def state_dict_spike(failure: Failure | None, log: LogText | None) -> Finding | None:
    """The failure lies in saving, by its frames or by the words around it."""
    gathers = in_words(_GATHERS, failure, log)
    if failure is None:
        is_said = gathers is not None and is_report(log)
        return _finding(None, gathers, GATHERS_SCORE) if is_said else None
    if not is_capacity_failure(failure):
        return None
    stated = in_words(_STATED, failure, log)
    if stated is not None and _CHECKPOINTING.search(stated.found):
        stated = None
    if failure.phase is Phase.CHECKPOINT:
        clue = in_frames(_SAVING_FRAME, failure) or stated
        return _finding(failure, clue, PHASE_SCORE)
    if stated is not None and (not failure.frames or failure.phase is Phase.UNKNOWN):
        return _finding(failure, stated, STATED_SCORE)
    if gathers is not None and not failure.frames:
        return _finding(failure, gathers, GATHERS_SCORE)
    return None


def _finding(failure: Failure | None, clue: Clue | None, score: float) -> Finding:
    facts = [failure_fact(failure)] if failure is not None else []
    if clue is not None:
        facts.append(clue.observation("it is saving"))
    return Finding(
        statement="Memory runs out while a checkpoint is made: saving gathers whole tensors on the device"
        + ("; training itself fits." if score >= STATED_SCORE else "."),
        severity=severity_of(failure) if failure is not None else Severity.WARNING,
        confidence=score,
        observations=tuple(facts),
        actions=(
            Action(
                title="Save sharded: every rank its own part",
                change="torch.distributed.checkpoint.save(state_dict, checkpoint_id=path)\n"
                '# FSDP: StateDictType.SHARDED_STATE_DICT; Accelerate: fsdp_state_dict_type: "SHARDED_STATE_DICT"',
                cost="the parts must be merged to be loaded elsewhere",
            ),
            Action(
                title="Gather on the host, one rank only",
                change="get_model_state_dict(model, options=StateDictOptions(full_state_dict=True, cpu_offload=True))\n"
                '# DeepSpeed: "stage3_gather_16bit_weights_on_model_save": false',
                cost="host memory for the whole model; a slower save",
            ),
            Action(
                title="Save only what is trained",
                change="peft_model.save_pretrained(path)  # adapters, not the base",
                cost="only with adapters",
            ),
            Action(
                title="Make room before the save",
                change="optimizer.zero_grad(set_to_none=True); torch.cuda.empty_cache()",
                cost="the next step allocates again",
            ),
        ),
        settles=None if score >= PHASE_SCORE else what_would_settle(failure),
        impact=Impact(recoverable_bytes=failure.requested_bytes if failure is not None else None),
        ruled_out=ruled_out_by_figures(failure) if failure is not None else (),
        supersedes=("MEM101", "MEM103", "MEM201") if score >= STATED_SCORE else (),
    )


def fires() -> Case:
    """FSDP gathers a whole state dict and runs out of memory."""
    return a_case(
        a_failure(
            phase=Phase.CHECKPOINT,
            requested_bytes=500 * MIB,
            allocated_bytes=77 * GIB,
            frames=(
                Frame(filename="train.py", line=140, function="save", code="state = model.state_dict()"),
                Frame(
                    filename="torch/distributed/fsdp/_state_dict_utils.py",
                    line=320,
                    function="_full_post_state_dict_hook",
                    code="state_dict[fqn] = state_dict[fqn].clone().detach()",
                ),
            ),
        )
    )


def clean() -> Case:
    """A job with activation checkpointing fails in backward."""
    return a_case(
        a_failure(
            phase=Phase.BACKWARD,
            requested_bytes=500 * MIB,
            frames=(
                Frame(filename="train.py", line=70, function="step", code="loss.backward()"),
                Frame(filename="torch/utils/checkpoint.py", line=300, function="backward", code="outputs = run(*args)"),
            ),
        )
    )
