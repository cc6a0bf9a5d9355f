from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from advisor.analysis.held_memory import Candidate, share_out

SIZES = st.dictionaries(st.sampled_from([1000, 2000, 4000, 7000]), st.integers(1, 5), min_size=1)
DEFAULTS = {"known_weights": Counter(), "gradients_are_old": False, "has_optimizer": True, "lasting_is_weights": True}


def candidates(counts, kind="lasting"):
    sizes = [size for size, count in counts.items() for _ in range(count)]
    return [Candidate(at=at, kind=kind, size=size, order=at) for at, size in enumerate(sizes)]


def totals(shares, blocks):
    found = Counter()
    for block in blocks:
        found[shares.get(block.at, ("left", ""))[0]] += block.size
    return found


@given(SIZES)
def test_three_blocks_a_parameter_are_its_weight_and_two_states(parameters):
    blocks = candidates({size: 3 * count for size, count in parameters.items()})
    found = totals(share_out(blocks, Counter(parameters), **DEFAULTS), blocks)
    weight = sum(size * count for size, count in parameters.items())
    assert found == {"weights": weight, "optimizer_states": 2 * weight}


@given(SIZES)
def test_four_blocks_are_a_gradient_too_where_backward_makes_none(parameters):
    blocks = candidates({size: 4 * count for size, count in parameters.items()})
    found = totals(share_out(blocks, Counter(parameters), **(DEFAULTS | {"gradients_are_old": True})), blocks)
    weight = sum(size * count for size, count in parameters.items())
    assert found == {"weights": weight, "gradients": weight, "optimizer_states": 2 * weight}


def test_weights_that_stacks_already_showed_are_not_counted_again():
    blocks = candidates({1000: 4})
    found = totals(share_out(blocks, Counter({1000: 2}), **(DEFAULTS | {"known_weights": Counter({1000: 2})})), blocks)
    assert found == {"optimizer_states": 4000}


def test_more_than_two_states_a_parameter_stay_unexplained():
    blocks = candidates({1000: 4})
    found = totals(share_out(blocks, Counter({1000: 1}), **(DEFAULTS | {"lasting_is_weights": False})), blocks)
    assert found == {"weights": 1000, "optimizer_states": 2000, "left": 1000}


def test_without_an_optimizer_nothing_is_called_its_state():
    blocks = candidates({1000: 3})
    found = totals(share_out(blocks, Counter({1000: 1}), **(DEFAULTS | {"has_optimizer": False, "lasting_is_weights": False})), blocks)
    assert found == {"weights": 1000, "left": 2000}


def test_blocks_made_in_a_step_are_weights_only_where_nothing_else_is():
    old = Candidate(at=0, kind="lasting", size=1000, order=-1)
    made = [Candidate(at=at, kind="state", size=1000, order=-at) for at in (1, 2)]
    shares = share_out([*made, old], Counter({1000: 1}), **DEFAULTS)
    assert {at: block for at, (block, _) in shares.items()} == {0: "weights", 1: "optimizer_states", 2: "optimizer_states"}
    shares = share_out(made, Counter({1000: 1}), **DEFAULTS)
    assert shares[2][0] == "weights"  # the later line of the step
