import json

from failure_messages import new_cuda, old_cuda, the_failure, traceback

from advisor.model.failure import Phase


def test_the_frames_and_the_exception_stand_in_the_failure() -> None:
    failure = the_failure(f"{traceback(('/app/a.py', 3, 'main', 'run()'), ('/app/b.py', 7, 'run', 'x = y.cuda()'))}\n{new_cuda()}")

    assert [(frame.filename, frame.line, frame.function) for frame in failure.frames] == [
        ("/app/a.py", 3, "main"),
        ("/app/b.py", 7, "run"),
    ]
    assert failure.frames[-1].code == "x = y.cuda()"
    assert failure.exception == "torch.OutOfMemoryError"
    assert failure.source.where == "line 6"


def test_frames_without_their_header_are_still_frames() -> None:
    failure = the_failure('  File "/app/b.py", line 7, in forward\n    return self.attn(x)\n' + old_cuda())

    assert failure.phase is Phase.FORWARD


def test_a_chained_exception_has_its_own_frames() -> None:
    first = traceback(("/app/model.py", 3, "forward", "h = self.mlp(h)"))
    second = traceback(("/app/train.py", 9, "main", "optimizer.step()"))
    failure = the_failure(f"{first}\nKeyError: 'x'\n\nDuring handling of the above exception, another occurred:\n\n{second}\n{old_cuda()}")

    assert [frame.filename for frame in failure.frames] == ["/app/train.py"]


def test_a_skipped_batch_is_a_recovered_failure() -> None:
    assert the_failure(f"| WARNING: {old_cuda()}\n| WARNING: ran out of memory, skipping batch\n").recovered


def test_steps_behind_a_failure_show_that_the_job_went_on() -> None:
    steps = "\n".join(f"step {step} loss: 2.{step}" for step in range(40, 50))

    assert the_failure(f"{old_cuda()}\n{steps}\n").recovered
    assert not the_failure(f"{steps}\n{old_cuda()}\n").recovered


def test_the_autograd_engine_in_a_c_stack_is_backward() -> None:
    failure = the_failure(
        f"{old_cuda()}\nException raised from malloc at CUDACachingAllocator.cpp:513 (most recent call first):\n"
        "frame #7: torch::autograd::Engine::evaluate_function(std::shared_ptr<GraphTask>&) + 0x3fe\n"
    )

    assert failure.phase is Phase.BACKWARD


def test_a_structured_log_keeps_a_traceback_in_one_line() -> None:
    said = f"{traceback(('/app/a.py', 3, 'main', 'optimizer.step()'))}\n{new_cuda()}\n"

    for line in (json.dumps({"level": "error", "exc": said}), json.dumps({"log": said}, separators=(",", ":"))):
        failure = the_failure(f"before\n{line}\nafter\n")

        assert failure.phase is Phase.OPTIMIZER_STEP
        assert failure.frames[0].filename == "/app/a.py"
        assert failure.message.startswith("torch.OutOfMemoryError")
        assert failure.line == 2
