import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.analysis.known_models import known_model
from advisor.analysis.model_size import size_of
from advisor.analysis.roofline import Phase, Scenario
from advisor.analysis.roofline_changes import CHANGES, apply_change, compare, part_costs
from advisor.analysis.transformer_parameters import part_counts
from advisor.cli.model_option import model_of
from advisor.hardware.catalogue import require
from advisor.model.errors import WrongUsage


def a_scenario(**fields):
    base = {
        "device": require("h100-sxm"),
        "model": size_of(known_model("llama-3-8b")),
        "phase": Phase.DECODE,
        "batches": (1,),
    }
    return Scenario(**(base | fields))


def effect(key, value, **fields):
    before = a_scenario(**fields)
    return compare(before, apply_change(before, key, value))[0]


def test_a_long_context_moves_the_limit_from_the_weights_to_the_cache():
    moved = effect("context", "32768", batches=(32,))
    assert moved.before_limit == "reading weights"
    assert moved.after_limit == "reading the KV cache"


def test_a_large_batch_moves_the_limit_to_the_products():
    moved = effect("batch", "x512")
    assert moved.after.batch_count == 512
    assert moved.after_limit == "matrix products"


def test_another_card_changes_the_ceilings_and_nothing_else():
    moved = effect("device", "H200")
    assert moved.step_ratio == pytest.approx(3.35 / 4.8)
    assert moved.after.weight_bytes == moved.before.weight_bytes


def test_half_of_the_layers_is_less_than_half_of_the_model():
    halved = apply_change(a_scenario(), "layers", "16")
    assert halved.model.shape.layer_count == 16
    assert 0.5 < halved.model.parameter_count / 8030261248 < 0.6


def test_quantized_weights_keep_the_precision_of_the_products():
    scenario = a_scenario(device=require("t4"), weights_dtype="fp16", compute_dtype="fp16")
    assert apply_change(scenario, "weights", "int4").compute_dtype == "fp16"
    assert apply_change(scenario, "weights", "fp32").compute_dtype == "fp32"


def test_experts_of_a_given_width_are_resident_in_full():
    after = apply_change(a_scenario(), "experts", "8x14336/2")
    assert after.model.parameter_count == pytest.approx(46.7e9 + 2 * 96256 * 4096, rel=0.01)
    assert after.model.shape.experts.active_count == 2


def test_the_parts_cost_what_the_model_has():
    scenario = a_scenario(model=size_of(known_model("mixtral-8x7b")))
    costs = part_costs(scenario, 1)
    assert sum(cost.parameter_count for cost in costs) == sum(part_counts(scenario.model.shape).values())


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("ffn", "0"),
        ("ffn", "x-1"),
        ("ffn", "xnan"),
        ("ffn", "xinf"),
        ("ffn", "1e99"),
        ("n_kv", "7"),
        ("experts", "8"),
        ("experts", "8/9"),
        ("experts", "0/0"),
        ("experts", "99999999/1"),
        ("weights", "int3"),
        ("device", "A100"),
        ("color", "red"),
        ("layers", ""),
    ],
)
def test_a_change_that_cannot_be_is_refused(key, value):
    with pytest.raises(WrongUsage):
        apply_change(a_scenario(), key, value)


def test_a_bare_size_has_no_structure_to_change():
    scenario = a_scenario(model=model_of("70B"))
    with pytest.raises(WrongUsage, match="only the number of parameters"):
        apply_change(scenario, "ffn", "x2")
    assert apply_change(scenario, "weights", "int4").weights_dtype == "int4"


@given(key=st.sampled_from(sorted(CHANGES)), value=st.text(max_size=12))
def test_any_value_is_a_change_or_the_one_error(key, value):
    try:
        changed = apply_change(a_scenario(), key, value)
    except WrongUsage:
        return
    assert isinstance(changed, Scenario)
