from hypothesis import given
from hypothesis import strategies as st

from advisor.analysis.fitting import LARGEST_BATCH, largest_batch, remedies
from advisor.analysis.known_models import known_model
from advisor.analysis.memory_estimate import Capacity, Fit, MemoryEstimate, capacity_of
from advisor.analysis.model_size import size_of
from advisor.analysis.training_plan import TrainingPlan
from advisor.hardware.catalogue import require

GIB = 1024**3


def a_capacity(size, floor=None):
    return Capacity(name="a card", floor_bytes=floor or size, ceiling_bytes=size, basis="as declared")


def an_estimate(floor, ceiling):
    return MemoryEstimate(items=(), floor_bytes=floor, counted_bytes=floor, ceiling_bytes=ceiling)


def test_the_verdict_is_certain_only_where_both_ends_agree():
    card = a_capacity(100, floor=90)
    assert an_estimate(50, 90).fit(card) is Fit.FITS
    assert an_estimate(50, 91).fit(card) is Fit.TOO_NEAR
    assert an_estimate(100, 200).fit(card) is Fit.TOO_NEAR
    assert an_estimate(101, 200).fit(card) is Fit.DOES_NOT_FIT
    assert an_estimate(50, None).fit(card) is Fit.UNKNOWN
    assert an_estimate(50, 60).fit(None) is Fit.UNKNOWN


@given(fixed=st.integers(0, 1000), each=st.integers(1, 100), size=st.integers(1, 10_000))
def test_the_largest_batch_fits_and_the_next_does_not(fixed, each, size):
    found = largest_batch(lambda batch: an_estimate(fixed + each * batch, fixed + 2 * each * batch), a_capacity(size))
    for batch, cost in ((found.surely, 2 * each), (found.at_best, each)):
        assert batch == 0 or fixed + cost * batch <= size
        assert fixed + cost * (batch + 1) > size


def test_a_batch_that_costs_nothing_ends_at_the_bound():
    found = largest_batch(lambda _: an_estimate(1, 1), a_capacity(10))
    assert LARGEST_BATCH / 2 <= found.surely <= LARGEST_BATCH


def test_remedies_that_fit_stand_first():
    model = size_of(known_model("llama-3-8b"))
    plan = TrainingPlan(batch_count=4, sequence_tokens=4096)
    found = remedies(model, plan, capacity_of(require("h100-sxm")))
    verdicts = [remedy.fit for remedy in found]
    assert verdicts[0] is Fit.FITS
    assert verdicts == sorted(verdicts, key=(Fit.FITS, Fit.TOO_NEAR, Fit.UNKNOWN, Fit.DOES_NOT_FIT).index)
    assert "--lora 16 --qlora" in {remedy.options for remedy in found}


def test_a_gddr_card_may_lose_a_tenth_to_ecc_and_an_hbm_card_a_fiftieth():
    ada, hopper = capacity_of(require("l40s")), capacity_of(require("h100-sxm"))
    assert ada.floor_bytes <= 44.4 * GIB <= ada.ceiling_bytes
    assert hopper.floor_bytes <= 79.1 * GIB <= hopper.ceiling_bytes


def test_a_declared_capacity_is_taken_at_its_word():
    capacity = capacity_of(require("500TFLOPS,2TB/s,80GB"))
    assert capacity.floor_bytes == capacity.ceiling_bytes == 80 * GIB
    assert capacity_of(require("500TFLOPS,2TB/s")) is None
