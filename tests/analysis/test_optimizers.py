import pytest
from analysis.a_shape import a_shape

from advisor.analysis.optimizers import OPTIMIZERS, factored_state_bytes, optimizer_named
from advisor.model.errors import WrongUsage


@pytest.mark.parametrize(
    ("name", "expected_bytes"),
    [
        ("adamw", 8),
        ("sgd", 0),
        ("sgd-momentum", 4),
        ("adamw-8bit", 2),
        ("paged-adamw-8bit", 2),
        ("paged-adamw", 8),
        ("lion", 4),
    ],
)
def test_bytes_a_parameter(name, expected_bytes):
    assert OPTIMIZERS[name].state_count * OPTIMIZERS[name].state_bytes == expected_bytes


def test_spellings_of_trainers_are_known():
    assert optimizer_named("adamw_torch_fused").name == "adamw"
    assert optimizer_named("Adamw_BNB_8bit").name == "adamw-8bit"


def test_an_unknown_optimizer_is_refused():
    with pytest.raises(WrongUsage, match="adamw"):
        optimizer_named("adamx")


def test_adafactor_keeps_a_number_for_each_row_and_column():
    per_layer = (8 + 8) + 2 * (4 + 8) + (8 + 8) + 3 * (24 + 8) + 2 * 8
    assert factored_state_bytes(a_shape()) == 4 * (2 * (100 + 8) + 2 * per_layer + 8)
