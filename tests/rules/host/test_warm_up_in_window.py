import pytest

from advisor.model.finding import Severity
from advisor.rules.host.warm_up_in_window import warm_up_in_window
from advisor.rules.samples_time import a_mix, a_step_times


def check(excess, *, slow=1, steps=(1.0, 1.0, 1.0, 1.0), mix=None, **fields):
    times = a_step_times(*steps, first_excess_seconds=excess, slow_first_count=slow, **fields)
    return warm_up_in_window.check(times, None, mix)


@pytest.mark.parametrize(
    ("excess", "severity"),
    [
        (0.39, None),
        (0.41, Severity.INFO),
        (1.19, Severity.INFO),
        (1.21, Severity.WARNING),
    ],
)
def test_warm_up_is_a_note_from_a_tenth_and_a_warning_from_three_tenths_on(excess, severity):
    finding = check(excess)
    assert (finding.severity if finding else None) == severity


def test_two_steps_tell_nothing():
    assert check(1.5, steps=(2.0, 0.5)) is None


def test_without_slow_leading_steps_it_is_silent():
    assert check(1.5, slow=0) is None


def test_knowing_what_happened_in_them_makes_it_surer():
    plain, explained = check(2.0), check(2.0, warm_up_marks=(("cudaMalloc", 30),))
    assert explained.confidence > plain.confidence
    assert "cudaMalloc 30 times" in explained.observations[-1].statement


def test_a_fragment_is_no_proof():
    assert check(2.0, mix=a_mix(kernel_count=10)).confidence == 0.5


def test_nothing_is_promised_for_steps_to_come():
    assert check(2.0).impact.step_ratio is None
