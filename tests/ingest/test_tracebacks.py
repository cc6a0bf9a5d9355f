from advisor.ingest.log_lines import LogLines
from advisor.ingest.log_prefixes import NOBODY
from advisor.ingest.tracebacks import exception_of, frame_of, is_code_line, traceback_above
from advisor.model.failure import Frame


def frames_above(text: str) -> list[tuple[str, int, str, str]]:
    log = LogLines(f"{text}\nthe message".encode())
    line = log.line_at(len(log.raw) - 1)
    found = traceback_above(log.upward(line, 700), NOBODY)
    return [(frame.filename, frame.line, frame.function, frame.code) for frame in found.frames]


def test_pythons_markers_are_no_code() -> None:
    assert frames_above(
        'Traceback (most recent call last):\n  File "/a/b.py", line 3, in main\n    run(x)\n    ~~~^^^\n'
        '  File "/a/c.py", line 4, in run\n    return x.cuda()\n           ^^^^^^^^\n'
    ) == [("/a/b.py", 3, "main", "run(x)"), ("/a/c.py", 4, "run", "return x.cuda()")]


def test_a_fault_handlers_frames_are_turned_round() -> None:
    assert [
        frame[2]
        for frame in frames_above(
            "Fatal Python error: Aborted\n\nThread 0x00007f12 (most recent call first):\n"
            '  File "/a/inner.py", line 9 in step\n  File "/a/outer.py", line 2 in <module>\n'
        )
    ] == ["<module>", "step"]


def test_ipythons_frames_have_their_marked_line() -> None:
    assert frames_above(
        "OutOfMemoryError                          Traceback (most recent call last)\n"
        "Cell In[5], line 3\n      1 a = 1\n----> 3 trainer.train()\n\n"
        "File /env/transformers/trainer.py:1539, in Trainer.train(self, **kwargs)\n"
        "   1537     pass\n-> 1539 return inner()\n"
    ) == [
        ("In[5]", 3, "<module>", "trainer.train()"),
        ("/env/transformers/trainer.py", 1539, "Trainer.train", "return inner()"),
    ]


def test_old_ipython_tells_the_line_by_its_arrow() -> None:
    assert frames_above(
        "RuntimeError                              Traceback (most recent call last)\n"
        "<ipython-input-5-ab> in <module>()\n      1 x = 1\n----> 2 y = model(x)\n\n"
        "/env/torch/nn/modules/module.py in __call__(self, *input)\n    488 \n--> 489 result = self.forward(*input)\n"
    ) == [
        ("<ipython-input-5-ab>", 2, "<module>", "y = model(x)"),
        ("/env/torch/nn/modules/module.py", 489, "__call__", "result = self.forward(*input)"),
    ]


def test_richs_boxes_are_frames() -> None:
    assert frames_above(
        "╭──────── Traceback (most recent call last) ────────╮\n"
        "│ /app/train.py:12 in main                          │\n"
        "│    11 │   x = 1                                   │\n"
        "│ ❱  12 │   loss.backward()                         │\n"
        "╰───────────────────────────────────────────────────╯\n"
    ) == [("/app/train.py", 12, "main", "loss.backward()")]


def test_loguru_decorates_frames_and_marks_the_first() -> None:
    assert [
        frame[2]
        for frame in frames_above(
            'Traceback (most recent call last):\n\n> File "/a/b.py", line 3, in main\n    run(x)\n    │   └ 5\n    └ <function run>\n\n'
            '  File "/a/c.py", line 4, in run\n    return 1\n'
        )
    ] == ["main", "run"]


def test_a_line_that_names_no_frame_is_none() -> None:
    assert frame_of('He said "File a report", line by line') is None
    assert frame_of("In the beginning") is None
    assert frame_of('  File "x.py", line 3, in f') == Frame(filename="x.py", line=3, function="f")


def test_a_prefix_before_a_frame_is_passed_over() -> None:
    assert frame_of('some worker | File "x.py", line 3, in f') == Frame(filename="x.py", line=3, function="f")


def test_exceptions_are_known_by_their_class() -> None:
    assert exception_of("torch.cuda.OutOfMemoryError: CUDA out of memory") == "torch.cuda.OutOfMemoryError"
    assert exception_of("ValueError: x") == "ValueError"
    assert exception_of("RuntimeError") == "RuntimeError"
    assert exception_of("an Error: x") == ""


def test_code_lines_are_frames_and_what_stands_below_them() -> None:
    assert is_code_line("", '  File "x.py", line 3, in f')
    assert is_code_line('  File "x.py", line 3, in f', "    y = torch.load(path)")
    assert not is_code_line("some words", "    y = torch.load(path)")
