import pytest
from analysis.a_shape import a_shape
from hypothesis import given
from hypothesis import strategies as st

from advisor.analysis.known_models import known_model
from advisor.analysis.memory_estimate import Capacity, Fit
from advisor.analysis.model_size import size_of
from advisor.analysis.optimizers import OPTIMIZERS
from advisor.analysis.training_memory import estimate_training
from advisor.analysis.training_plan import PRECISIONS, TrainingPlan
from advisor.cli.model_option import model_of
from advisor.model.errors import WrongUsage

MIB = 1024**2
LLAMA = size_of(known_model("llama-3-8b"))
N = LLAMA.parameter_count


def a_plan(**fields):
    return TrainingPlan(**({"batch_count": 1, "sequence_tokens": 2048} | fields))


def estimate(**fields):
    return estimate_training(LLAMA, a_plan(**fields))


def item(found, name):
    return next(item for item in found.items if name in item.name)


STATES = [
    ("mixed", "adamw", 16),
    ("mixed", "sgd", 8),
    ("mixed", "sgd-momentum", 12),
    ("mixed", "adamw-8bit", 10),
    ("autocast", "adamw", 16),
    ("bf16", "adamw", 8),
    ("fp32", "adamw", 16),
    ("fp32", "sgd", 8),
]


@pytest.mark.parametrize(("precision", "optimizer", "expected"), STATES)
def test_model_states_by_bytes_a_parameter(precision, optimizer, expected):
    found = estimate(precision=PRECISIONS[precision], optimizer=OPTIMIZERS[optimizer])
    states = [entry for entry in found.items if entry.block in ("weights", "gradients", "optimizer_states")]
    counted = sum(entry.counted_bytes for entry in states if "autocast" not in entry.name)
    assert counted == expected * N


def test_the_peak_of_a_real_step_in_bf16_lies_in_the_range():
    """Llama-3-8B, 1 × 2048, AdamW in bf16, traced with fake tensors.

    76,583 MiB at the peak, in the step's temporaries.
    """
    found = estimate(precision=PRECISIONS["bf16"])
    states = sum(found.block_bytes(block) for block in ("weights", "gradients", "optimizer_states"))
    temporaries = item(found, "temporaries of the optimizer's step").ceiling_bytes
    assert round((states + temporaries) / MIB) == pytest.approx(76_583, abs=1)
    assert found.floor_bytes < 76_583 * MIB < found.ceiling_bytes


def test_the_end_of_forward_of_the_same_step_lies_between_the_two_counts():
    """The same trace: 60.3 thousand MiB at the end of forward, 47.5 with checkpointing.

    Gradients are not yet there.
    """
    for checkpointing, seen_mib in ((False, 60_300), (True, 47_500)):
        found = estimate(precision=PRECISIONS["bf16"], checkpoints_layers=checkpointing)
        resident = found.block_bytes("weights") + found.block_bytes("optimizer_states")
        kept = item(found, "activations")
        logits = item(found, "logits")
        assert resident + kept.counted_bytes < seen_mib * MIB
        assert seen_mib * MIB < resident + kept.ceiling_bytes + logits.ceiling_bytes


def test_adafactor_keeps_next_to_nothing():
    found = estimate(optimizer=OPTIMIZERS["adafactor"])
    assert 0 < item(found, "adafactor states").counted_bytes < 0.01 * N


def test_paged_states_may_leave_the_device():
    states = item(estimate(optimizer=OPTIMIZERS["paged-adamw-8bit"]), "states")
    assert states.least_bytes == 0
    assert states.counted_bytes == 2 * N


def test_a_quantized_base_counts_what_loaders_leave_in_bf16():
    found = estimate(lora_rank=16, quantizes_base=True)
    base, left = item(found, "frozen weights"), item(found, "leave in bf16")
    linear = LLAMA.linear_parameter_count
    assert base.ceiling_bytes + left.ceiling_bytes == pytest.approx(linear * 0.5625 + (N - linear) * 2, rel=1e-6)
    assert left.counted_bytes == 0


