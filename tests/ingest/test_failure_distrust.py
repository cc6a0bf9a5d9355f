"""Whatever the bytes: an answer, no exception, and work that grows no faster than the text."""

import time

import pytest
from failure_messages import failures_of, new_cuda, old_cuda, traceback
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.ingest.failure_reading import RECOGNIZERS
from advisor.ingest.log_text import read_log
from advisor.model.failure import Failure, LogText

MESSAGES = (
    old_cuda(),
    new_cuda(processes="Process 9 has 1.00 GiB memory in use. "),
    "RuntimeError: MPS backend out of memory (MPS allocated: 1.25 GB, max allowed: 9.00 GB). Tried to allocate 1.00 GB",
    "RESOURCE_EXHAUSTED: Out of memory while trying to allocate 3221225472 bytes.",
    "OOM when allocating tensor with shape[32,1024] and type float on device:GPU:0 by allocator GPU_0_bfc",
    "ValueError: The model's max seq len (65536) is larger than the maximum number of tokens that can be stored in KV cache (20976).",
    "NCCL WARN Failed to CUDA calloc 4194304 bytes",
    "Out of memory: Killed process 4242 (python3) total-vm:9kB, anon-rss:8kB, file-rss:1kB",
    traceback(("/app/a.py", 3, "main", "loss.backward()")),
    "[rank3]: (RayWorker pid=7) 2024-05-01 12:00:00,123 ERROR ",
    '{"log":"CUDA out of memory\\n","stream":"stderr"}',
    "\x1b[31m",
    "\r",
)
NEEDLES = tuple(needle.decode() for recognizer in RECOGNIZERS for needle in recognizer.needles)


def is_sound(text: bytes) -> None:
    described, *failures = read_log(text, "log")
    assert isinstance(described, LogText)
    for failure in failures:
        assert isinstance(failure, Failure)
        assert 1 <= failure.line <= max(1, described.line_count)
        assert len(failure.message) <= 2000
        assert "\n" not in failure.message
        for name in Failure.__dataclass_fields__:
            size = getattr(failure, name)
            if name.endswith("_bytes") and size is not None:
                assert 0 <= size < 2**64
    for mention in described.mentions:
        assert 1 <= mention.line <= described.line_count
        assert len(mention.text) <= 200


@given(st.binary(max_size=2000))
def test_random_bytes_are_read(text: bytes) -> None:
    is_sound(text)


@given(
    st.lists(st.one_of(st.sampled_from((*MESSAGES, *NEEDLES)), st.text(max_size=30)), max_size=12),
    st.sampled_from(["\n", " ", "", "\r\n", "\r"]),
)
@settings(max_examples=300)
def test_pieces_of_messages_in_any_order_are_read(pieces: list[str], joint: str) -> None:
    is_sound(joint.join(pieces).encode("utf-8", "surrogatepass"))


@given(st.sampled_from(MESSAGES), st.data())
@settings(max_examples=200)
def test_a_message_with_anything_put_into_it_is_read(message: str, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(message)))
    is_sound((message[:at] + data.draw(st.text(max_size=20)) + message[at:]).encode("utf-8", "surrogatepass"))


@given(
    st.from_regex(r"[0-9]{1,40}(\.[0-9]{1,40})?", fullmatch=True),
    st.sampled_from(["bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"]),
)
def test_any_number_in_a_message_is_read_or_left_unknown(number: str, unit: str) -> None:
    is_sound(old_cuda(requested=f"{number} {unit}", total=f"{number} {unit}").encode())


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_any_newline_gives_the_same_failures(newline: str) -> None:
    log = f"{traceback(('/app/a.py', 3, 'main', 'loss.backward()'))}\n{new_cuda()}\nafter\n"
    expected = failures_of(log)

    assert failures_of(log.replace("\n", newline)) == expected


def test_utf_16_and_a_mark_of_utf_8_are_decoded() -> None:
    expected = failures_of(new_cuda())

    assert failures_of(new_cuda().encode("utf-16")) == expected
    assert failures_of(b"\xef\xbb\xbf" + new_cuda().encode()) == expected


def test_colors_are_no_part_of_a_message() -> None:
    colored = new_cuda().replace("2.25", "\x1b[1;36m2.25\x1b[0m").replace("GPU 0", "\x1b[31mGPU \x1b[1m0\x1b[0m")

    assert failures_of(colored) == failures_of(new_cuda())


HOSTILE = {
    "one word": b"memory ",
    "one line": b"CUDA out of memory ",
    "lines": b"CUDA out of memory\n",
    "messages": new_cuda().encode() + b"\n",
    "numbers": b"1" * 64,
    "spaces": b" " * 64,
    "escapes": b"\x1b[0m",
    "open brackets": b"[(" * 32,
    "frames": b'  File "x.py", line 3, in f\n    g()\n',
    "headers": b"Traceback (most recent call last):\n",
    "progress": b"step 1 loss 0.3 OOM memory: 1234\n",
    "needles": "\n".join(NEEDLES).encode() + b"\n",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_four_times_the_text_takes_no_more_than_about_four_times_the_work(name: str) -> None:
    """By processor time, with room for a noisy machine: what is quadratic takes sixteen times."""

    def seconds(size: int) -> float:
        text = HOSTILE[name] * (size // len(HOSTILE[name]))
        start = time.process_time()
        read_log(text, "log")
        return time.process_time() - start

    small = min(seconds(1_000_000) for _ in range(2))
    large = min(seconds(4_000_000) for _ in range(2))

    assert large < 9 * small + 0.25
