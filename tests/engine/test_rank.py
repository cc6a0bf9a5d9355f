import itertools

from hypothesis import given
from hypothesis import strategies as st

from advisor.engine.rank import Scored, drop_explained, order
from advisor.model.evidence import Source
from advisor.model.finding import Finding, Impact, Observation, Severity

SEEN = Observation(statement="seen", source=Source(path="log"))


def a_scored(code="MEM201", *, severity=Severity.WARNING, confidence=0.5, impact=None, supersedes=()):
    finding = Finding(
        statement="it is so",
        severity=severity,
        confidence=confidence,
        observations=(SEEN,),
        impact=impact or Impact(),
        supersedes=supersedes,
    )
    return Scored(code=code, name=code.lower(), confidence=confidence, finding=finding)


def codes(scored):
    return [item.code for item in scored]


def test_severity_comes_before_any_confidence_and_gain():
    surest = a_scored("INP101", confidence=1.0, impact=Impact(step_ratio=1.0))
    gravest = a_scored("MEM101", severity=Severity.ERROR, confidence=0.1)
    assert codes(order((surest, gravest), shortage_bytes=None, device_bytes=None)) == ["MEM101", "INP101"]


def test_a_cost_is_ordered_by_confidence_times_the_share_of_the_step():
    small_but_sure = a_scored("HST102", confidence=0.9, impact=Impact(step_ratio=0.1))
    large = a_scored("INP101", confidence=0.6, impact=Impact(step_ratio=0.5))
    assert codes(order((small_but_sure, large), shortage_bytes=None, device_bytes=None)) == ["INP101", "HST102"]


def test_a_failure_is_ordered_by_the_share_of_the_shortage_that_comes_back():
    covers = a_scored("MEM203", severity=Severity.ERROR, confidence=0.6, impact=Impact(recoverable_bytes=4))
    does_not = a_scored("MEM401", severity=Severity.ERROR, confidence=0.7, impact=Impact(recoverable_bytes=1))
    assert codes(order((does_not, covers), shortage_bytes=4, device_bytes=80)) == ["MEM203", "MEM401"]


def test_equal_findings_stand_in_the_order_of_their_codes():
    both = (a_scored("MEM402"), a_scored("MEM106"))
    assert codes(order(both, shortage_bytes=None, device_bytes=None)) == ["MEM106", "MEM402"]


def test_what_another_finding_explains_is_not_ranked_but_named():
    general = a_scored("MEM201", confidence=0.9)
    specific = a_scored("MEM203", confidence=0.6, supersedes=("MEM201",))
    staying, explains = drop_explained((general, specific))
    assert codes(staying) == ["MEM203"]
    assert explains == {"MEM203": ("MEM201",)}


def test_of_two_that_supersede_each_other_the_surer_stays():
    one = a_scored("INP101", confidence=0.9, supersedes=("INP102",))
    other = a_scored("INP102", confidence=0.6, supersedes=("INP101",))
    assert codes(drop_explained((one, other))[0]) == ["INP101"]


FINDINGS = st.lists(
    st.builds(
        a_scored,
        st.sampled_from(["MEM101", "MEM201", "INP101", "CMP102"]),
        severity=st.sampled_from(Severity),
        confidence=st.floats(0, 1),
        impact=st.builds(
            Impact,
            recoverable_bytes=st.none() | st.integers(0, 2**40),
            step_ratio=st.none() | st.floats(0, 1),
        ),
    ),
    max_size=5,
    unique_by=lambda item: item.code,
)


@given(FINDINGS, st.none() | st.integers(1, 2**36), st.none() | st.integers(1, 2**40))
def test_the_order_does_not_depend_on_the_order_of_the_rules(scored, shortage, device):
    orders = {
        tuple(codes(order(tuple(permuted), shortage_bytes=shortage, device_bytes=device))) for permuted in itertools.permutations(scored)
    }
    assert len(orders) == 1
