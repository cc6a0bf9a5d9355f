import pytest

from advisor.model.waits import CollectiveGroup
from advisor.rules.communication.exposed_communication import exposed_communication
from advisor.rules.samples import a_breakdown
from advisor.rules.samples_time import a_communication


def check(ratio, communication=None):
    return exposed_communication.check(a_breakdown(exposed_communication=ratio), communication, None)


def groups(name):
    return a_communication(groups=(CollectiveGroup(name=name, count=9, device_seconds=0.4, exposed_seconds=0.3),))


@pytest.mark.parametrize(("ratio", "fires"), [(0.099, False), (0.101, True)])
def test_it_fires_from_a_tenth_of_the_window_on(ratio, fires):
    assert (check(ratio) is not None) is fires


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("all_reduce", "bucket_cap_mb"),
        ("all_gather", "forward_prefetch"),
        ("reduce_scatter", "forward_prefetch"),
        ("send_recv", "async_op"),
        ("some kernel of a library", "bucket_cap_mb"),
    ],
)
def test_the_advice_suits_the_collective_that_costs_most(name, advice):
    assert advice in check(0.3, groups(name)).actions[0].change


def test_one_rank_alone_cannot_tell_a_slow_link_from_a_late_rank_and_says_so():
    assert "all ranks" in check(0.3, groups("all_reduce")).settles.change
