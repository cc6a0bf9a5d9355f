import pytest
from failure_messages import (
    GIB,
    failures_of,
    new_cuda,
    old_cuda,
    printed,
    the_failure,
    the_log,
    traceback,
)

from advisor.ingest.failure_incidents import MOST_FAILURES
from advisor.model.failure import FailureKind, Phase

FRAMES = traceback(
    ("/app/train.py", 88, "main", "loss.backward()"),
    ("/env/torch/_tensor.py", 521, "backward", "torch.autograd.backward("),
)


def ranked(rank: int, text: str) -> str:
    return "\n".join(f"[rank{rank}]: {line}" for line in text.split("\n"))


def test_a_logger_an_outer_handler_and_the_traceback_tell_one_failure() -> None:
    message = new_cuda()
    log = (
        f"2024-05-01 12:00:00,123 - ERROR - step failed: {message}\n{FRAMES}\n{message}\n\n"
        "During handling of the above exception, another exception occurred:\n\n"
        f"{traceback(('/app/run.py', 9, '<module>', 'main()'))}\nRuntimeError: training failed: {message}\n"
    )

    failure = the_failure(log)

    assert failure.line == 1
    assert failure.phase is Phase.BACKWARD


def test_torch_prints_a_ranks_traceback_twice_and_it_is_one_failure() -> None:
    message = new_cuda(device=3)
    failure = the_failure(f"{FRAMES}\n{message}\n{ranked(3, FRAMES)}\n{ranked(3, message)}\n")

    assert failure.rank == 3


def test_every_rank_that_fails_is_a_failure() -> None:
    log = "\n".join(f"{ranked(rank, FRAMES)}\n{ranked(rank, new_cuda(device=rank))}" for rank in range(4))

    assert [failure.rank for failure in failures_of(log)] == [0, 1, 2, 3]
    assert the_log(log).failed_ranks == (0, 1, 2, 3)


def test_interleaved_ranks_keep_their_own_frames() -> None:
    one = [*ranked(0, FRAMES).split("\n"), ranked(0, new_cuda(device=0))]
    other = ranked(1, traceback(("/app/train.py", 91, "main", "optimizer.step()"))).split("\n")
    other += ["[rank1]: "] * (len(one) - len(other) - 1) + [ranked(1, new_cuda(device=1))]
    log = "\n".join(line for pair in zip(one, other, strict=True) for line in pair)

    first, second = failures_of(log)

    assert (first.phase, second.phase) == (Phase.BACKWARD, Phase.OPTIMIZER_STEP)


def test_a_headline_without_figures_is_the_failure_that_has_them() -> None:
    failure = the_failure(f"RuntimeError: CUDA out of memory.\n(more below)\n{old_cuda()}\n")

    assert failure.total_bytes == printed("15.90", GIB)
    assert failure.line == 1


def test_failures_with_other_figures_are_other_failures() -> None:
    log = f"{old_cuda(requested='1.00 GiB')}\nretrying\n{old_cuda(requested='3.00 GiB')}\n"

    assert [failure.requested_bytes for failure in failures_of(log)] == [GIB, 3 * GIB]


def test_ray_repeats_a_workers_message_with_its_prefix() -> None:
    message = new_cuda()
    failure = the_failure(f"(RayTrainWorker pid=4242, ip=10.0.0.7) {message}\nray.exceptions.RayTaskError: {message}\n")

    assert failure.own_pid == 4242


def test_srun_labels_are_ranks() -> None:
    log = "\n".join(f"{rank}: {line}" for rank in range(2) for line in ("starting", "loading", old_cuda(device=rank)))

    assert [failure.rank for failure in failures_of(log)] == [0, 1]


def test_two_messages_in_one_line_are_two_failures() -> None:
    log = old_cuda(requested="1.00 GiB") + " ... " + old_cuda(requested="2.00 GiB", device=1)

    assert [failure.device_index for failure in failures_of(log)] == [0, 1]


@pytest.mark.parametrize(
    "line",
    [
        "    except torch.cuda.OutOfMemoryError:",
        '    if "CUDA out of memory" in str(error):',
        "# catch CUDA out of memory and retry",
        'raise RuntimeError("CUDA error: device-side assert triggered")',
        "If you see CUDA out of memory, lower the batch size.",
    ],
)
def test_code_and_advice_about_a_failure_are_no_failure(line: str) -> None:
    assert failures_of(line) == []


@pytest.mark.parametrize(
    "title", ["# CUDA out of memory when training", "While fine-tuning, CUDA out of memory", "if I use batch 8, CUDA out of memory"]
)
def test_titles_and_sentences_of_people_are_failures(title: str) -> None:
    assert the_failure(title).backend == "CUDA"


def test_an_advice_in_a_long_log_is_no_failure_and_an_error_is() -> None:
    quiet = "\n".join(f"step {step}" for step in range(100))

    assert failures_of(f"{quiet}\nThis may lead to out of memory for long inputs\n") == []
    assert len(failures_of(f"{quiet}\nfatal error: device ran out of memory\n")) == 1


def test_a_report_in_somebodys_words_is_a_failure_without_figures() -> None:
    failure = the_failure("OOM on my card when the second batch starts")

    assert failure.kind is FailureKind.DEVICE_OUT_OF_MEMORY
    assert failure.generation == "words only"
    assert failure.backend == ""


def test_more_failures_than_can_be_told_are_counted() -> None:
    log = "\n".join(old_cuda(requested=f"{number}.00 GiB") for number in range(1, MOST_FAILURES + 40))

    assert len(failures_of(log)) == MOST_FAILURES
    assert any("39 more messages" in gap for gap in the_log(log).gaps)


def test_a_text_without_failure_or_known_words_is_only_a_log() -> None:
    described = the_log("hello\nworld\n")

    assert failures_of("hello\nworld\n") == []
    assert (described.line_count, described.mentions, described.settings) == (2, (), ())
