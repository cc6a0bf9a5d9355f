"""A training that was killed is told so first, with what is known of who did it."""

import pytest

from advisor.engine.advise import advise
from advisor.model.case import Case
from advisor.model.run import RunEnd
from advisor.render.text import as_text
from advisor.rules.samples_loop import RUN, a_loop


def report_of(*evidence):
    return advise(Case(evidence=evidence))


def an_end(how, **fields):
    return RunEnd(source=RUN, how=how, **({"statements": (f"ended by {how}",)} | fields))


@pytest.mark.parametrize(("signal", "word"), [("SIGKILL", "dmesg"), ("SIGTERM", "logs of all ranks"), ("SIGSEGV", "faulthandler")])
def test_the_advice_goes_by_the_signal(signal, word):
    (found,) = report_of(an_end("signal", signal=signal)).diagnoses
    assert (found.code, found.confidence >= 0.9) == ("HST113", True)
    assert word in found.finding.actions[0].change


def test_an_end_without_a_known_signal_is_less_sure():
    (found,) = report_of(an_end("abrupt")).diagnoses
    assert found.confidence < 0.8


@pytest.mark.parametrize("how", ["exit", "running", "detached", "unknown", "exception"])
def test_other_ends_are_no_kill(how):
    assert not report_of(an_end(how)).diagnoses


def test_after_a_crash_the_report_speaks_of_the_crash_first():
    slow = a_loop(phases={"data_wait": 50.0})
    killed = report_of(slow, an_end("signal", signal="SIGKILL", step=200))
    assert killed.diagnoses[0].code == "HST113"
    raised = report_of(slow, an_end("exception", phase="backward", step=200))
    assert raised.diagnoses[0].code == "INP101"
    verdict = as_text(raised).splitlines()[0]
    assert verdict.startswith("The training failed: ended by exception in backward behind step 200.")