@pytest.mark.parametrize(
    ("sharding", "weights", "gradients", "states"),
    [
        ("ddp", 1, 1, 1),
        ("zero1", 1, 1, 8),
        ("zero2", 1, 8, 8),
        ("zero3", 8, 8, 8),
        ("fsdp", 8, 8, 8),
    ],
)
def test_sharding_divides_what_its_stage_says(sharding, weights, gradients, states):
    whole, shared = estimate(), estimate(sharding=sharding, device_count=8)
    for block, division in (
        ("weights", weights),
        ("gradients", gradients),
        ("optimizer_states", states),
    ):
        assert shared.block_bytes(block) == pytest.approx(whole.block_bytes(block) / division, rel=1e-6)
    assert shared.block_bytes("activations") == whole.block_bytes("activations")


def test_ddp_may_hold_a_second_copy_of_the_gradients():
    assert item(estimate(sharding="ddp", device_count=2), "buckets").ceiling_bytes == 2 * N


def test_the_floor_has_no_gradients_at_the_start_of_backward_unless_they_accumulate():
    long = {"sequence_tokens": 65536}
    assert estimate(accumulates=True, **long).floor_bytes - estimate(**long).floor_bytes == 2 * N


def test_a_fused_loss_can_have_no_logits_and_a_plain_one_has_them_thrice():
    logits = item(estimate(), "logits")
    elements = 2048 * 128256
    assert logits.least_bytes == 0
    assert logits.counted_bytes == elements * 10
    assert logits.ceiling_bytes == elements * 14


def test_of_a_bare_size_the_states_are_known_and_the_rest_is_not():
    found = estimate_training(model_of("70B"), a_plan())
    assert found.block_bytes("optimizer_states") == 12 * 70 * 10**9
    assert found.block_bytes("activations") is None
    assert found.ceiling_bytes is None
    small = Capacity(name="a", floor_bytes=80 * 2**30, ceiling_bytes=80 * 2**30, basis="")
    large = Capacity(name="a", floor_bytes=2**50, ceiling_bytes=2**50, basis="")
    assert found.fit(small) is Fit.DOES_NOT_FIT
    assert found.fit(large) is Fit.UNKNOWN


@pytest.mark.parametrize(
    "fields",
    [
        {"quantizes_base": True},
        {"device_count": 8},
        {"sharding": "zero3"},
    ],
)
def test_a_plan_that_contradicts_itself_is_refused(fields):
    with pytest.raises(WrongUsage):
        a_plan(**fields)


def test_adapters_need_a_shape():
    with pytest.raises(WrongUsage, match="layers"):
        estimate_training(model_of("70B"), a_plan(lora_rank=16))


@given(
    batch=st.integers(1, 64),
    tokens=st.integers(1, 8192),
    precision=st.sampled_from(sorted(PRECISIONS)),
    optimizer=st.sampled_from(sorted(OPTIMIZERS)),
    checkpointing=st.booleans(),
    scores=st.booleans(),
    rank=st.sampled_from([None, 1, 16]),
)
def test_floor_counted_and_ceiling_are_ordered_and_grow_with_the_batch(  # noqa: PLR0913, PLR0917 - one draw each
    batch, tokens, precision, optimizer, checkpointing, scores, rank
):
    plan = a_plan(
        batch_count=batch,
        sequence_tokens=tokens,
        precision=PRECISIONS[precision],
        optimizer=OPTIMIZERS[optimizer],
        checkpoints_layers=checkpointing,
        scores_are_materialized=scores,
        lora_rank=rank,
    )
    model = size_of(a_shape())
    one, more = estimate_training(model, plan), estimate_training(model, plan.with_batch(batch + 1))
    assert one.floor_bytes <= one.ceiling_bytes
    for entry in one.items:
        assert 0 <= entry.least_bytes <= max(entry.counted_bytes, entry.least_bytes) <= entry.ceiling_bytes
    assert one.floor_bytes <= more.floor_bytes
    assert one.ceiling_bytes <= more.ceiling_bytes
