"""Words that are a complaint in a short report are output in a long log that shows no failure."""

import importlib

import pytest

from advisor.model.failure import Mention
from advisor.rules.clues import REPORT_LINES
from advisor.rules.rule import Rule
from advisor.rules.samples import a_log

COMPLAINTS = {
    "attention_scores_materialized": "flex_attention runs in eager mode",
    "autograd_in_inference": "the validation step did not use torch.no_grad",
    "checkpoint_loaded_on_device": "torch.load without map_location",
    "evaluation_outputs_accumulate": "predictions are concatenated on the GPU in evaluation",
    "logits_upcast": "full logits are materialized",
    "memory_growth": "GPU memory grows slowly with every step",
    "recompute_ineffective": "checkpointing does not reduce memory",
    "retained_graph": "total_loss += loss",
    "sequence_length_spike": "samples exceed max_seq_len and are not truncated",
    "state_dict_spike": "consolidating the complete state dict",
}


@pytest.mark.parametrize(("name", "text"), COMPLAINTS.items())
@pytest.mark.parametrize(("line_count", "fires"), [(REPORT_LINES, True), (REPORT_LINES + 1, False)])
def test_a_complaint_needs_a_report(name: str, text: str, line_count: int, fires: bool) -> None:
    module = importlib.import_module(f"advisor.rules.memory.{name}")
    rule = next(value for value in vars(module).values() if isinstance(value, Rule))
    log = a_log(line_count=line_count, mentions=(Mention(topic="said", line=1, text=text),))
    arguments = {need.parameter: log if need.kind == "LogText" else None for need in rule.needs}
    assert (rule.check(**arguments) is not None) is fires
