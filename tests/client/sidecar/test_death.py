"""What was found at a death leads to the cause that it supports, and to no other."""

from advisor.client.end_record import content_of
from advisor.client.host_record import HostSample
from advisor.client.layout import ENDED
from advisor.client.ring_reader import State
from advisor.client.sidecar.death import Death, RecordedFailure, judge
from advisor.client.sidecar.process_status import ExitStatus, exit_status_of

KILLED = exit_status_of(9, "procfs")
SECOND = 1_000_000_000
GIB = 1024**3


def a_death(**changes):
    death = Death(
        pid=123,
        command="python",
        status=None,
        why_no_status="its parent was quicker",
        state=State("forward", 0, 7, SECOND),
        failures=(),
        first=a_sample(0),
        last=a_sample(8),
        calm=a_sample(8),
        after=a_sample(10),
        kernel_lines=(),
        numbers_are_the_hosts=True,
        asked_to_stop_seconds=None,
    )
    return death._replace(**changes)


def a_sample(seconds, **changes):
    return HostSample(seconds * SECOND, seconds * SECOND, rss_bytes=2 * GIB, group_oom_kill_count=0, host_oom_kill_count=0)._replace(
        **changes
    )


def told(**changes):
    end = judge(a_death(**changes))
    return end.how, end.certainty


ENDED_STATE = State("other", ENDED, 7, SECOND)
FAILURE = RecordedFailure("failure-1.json", "builtins.ValueError", 1.0)


def test_a_kill_counted_in_the_control_group_is_probably_the_trainers():
    end = judge(a_death(status=KILLED, after=a_sample(10, group_oom_kill_count=1)))
    assert (end.how, end.certainty) == ("host_oom", "likely")
    assert end.statement.startswith("probably killed by the kernel")
    assert any("in its last 2.0 s" in piece.statement for piece in end.evidence)


def test_a_kernel_log_that_names_the_trainer_leaves_no_doubt():
    line = "Memory cgroup out of memory: Killed process 123 (python) total-vm:1kB"
    end = judge(a_death(status=KILLED, kernel_lines=(line,)))
    assert (end.how, end.certainty) == ("host_oom", "known")
    assert "its control group" in end.statement


def test_a_kernel_log_that_names_another_process_clears_the_count():
    line = "Out of memory: Killed process 1234 (python) total-vm:1kB"
    assert told(status=KILLED, kernel_lines=(line,), after=a_sample(10, group_oom_kill_count=1)) == ("signal", "known")


def test_numbers_of_a_containers_own_prove_nothing_by_themselves():
    line = "Memory cgroup out of memory: Killed process {} ({}) total-vm:1kB"
    same, other = line.format(99123, "python"), line.format(123, "java")
    assert told(status=KILLED, kernel_lines=(same,), numbers_are_the_hosts=False) == ("host_oom", "likely")
    assert told(status=KILLED, kernel_lines=(other,), numbers_are_the_hosts=False) == ("signal", "known")


def test_a_kill_of_another_process_of_the_host_is_not_taken_for_ours():
    after = a_sample(10, host_oom_kill_count=1)
    assert told(status=KILLED, after=after) == ("signal", "known")
    blind = a_sample(8, group_oom_kill_count=None)
    assert told(status=KILLED, calm=blind, after=after._replace(group_oom_kill_count=None)) == ("host_oom", "likely")


def test_kills_before_the_last_look_did_not_kill_the_trainer_and_are_mentioned():
    end = judge(a_death(status=KILLED, calm=a_sample(8, group_oom_kill_count=2), after=a_sample(10, group_oom_kill_count=2)))
    assert end.how == "signal"
    assert any("2 process(es) of the control group were killed" in piece.statement for piece in end.evidence)
    assert any("no kill for want of memory" in piece.statement for piece in end.evidence)


def test_another_signal_is_not_a_kill_for_memory():
    assert told(status=exit_status_of(15, "procfs"), after=a_sample(10, group_oom_kill_count=1)) == ("signal", "known")


def test_an_unseen_status_with_a_counted_kill_is_probably_one():
    assert told(after=a_sample(10, group_oom_kill_count=1)) == ("host_oom", "likely")


def test_an_unseen_status_without_traces_is_abrupt():
    end = judge(a_death())
    assert (end.how, end.exit_code, end.signal) == ("abrupt", None, None)
    assert any("its parent was quicker" in gap for gap in end.unknown)


def test_the_interpreters_end_without_a_code_is_an_exit():
    assert told(state=ENDED_STATE) == ("exit", "known")


def test_an_exception_explains_an_exit_code_of_one():
    assert told(status=ExitStatus(1, None, False, "procfs"), state=ENDED_STATE, failures=(FAILURE,)) == ("exception", "known")


def test_an_exception_is_likely_where_the_code_is_unseen_and_it_is_fresh():
    assert told(state=ENDED_STATE, failures=(FAILURE,)) == ("exception", "likely")
    assert told(state=ENDED_STATE, failures=(FAILURE._replace(age_seconds=3600.0),)) == ("exit", "known")


def test_an_exception_explains_neither_another_code_nor_a_signal():
    assert told(status=ExitStatus(0, None, False, "procfs"), state=ENDED_STATE, failures=(FAILURE,)) == ("exit", "known")
    assert told(status=ExitStatus(3, None, False, "procfs"), state=ENDED_STATE, failures=(FAILURE,)) == ("exit", "known")
    assert told(status=exit_status_of(11, "pidfd"), failures=(FAILURE,)) == ("signal", "known")


def test_leaving_by_sys_exit_is_no_exception():
    leaving = FAILURE._replace(kind="builtins.SystemExit")
    assert told(status=ExitStatus(1, None, False, "procfs"), state=ENDED_STATE, failures=(leaving,)) == ("exit", "known")


def test_a_death_before_the_first_step_of_which_nothing_tells_is_unknown():
    assert told(state=None) == ("unknown", "unknown")


def test_memory_that_was_short_is_mentioned_with_its_holders():
    last = a_sample(8, group_bytes=31 * GIB, group_limit_bytes=32 * GIB, child_count=8, child_rss_bytes=20 * GIB)
    statements = [piece.statement for piece in judge(a_death(status=KILLED, last=last)).evidence]
    assert "the control group used 31.00 GiB of its limit of 32.00 GiB" in statements
    assert "its 8 children held 20.00 GiB at most, shared pages counted in each" in statements
    assert any(statement.startswith("the trainer held 2.00 GiB") for statement in statements)


def test_counts_that_cannot_be_read_are_said_to_be_unknown():
    blind = a_sample(8, group_oom_kill_count=None, host_oom_kill_count=None)
    gaps = judge(a_death(status=KILLED, calm=blind, kernel_lines=None)).unknown
    assert any("neither the control group nor the host" in gap for gap in gaps)
    assert "the kernel's log may not be read by this user" in gaps


def test_the_file_says_everything_in_sentences_too():
    content = content_of(judge(a_death(status=KILLED)))
    assert content["statements"][0] == content["statement"] == "killed by SIGKILL"
    assert len(content["statements"]) == 1 + len(content["evidence"]) + len(content["unknown"])
