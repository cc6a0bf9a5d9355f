"""At every moment of a step what lives is a role of the registry, or saved for backward: checked against every dispatch."""

import sys

import pytest

torch = pytest.importorskip("torch", reason="trains with torch")

from cpu_allocations import CpuAllocations, Saved, profiled_live_bytes  # noqa: E402
from registry_moments import MOMENTS, compare, moments_of  # noqa: E402
from small_models import MODELS, VOCABULARY, SmallLlama, a_model  # noqa: E402
from torch import nn  # noqa: E402

from advisor.client.registry import Registry  # noqa: E402 - after the skip

MOST_UNTAGGED_RATIO = 0.01


@pytest.fixture(
    scope="module", params=[(kind, form) for kind in MODELS for form in ("eager", "checkpointed", "reentrant", "lora")], ids="-".join
)
def moments(request):
    torch.set_num_threads(1)
    return moments_of(*request.param)


def sizes(model):
    weights = sum(parameter.nbytes for parameter in model.parameters())
    trained = sum(parameter.nbytes for parameter in model.parameters() if parameter.requires_grad)
    return weights, trained, sum(1 for parameter in model.parameters() if parameter.requires_grad)


def test_at_most_one_percent_is_untagged_at_each_moment(moments):
    assert set(moments) == set(MOMENTS)
    for name, moment in moments.items():
        assert moment.walk.faults == ()
        assert moment.untagged_ratio <= MOST_UNTAGGED_RATIO, (name, moment.untagged[:5])


def test_nothing_is_claimed_that_no_dispatch_made(moments):
    assert [moment.dead_bytes for moment in moments.values()] == [0] * len(MOMENTS)


def test_what_is_neither_a_role_nor_held_at_the_end_of_forward_was_saved_for_backward(moments):
    moment = moments["forward end"]
    rest = moment.alive_bytes - moment.tagged_bytes
    assert moment.saved_bytes > 0
    assert abs(rest - moment.saved_bytes) <= MOST_UNTAGGED_RATIO * moment.alive_bytes


def test_after_backward_nothing_saved_is_left(moments):
    for name in ("after backward", "after step", "after zero_grad"):
        moment = moments[name]
        assert moment.alive_bytes - moment.tagged_bytes <= MOST_UNTAGGED_RATIO * moment.alive_bytes


@pytest.mark.parametrize("form", ["eager", "lora"])
@pytest.mark.parametrize("kind", list(MODELS))
def test_the_roles_have_the_bytes_that_arithmetic_gives(kind, form):
    weights, trained, count = sizes(a_model(kind, form))
    moments = moments_of(kind, form)
    after = moments["after backward"].roles
    assert after["weights"] == weights
    assert after["gradients"] == trained
    assert after["optimizer_states"] == 2 * trained + 4 * count
    assert after["inputs"] == 8 * 65 * 8
    assert "gradients" not in moments["after zero_grad"].roles
    assert moments["after step"].walk.trainable_bytes == trained


def test_checkpointing_saves_less():
    eager, checkpointed = (moments_of("gpt", form)["forward end"].saved_bytes for form in ("eager", "checkpointed"))
    assert checkpointed < eager / 4


def test_a_registry_that_knows_nothing_leaves_more_than_half_untagged():
    with CpuAllocations() as allocations:
        model = a_model("gpt", "eager")
        optimizer = torch.optim.AdamW(model.parameters())
        text = torch.randint(VOCABULARY, (8, 64))
        model(text).sum().backward()
        optimizer.step()
        registry = Registry()
        registry.add_batch([text])
        moment = compare(registry, allocations, Saved(), "other", None)
    assert moment.untagged_ratio > 0.5


def test_the_cache_of_generation_is_found_and_exact():
    torch.manual_seed(0)
    with CpuAllocations() as allocations:
        model = SmallLlama()
        registry = Registry()
        registry.find(sys._getframe())
        past_key_values = [[] for _ in model.blocks]
        allocations.part = "generation"
        with torch.no_grad():
            tokens = torch.randint(VOCABULARY, (2, 16))
            for _ in range(4):
                tokens = model(tokens, past_key_values)[:, -1:].argmax(-1)
        moment = compare(registry, allocations, Saved(), "generation", sys._getframe())
    assert moment.roles["kv_cache"] == 4 * 2 * (2 * 2 * 19 * 32) * 4
    assert moment.untagged_ratio <= MOST_UNTAGGED_RATIO


def test_the_allocators_own_events_agree_with_what_the_dispatches_made():
    counted = {}

    def work(mark):
        torch.manual_seed(0)
        with CpuAllocations() as allocations:
            model = a_model("gpt", "eager")
            optimizer = torch.optim.AdamW(model.parameters())
            for _ in range(2):
                text = torch.randint(VOCABULARY, (8, 65))
                loss = nn.functional.cross_entropy(model(text[:, :-1]).reshape(-1, VOCABULARY), text[:, 1:].reshape(-1))
                mark("forward end")
                counted.setdefault("forward end", sum(size for _, size, *_ in allocations.alive()))
                loss.backward()
                optimizer.step()
                mark("after step")
                counted.setdefault("after step", sum(size for _, size, *_ in allocations.alive()))
                optimizer.zero_grad()

    measured = profiled_live_bytes(work)
    assert set(measured) == set(counted)
    for name, size in counted.items():
        assert measured[name] == pytest.approx(size, rel=MOST_UNTAGGED_RATIO)


def losses_of(form, *, walks):
    """Losses of some steps, with a walk at each moment or none."""
    torch.manual_seed(0)
    model, registry = a_model("llama", form), Registry()
    optimizer = torch.optim.AdamW([parameter for parameter in model.parameters() if parameter.requires_grad], lr=1e-2)
    walk_count = 0

    def look(*_):
        nonlocal walk_count
        if walks:
            walk_count += 1
            assert registry.walk(frame=sys._getframe(), with_addresses=True).faults == ()

    model.seen = lambda _, hidden: hidden.register_hook(look) if hidden.requires_grad else look()
    registry.find(sys._getframe())
    losses = []
    for _ in range(8):
        text = torch.randint(VOCABULARY, (4, 33))
        loss = nn.functional.cross_entropy(model(text[:, :-1]).reshape(-1, VOCABULARY), text[:, 1:].reshape(-1))
        look()
        loss.backward()
        look()
        optimizer.step()
        look()
        optimizer.zero_grad()
        losses.append(float(loss.detach()).hex())
    assert bool(walk_count) == walks
    return losses


@pytest.mark.parametrize("form", ["eager", "checkpointed", "lora"])
def test_walks_at_every_moment_change_no_loss(form):
    assert losses_of(form, walks=True) == losses_of(form, walks=False)
