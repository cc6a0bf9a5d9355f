import pytest

from advisor.ingest.log_prefixes import NOBODY, Speaker, has_srun_labels, plain, without_prefixes


@pytest.mark.parametrize(
    ("line", "text", "speaker"),
    [
        ("[rank3]: RuntimeError: x", "RuntimeError: x", Speaker(rank=3)),
        ("[rank12]:   File", "  File", Speaker(rank=12)),
        ("[default1]:RuntimeError: x", "RuntimeError: x", Speaker(rank=1)),
        (
            "(RayTrainWorker pid=77, ip=10.0.0.3) ValueError: x",
            "ValueError: x",
            Speaker(pid=77, worker="RayTrainWorker"),
        ),
        ("(pid=77) ValueError: x", "ValueError: x", Speaker(pid=77)),
        (
            "(VllmWorker rank=2 pid=9) ERROR 10-09 21:14:07 [core.py:387] x",
            "x",
            Speaker(rank=2, pid=9, worker="VllmWorker"),
        ),
        ("(Worker_TP1 pid=9) x", "x", Speaker(rank=1, pid=9, worker="Worker_TP1")),
        ("2024-05-01 12:00:00,123 - ERROR - x", "- x", NOBODY),
        ("2024-05-01T12:00:00.123456789Z stderr F   File", "  File", NOBODY),
        ("[2024-05-01 12:00:00,123] [INFO] [engine.py:88:step] x", "x", NOBODY),
        ("E0501 12:00:00.123456 4242 file.cc:88] x", "x", NOBODY),
        ("vllm-1  | ERROR 05-01 12:00:00 [core.py:9] x", "x", NOBODY),
        ("RuntimeError: x", "RuntimeError: x", NOBODY),
        ("    indented", "    indented", NOBODY),
        ("> > quoted", "quoted", NOBODY),
        ("[rank99999999]: x", "[rank99999999]: x", NOBODY),
        ('{"log":"  File \\"a.py\\"\\n","stream":"stderr","time":"t"}', '  File "a.py"', NOBODY),
        ('{"log":"broken', '{"log":"broken', NOBODY),
        ("", "", NOBODY),
    ],
)
def test_prefixes_are_taken_off_and_tell_the_speaker(line: str, text: str, speaker: Speaker) -> None:
    said, who = without_prefixes(line)

    assert who == speaker
    assert said.lstrip("- ") == text.lstrip("- ") if text.startswith("- ") else said == text


def test_labels_of_srun_are_ranks_only_where_the_log_has_them() -> None:
    assert without_prefixes("2: x", srun_labels=True) == ("x", Speaker(rank=2))
    assert without_prefixes("2: x") == ("2: x", NOBODY)
    assert has_srun_labels("0: a\n1: b\n0: c\n")
    assert not has_srun_labels("0: a\nb\nc\n")
    assert not has_srun_labels("")


def test_colors_and_titles_are_removed() -> None:
    assert plain("\x1b[1;36m(a)\x1b[0;0m b \x1b]0;title\x07c") == "(a) b c"
