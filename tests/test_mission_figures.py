"""Every figure of the product's page on what it must be able to explain, exactly as rounded there.

Each row calls public functions; the tables are checked a second time through the command line.
"""

import json

import pytest
from run_cli import run_cli

from advisor.analysis.dtype_sizes import BYTES_PER_ELEMENT
from advisor.analysis.inference_memory import InferencePlan, estimate_inference
from advisor.analysis.known_models import known_model
from advisor.analysis.model_size import ModelSize, size_of
from advisor.analysis.optimizers import OPTIMIZERS
from advisor.analysis.roofline import Phase, Scenario, roofline, three_digits
from advisor.analysis.roofline_changes import apply_change, compare, part_costs
from advisor.analysis.training_memory import estimate_training, trainable_count
from advisor.analysis.training_plan import PRECISIONS, TrainingPlan
from advisor.analysis.transformer_costs import (
    kv_cache_bytes,
    kv_elements_per_token,
    prefill_attention_flops,
    training_weight_flops,
)
from advisor.analysis.transformer_parameters import Part, lora_parameter_count
from advisor.cli.model_option import model_of
from advisor.hardware.catalogue import require
from advisor.model.step_time import Bound

KIB, MIB, GIB = 1024, 1024**2, 1024**3
LLAMA = known_model("llama-3-8b")
MODEL = size_of(LLAMA)
H100 = require("H100")


def decode(batch=1, **fields):
    return Scenario(device=H100, model=MODEL, phase=Phase.DECODE, batches=(batch,), **fields)


def point(scenario):
    return roofline(scenario)[0]


def prefill():
    return point(Scenario(device=H100, model=MODEL, phase=Phase.PREFILL, batches=(1,), context_tokens=4096))


def other_card():
    model = model_of("70B")
    return Scenario(device=require("500TFLOPS,2TB/s"), model=model, phase=Phase.DECODE, batches=(1,))


def train(**fields):
    return estimate_training(MODEL, TrainingPlan(**({"batch_count": 1, "sequence_tokens": 4096} | fields)))


def states_bytes(**fields):
    blocks = ("weights", "gradients", "optimizer_states")
    return sum(train(**fields).block_bytes(block) for block in blocks)


def activations(**fields):
    return train(**fields).block_bytes("activations")


def cache(tokens, requests=1):
    return kv_cache_bytes(LLAMA, batch_count=requests, context_tokens=tokens, element_bytes=2)


def with_heads(count, tokens):
    shape = apply_change(decode(), "n_kv", str(count)).model.shape
    return kv_cache_bytes(shape, batch_count=1, context_tokens=tokens, element_bytes=2)


def per_parameter(block, optimizer="adamw"):
    estimate = train(optimizer=OPTIMIZERS[optimizer])
    return estimate.block_bytes(block) / MODEL.parameter_count


