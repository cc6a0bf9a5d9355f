import pytest
from failure_messages import new_cuda, old_cuda, the_log, traceback

from advisor.ingest.log_mentions import MOST_MENTIONS
from advisor.ingest.mentions import PATTERNS, PHRASES


def topics(text: str) -> set[str]:
    return {mention.topic for mention in the_log(text).mentions}


@pytest.mark.parametrize(
    ("text", "topic"),
    [
        ("checkpoint = torch.load(path)", "torch.load"),
        ("usage rises in every validation pass", "evaluation"),
        ("total_loss += loss", "loss-accumulation"),
        ("DataLoader(dataset, num_workers=0)", "num-workers-0"),
        ("trainer uses paged_adamw_8bit", "8bit-optimizer"),
        ("a zombie still holds it", "zombie-process"),
        ("set XLA_PYTHON_CLIENT_PREALLOCATE=false", "preallocate"),
        ("torch._dynamo hit config.cache_size_limit (8)", "recompile-limit"),
        ("cudaStreamSynchronize takes 40 ms", "stream-synchronize"),
        ("attention over S x S scores", "square-attention"),
        ("SW Power Cap: Active", "power-cap"),
        ("failing after 3 epochs", "after-epochs"),
        ("NVRM: Xid (PCI:0000:01:00): 79", "xid"),
    ],
)
def test_words_of_the_field_are_topics(text: str, topic: str) -> None:
    assert topic in topics(text)


@pytest.mark.parametrize(
    ("text", "topic"),
    [
        ("exploration of flora", "lora"),
        ("total_loss += loss.item()", "loss-accumulation"),
        ("num_workers=10", "num-workers-0"),
        ("a torch.loader", "torch.load"),
        ("Macs and sacs", "pcie-acs"),
        ("cd /workspace/app", "library-workspace-in-words"),
    ],
)
def test_words_inside_other_words_are_not(text: str, topic: str) -> None:
    assert topic not in topics(text)


@pytest.mark.parametrize(
    "message",
    [
        new_cuda(private="with 1.00 GiB allocated in private pools (e.g., CUDA Graphs), "),
        old_cuda(),
    ],
)
def test_the_standing_advice_of_a_message_is_no_mention(message: str) -> None:
    assert topics(message) == set()
    assert the_log(message).settings == ()


def test_code_and_prose_are_told_apart() -> None:
    log = the_log(f"we use torch.load here\n{traceback(('/app/a.py', 3, 'main', 'state = torch.load(path)'))}\n")

    first = log.mentioned("torch.load")
    assert first is not None
    assert (first.in_code, first.line, first.text) == (True, 4, "state = torch.load(path)")


def test_a_topic_is_mentioned_a_few_times_at_most_and_once_a_line() -> None:
    log = the_log("lora lora lora\n" * 50)

    assert len([mention for mention in log.mentions if mention.topic == "lora"]) == MOST_MENTIONS


def test_a_long_line_is_cut_around_the_word() -> None:
    log = the_log("x" * 5000 + " qlora " + "y" * 5000)

    mention = log.mentioned("qlora")
    assert mention is not None
    assert "qlora" in mention.text
    assert len(mention.text) <= 200


def test_topics_are_lower_case_keys_and_stand_in_one_table() -> None:
    assert not PHRASES.keys() & PATTERNS.keys()
    for topic, phrases in PHRASES.items():
        assert topic == topic.lower()
        assert phrases
        assert all(phrase == phrase.lower() and phrase.strip("*") for phrase in phrases)


@pytest.mark.parametrize(
    ("text", "topic", "speaks"),
    [
        ("cudaMalloc retries: 0", "alloc-retries", False),
        ("|            CUDA OOMs: 0            |        cudaMalloc retries: 0         |", "alloc-retries", False),
        ('{"step": 5, "num_alloc_retries": 0}', "alloc-retries", False),
        ("step,num_alloc_retries,num_ooms", "alloc-retries", False),
        ("cudaMalloc retries: 3", "alloc-retries", True),
        ('{"step": 5, "num_alloc_retries": 10}', "alloc-retries", True),
        ("num_alloc_retries=0\nnum_alloc_retries=2", "alloc-retries", True),
        ("| Non-releasable memory |     10 MiB |     20 MiB |    100 MiB |     90 MiB |", "fragmentation", False),
        ('"inactive_split.all.current": 4', "fragmentation", False),
        ("fragmentation: 0.0", "fragmentation", False),
        ("much of it is non-releasable", "fragmentation", True),
        ("memory is fragmented", "fragmentation", True),
    ],
)
def test_counts_of_none_and_labels_of_tables_are_no_words(text: str, topic: str, speaks: bool) -> None:
    assert (topic in topics(text)) is speaks
