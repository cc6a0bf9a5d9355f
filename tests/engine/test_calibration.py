import json
from importlib import resources

from hypothesis import given
from hypothesis import strategies as st

from advisor.engine.calibration import calibrated

SCORES = st.floats(0, 1)


@given(SCORES, SCORES)
def test_a_higher_score_never_means_a_lower_frequency(one, other):
    low, high = sorted((one, other))
    assert calibrated(low) <= calibrated(high)


@given(SCORES)
def test_a_frequency_is_a_ratio(score):
    assert 0 <= calibrated(score) <= 1


def test_between_two_points_the_frequency_is_interpolated():
    assert calibrated(0.25, ((0.0, 0.0), (0.5, 0.4), (1.0, 1.0))) == 0.2


def test_the_committed_table_covers_all_scores():
    points = json.loads(resources.files("advisor.engine").joinpath("calibration.json").read_text("utf-8"))["points"]
    scores = [score for score, _ in points]
    assert scores == sorted(scores)
    assert (scores[0], scores[-1]) == (0, 1)