FIGURES = [
    # 1. Two ceilings
    ("peak of an H100, TFLOP/s", lambda: H100.dense_peaks["bf16"].value / 1e12, 989, 0),
    ("bandwidth of an H100, TB/s", lambda: H100.bandwidth.value / 1e12, 3.35, 2),
    ("ridge point, FLOP/byte", lambda: H100.ridge_point("bf16"), 295, 0),
    ("ridge of the other card, FLOP/byte", lambda: other_card().ridge, 250, 0),
    ("70B in bf16, GB", lambda: point(other_card()).weight_bytes / 1e9, 140, 0),
    ("70B decode there, ms", lambda: point(other_card()).step_seconds * 1e3, 70, 0),
    # 2. Decode, prefill, training
    ("parameters, 1e9", lambda: three_digits(MODEL.parameter_count) / 1e9, 8.03, 2),
    ("weights in bf16, GB", lambda: point(decode()).weight_bytes / 1e9, 16.06, 2),
    ("intensity at batch 1", lambda: point(decode()).intensity, 1, 6),
    ("intensity at batch 128", lambda: point(decode(128)).intensity, 128, 6),
    ("weights really read, about, GB", lambda: point(decode()).really_read_bytes / 1e9, 15, 0),
    (
        "attainable at batch 1, TFLOP/s",
        lambda: point(decode()).attainable_flops_per_second / 1e12,
        3.35,
        2,
    ),
    ("of the peak, %", lambda: point(decode()).peak_ratio * 100, 0.3, 1),
    (
        "throughput of 128 over 1",
        lambda: point(decode(128)).tokens_per_second / point(decode()).tokens_per_second,
        128,
        6,
    ),
    (
        "step of 128 over 1",
        lambda: point(decode(128)).step_seconds / point(decode()).step_seconds,
        1,
        6,
    ),
    ("int4 weights, GB", lambda: point(decode(weights_dtype="int4")).weight_bytes / 1e9, 4.0, 1),
    ("int4 decode, ms", lambda: point(decode(weights_dtype="int4")).step_seconds * 1e3, 1.2, 1),
    ("prefill of 4096, TFLOP", lambda: prefill().flops / 1e12, 66, 0),
    ("prefill intensity", lambda: prefill().intensity, 4096, 0),
    ("prefill, ms", lambda: prefill().compute_seconds * 1e3, 67, 0),
    ("prefill step, ms", lambda: prefill().step_seconds * 1e3, 67, 0),
    # 3. The four blocks
    ("bf16 weights, bytes", lambda: BYTES_PER_ELEMENT["bf16"], 2, 6),
    ("8-bit weights, bytes", lambda: BYTES_PER_ELEMENT["int8"], 1, 6),
    ("4-bit weights, bytes", lambda: BYTES_PER_ELEMENT["int4"], 0.5, 6),
    ("gradient of AdamW, bytes", lambda: per_parameter("gradients"), 2, 6),
    ("master and moments of AdamW, bytes", lambda: per_parameter("optimizer_states"), 12, 6),
    (
        "gradient and states, bytes",
        lambda: per_parameter("gradients") + per_parameter("optimizer_states"),
        14,
        6,
    ),
    (
        "AdamW's own states, bytes",
        lambda: OPTIMIZERS["adamw"].state_count * OPTIMIZERS["adamw"].state_bytes,
        8,
        6,
    ),
    ("SGD's states, bytes", lambda: OPTIMIZERS["sgd"].state_count, 0, 6),
    (
        "SGD keeps the master copy alone, bytes",
        lambda: per_parameter("optimizer_states", "sgd"),
        4,
        6,
    ),
    ("full fine-tuning, bytes a parameter", lambda: states_bytes() / MODEL.parameter_count, 16, 6),
    ("full fine-tuning, GB", lambda: states_bytes() / 1e9, 128.5, 1),
    ("LoRA r=16, M parameters", lambda: lora_parameter_count(LLAMA, 16) / 1e6, 41.9, 1),
    (
        "LoRA r=16, %",
        lambda: lora_parameter_count(LLAMA, 16) / MODEL.parameter_count * 100,
        0.52,
        2,
    ),
    (
        "frozen base, GB",
        lambda: MODEL.parameter_count * PRECISIONS["mixed"].frozen_bytes / 1e9,
        16.1,
        1,
    ),
    (
        "adapters with their states, GB",
        lambda: (states_bytes(lora_rank=16) - MODEL.parameter_count * 2) / 1e9,
        0.67,
        2,
    ),
    ("LoRA in all, GB", lambda: states_bytes(lora_rank=16) / 1e9, 16.7, 1),
    (
        "QLoRA's base, GB",
        lambda: train(lora_rank=16, quantizes_base=True).items[0].counted_bytes / 1e9,
        4.4,
        1,
    ),
    ("QLoRA in all, GB", lambda: states_bytes(lora_rank=16, quantizes_base=True) / 1e9, 5.1, 1),
    ("activations a layer, MiB", lambda: activations() / 32 / MIB, 528, 0),
    ("activations, GiB", lambda: activations() / GIB, 16.5, 1),
    (
        "activations with checkpointing, GiB",
        lambda: activations(checkpoints_layers=True) / GIB,
        1.0,
        1,
    ),
    (
        "a third more compute",
        lambda: training_weight_flops(1, 1, recomputed=True) / training_weight_flops(1, 1),
        1.33,
        2,
    ),
    ("activations at batch 8, GiB", lambda: activations(batch_count=8) / GIB, 132, 0),
    ("KV cache a token, KB", lambda: kv_elements_per_token(LLAMA) * 2 / 1e3, 131, 0),
    ("8K context, GB", lambda: cache(8192) / 1e9, 1, 0),
    ("64 such requests, GB (binary)", lambda: cache(8192, 64) / GIB, 64, 0),
    ("32K context, GB", lambda: cache(32768) / 1e9, 4.3, 1),
    ("32K context with n_kv 32, GB", lambda: with_heads(32, 32768) / 1e9, 17, 0),
    # 4. The reference model
    (
        "the reference GPT, M parameters",
        lambda: size_of(known_model("tiny-gpt")).parameter_count / 1e6,
        0.84,
        2,
    ),
]


