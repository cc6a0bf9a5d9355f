import os
import sys
import time
from pathlib import Path

import pytest

from advisor.client.capped_output import output_of


def run(program, *, most_bytes=1000, patience_seconds=20.0, environment=None):
    command = [sys.executable, "-c", program]
    return output_of(command, cwd="/", environment=environment or {}, most_bytes=most_bytes, patience_seconds=patience_seconds)


def test_a_short_answer_is_taken_whole_with_its_code():
    found = run("import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)")
    assert found == (b"out\n", "err", 3, False, False)


def test_an_endless_answer_is_cut_and_its_writer_ended():
    began = time.monotonic()
    found = run("while True: print('x' * 1000)")
    assert found.data == b"x" * 1000
    assert found.is_cut
    assert found.return_code is None
    assert not found.is_late
    assert time.monotonic() - began < 15


def test_an_answer_of_exactly_the_most_is_whole():
    found = run("import sys; sys.stdout.write('x' * 1000)")
    assert len(found.data) == 1000
    assert not found.is_cut
    assert found.return_code == 0


def test_much_on_standard_error_blocks_nothing():
    found = run("import sys; sys.stderr.write('e' * 1_000_000); print('done')")
    assert found.data == b"done\n"
    assert len(found.error) == 4096


@pytest.mark.parametrize(
    "program",
    ["import time; print('a', flush=True); time.sleep(60)", "import os, time; os.close(1); os.close(2); os.fork(); time.sleep(60)"],
)
def test_who_does_not_end_is_not_waited_for(program):
    began = time.monotonic()
    found = run(program, patience_seconds=1.0)
    assert time.monotonic() - began < 15
    assert found.is_late
    assert found.return_code is None


def test_the_children_of_the_command_are_ended_with_it(tmp_path):
    program = f"import os, time; pid = os.fork(); pid and open({str(tmp_path / 'pid')!r}, 'w').write(str(pid)); time.sleep(60)"
    assert run(program, patience_seconds=1.5).is_late
    pid = int((tmp_path / "pid").read_text())
    for _ in range(1000):
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except FileNotFoundError:
            break
        if state == "Z":
            break
        os.sched_yield()
    else:
        pytest.fail("the child is alive")


def test_a_command_that_is_not_there_is_no_error():
    found = output_of(["/nonexistent/git"], cwd="/", environment={}, most_bytes=10, patience_seconds=1.0)
    assert found.return_code is None
    assert "No such file" in found.error
    assert (
        output_of(["true"], cwd="/nonexistent", environment={"PATH": os.defpath}, most_bytes=10, patience_seconds=1.0).return_code is None
    )


def test_the_command_sees_the_environment_it_is_given_alone():
    found = run("import os; print(os.environ.get('A'), os.environ.get('HOME'))", environment={"A": "1"})
    assert found.data == b"1 None\n"