@pytest.mark.parametrize(("name", "figure", "expected", "digits"), FIGURES, ids=[row[0] for row in FIGURES])
def test_the_page_states_it_so(name, figure, expected, digits):
    assert round(figure(), digits) == expected, name


DECODE_TABLE = [
    (1, "4.8 ms", "0.0 ms", "memory", "209 token/s"),
    (32, "4.8 ms", "0.5 ms", "memory", "6,675 token/s"),
    (128, "4.8 ms", "2.1 ms", "memory", "26,700 token/s"),
    (512, "4.8 ms", "8.3 ms", "compute", "61,582 token/s"),
]


@pytest.mark.parametrize("row", DECODE_TABLE, ids=lambda row: f"batch {row[0]}")
def test_the_command_prints_the_decode_table(row):
    finished = run_cli("roofline", "--device", "H100", "--model", "llama-3-8b")
    assert finished.code == 0
    batch, bandwidth, compute, bound, throughput = row
    wanted = [str(batch), *bandwidth.split(), *compute.split(), bound, *throughput.split()]
    assert wanted in [line.split() for line in finished.out.splitlines()]


@pytest.mark.parametrize("row", DECODE_TABLE, ids=lambda row: f"batch {row[0]}")
def test_the_json_holds_the_decode_table(row):
    finished = run_cli(
        "roofline",
        "--device",
        "H100",
        "--model",
        "llama-3-8b",
        "--batch",
        row[0],
        "--format",
        "json",
    )
    found = json.loads(finished.out)["points"][0]
    assert f"{found['bandwidth_seconds'] * 1e3:.1f} ms" == row[1]
    assert f"{found['compute_seconds'] * 1e3:.1f} ms" == row[2]
    assert found["bound"].lower() == row[3]
    assert f"{found['tokens_per_second']:,.0f} token/s" == row[4]


def test_the_command_states_the_ceilings_of_the_page():
    text = run_cli("roofline", "--device", "H100", "--model", "llama-3-8b").out
    for figure in (
        "989 TFLOP/s",
        "3.35 TB/s",
        "295 FLOP/byte",
        "8.03e9 parameters",
        "16.06 GB",
        "0.3% of the peak",
    ):
        assert figure in text


def test_the_command_states_the_prefill_of_the_page():
    text = run_cli("roofline", "--device", "H100", "--model", "llama-3-8b", "--phase", "prefill").out
    for figure in ("66 TFLOP", "67 ms", "4,096 FLOP", "compute-bound"):
        assert figure in text


def test_the_command_states_what_a_good_utilization_is():
    text = run_cli("roofline", "--device", "H100", "--model", "llama-3-8b", "--phase", "train").out
    assert "MFU of 40% to 50%" in " ".join(text.split())


def test_the_command_states_the_other_card_of_the_page():
    text = run_cli("roofline", "--device", "500TFLOPS,2TB/s", "--model", "70B", "--batch", "1").out
    for figure in ("250 FLOP/byte", "140 GB", "70 ms"):
        assert figure in text


ESTIMATES = [
    (("--optimizer", "adamw"), ("128.5 GB", "528 MiB a layer", "16.5 GiB")),
    (("--batch", "8"), ("132.0 GiB",)),
    (("--checkpointing",), ("1.0 GiB", "a third more")),
    (("--lora", "16"), ("41.9 M", "0.52%", "16.1 GB", "16.7 GB")),
    (("--lora", "16", "--qlora"), ("4.4 GB", "5.1 GB")),
    (("--inference", "--batch", "64", "--sequence", "8192"), ("131 KB a token", "64.0 GiB")),
    (("--inference", "--sequence", "32768"), ("4.3 GB",)),
]


@pytest.mark.parametrize(("options", "figures"), ESTIMATES, ids=" ".join)
def test_the_command_states_the_blocks_of_the_page(options, figures):
    base = ("estimate", "--device", "H100", "--model", "llama-3-8b", "--sequence", "4096")
    finished = run_cli(*base, *options)
    assert finished.code == 0
    flat = " ".join(finished.out.split())
    for figure in figures:
        assert figure in flat, figure


def test_doubling_the_ffn_doubles_its_parameters_its_flops_and_the_time_to_read_it():
    before = decode()
    after = apply_change(before, "ffn", "x2")
    old, new = (next(cost for cost in part_costs(scenario, 1) if cost.part is Part.FFN) for scenario in (before, after))
    assert new.parameter_count == 2 * old.parameter_count
    assert new.flops == 2 * old.flops
    assert new.read_seconds == pytest.approx(2 * old.read_seconds)


def test_a_mixture_saves_compute_and_not_memory_and_at_a_large_batch_not_traffic():
    before = decode(1)
    after = apply_change(before, "experts", "8/2")
    assert after.model.parameter_count == pytest.approx(before.model.parameter_count, rel=1e-3)
    assert after.model.active_parameter_count < 0.5 * before.model.parameter_count
    single = compare(before, after)[0]
    assert single.step_ratio == pytest.approx(after.model.active_parameter_count / before.model.parameter_count, rel=0.01)
    large = compare(decode(64), apply_change(decode(64), "experts", "8/2"))[0]
    assert large.after.weight_bytes == pytest.approx(large.before.weight_bytes, rel=1e-3)
    assert large.after.flops < 0.5 * large.before.flops


def test_scores_grow_with_the_square_of_the_context_and_the_cache_with_the_context():
    assert prefill_attention_flops(LLAMA, 8192) == 4 * prefill_attention_flops(LLAMA, 4096)
    assert cache(8192) == 2 * cache(4096)


def test_four_bit_weights_are_a_quarter_of_decode_and_nothing_of_training():
    quarter = compare(decode(), apply_change(decode(), "weights", "int4"))[0]
    assert quarter.step_ratio == pytest.approx(0.25)
    training = Scenario(device=H100, model=MODEL, phase=Phase.TRAIN, batches=(1,), context_tokens=4096)
    nothing = compare(training, apply_change(training, "weights", "int4"))[0]
    assert nothing.step_ratio == 1.0
    assert nothing.before.bound is Bound.COMPUTE


def test_lora_shrinks_gradients_and_states_together_and_activations_not_at_all():
    full, lora = train(), train(lora_rank=16)
    share = trainable_count(MODEL, TrainingPlan(batch_count=1, sequence_tokens=1, lora_rank=16)) / MODEL.parameter_count
    for block in ("gradients", "optimizer_states"):
        assert lora.block_bytes(block) == pytest.approx(share * full.block_bytes(block))
    assert lora.block_bytes("activations") == full.block_bytes("activations")


def test_generation_has_no_gradients_and_training_no_cache():
    generation = estimate_inference(MODEL, InferencePlan(batch_count=64, sequence_tokens=8192))
    assert not {"gradients", "optimizer_states"} & {item.block for item in generation.items}
    assert "kv_cache" not in {item.block for item in train().items}
    assert generation.block_bytes("kv_cache") > generation.block_bytes("weights")


def test_a_bare_size_stands_for_its_parameters_alone():
    assert model_of("70B") == ModelSize(name="70B", parameter_count=70 * 10**9, active_parameter_count=70 * 10**9)
