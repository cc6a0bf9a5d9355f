"""Secrets in texts. The keys here are made up at random, from the published forms of services' keys."""

import random
import string
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.client import secret_text
from advisor.client.secret_text import REDACTED, hides, looks_random, redact_text

ALNUM = string.ascii_letters + string.digits
LETTERS = string.ascii_letters
HEX = "0123456789abcdef"
URL_SAFE = ALNUM + "-_"
UPPER = string.ascii_uppercase + "234567"


def a_text(alphabet, length, seed):
    return "".join(random.Random(seed).choices(alphabet, k=length))


FORMS = {
    "an OpenAI key": ("sk-", ALNUM, 48),
    "an OpenAI project key": ("sk-" + "proj-", URL_SAFE, 120),
    "an Anthropic key": ("sk-" + "ant-api03-", URL_SAFE, 93),
    "an OpenRouter key": ("sk-" + "or-v1-", HEX, 64),
    "a GitHub token": ("gh" + "p_", ALNUM, 36),
    "a GitHub server token": ("gh" + "s_", ALNUM, 36),
    "a GitHub token of the new form": ("github_" + "pat_", ALNUM, 82),
    "a GitLab token": ("gl" + "pat-", URL_SAFE, 20),
    "a Hugging Face token": ("h" + "f_", LETTERS, 34),
    "an AWS key": ("AK" + "IA", UPPER, 16),
    "a temporary AWS key": ("AS" + "IA", UPPER, 16),
    "a Google key": ("AI" + "za", URL_SAFE, 35),
    "a Google access token": ("ya" + "29.", URL_SAFE, 60),
    "a Slack token": ("xo" + "xb-", ALNUM, 40),
    "a Stripe key": ("sk_" + "live_", ALNUM, 24),
    "a Databricks token": ("da" + "pi", HEX, 32),
    "a Replicate token": ("r" + "8_", ALNUM, 37),
    "a Groq key": ("gs" + "k_", ALNUM, 52),
    "an npm token": ("np" + "m_", ALNUM, 36),
    "a PyPI token": ("py" + "pi-", URL_SAFE, 100),
    "an NVIDIA key": ("nv" + "api-", URL_SAFE, 64),
    "a LangSmith key": ("ls" + "v2_pt_", HEX, 32),
    "a DigitalOcean token": ("do" + "p_v1_", HEX, 64),
}


@pytest.mark.parametrize("form", FORMS)
def test_a_key_is_known_by_its_form_wherever_it_stands(form):
    prefix, alphabet, length = FORMS[form]
    for seed in range(50):
        key = prefix + a_text(alphabet, length, seed)
        for around in ("{}", "key {} end", '["{}"]', "--flag={}", "({})", "https://host/path?x={}", "a,{},b"):
            shown = redact_text(around.format(key))
            assert REDACTED in shown, around
            assert key[len(prefix) : len(prefix) + 12] not in shown, around


@pytest.mark.parametrize("seed", range(20))
def test_a_signed_token_is_known(seed):
    token = ".".join(("eyJ" + a_text(URL_SAFE, 20, seed), "eyJ" + a_text(URL_SAFE, 60, seed), a_text(URL_SAFE, 43, seed)))
    assert redact_text(f"cookie {token}") == f"cookie {REDACTED}"


@pytest.mark.parametrize("kind", ["RSA PRIVATE KEY", "PRIVATE KEY", "OPENSSH PRIVATE KEY", "ENCRYPTED PRIVATE KEY", "EC PRIVATE KEY"])
def test_a_private_key_is_hidden_whole_and_also_where_its_end_is_cut_off(kind):
    body = "\n".join(a_text(ALNUM + "+/", 64, line) for line in range(5))
    whole = f"-----BEGIN {kind}-----\n{body}\n-----END {kind}-----"
    assert redact_text(f"before\n{whole}\nafter") == f"before\n{REDACTED}\nafter"
    assert redact_text(f"before\n{whole[:200]}") == f"before\n{REDACTED}"
    assert redact_text("-----BEGIN CERTIFICATE-----\nMIIB") == "-----BEGIN CERTIFICATE-----\nMIIB"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("https://me:pass@host/x.git", "https://<redacted>@host/x.git"),
        ("https://oauth2:tok@gitlab.com/a/b", "https://<redacted>@gitlab.com/a/b"),
        ("https://tok@github.com/a/b", "https://<redacted>@github.com/a/b"),
        ("postgresql+psycopg2://u:p%40ss@db:5432/x?sslmode=require", "postgresql+psycopg2://<redacted>@db:5432/x?sslmode=require"),
        ("redis://:pw@host:6379/0", "redis://<redacted>@host:6379/0"),
        ("mongodb://u:p@ss@h1,h2/db", "mongodb://<redacted>@h1,h2/db"),
        ("see https://u:p@a/ and https://v:q@b/.", "see https://<redacted>@a/ and https://<redacted>@b/."),
        ("https://host/?api_key=abc&x=1", "https://host/?api_key=<redacted>&x=1"),
        ("https://host/f?sv=1&X-Amz-Security-Token=abc12345&y=2", "https://host/f?sv=1&X-Amz-Security-Token=<redacted>&y=2"),
        ("git@github.com:org/repo.git", "git@github.com:org/repo.git"),
        ("ssh://git@host:22/repo", "ssh://git@host:22/repo"),
        ("https://git@host/repo", "https://git@host/repo"),
        ("https://host:8080/path@2x.png", "https://host:8080/path@2x.png"),
        ("s3://bucket/key/part-0.parquet", "s3://bucket/key/part-0.parquet"),
        ("file:///data/train@v2.bin", "file:///data/train@v2.bin"),
    ],
)
def test_credentials_leave_urls_and_the_rest_of_the_url_stays(text, shown):
    assert redact_text(text) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("+HF_TOKEN=abcdefgh", "+HF_TOKEN=<redacted>"),
        ("export DB_PASSWORD=hunter2", "export DB_PASSWORD=<redacted>"),
        ("+  password: hunter2", "+  password: <redacted>"),
        ('+    wandb.login(key="abcd1234")', '+    wandb.login(key="abcd1234")'),
        ('+    login(token="abcd1234")', '+    login(token="<redacted>")'),
        ("+    api_key = 'abcd1234'", "+    api_key = '<redacted>'"),
        ('os.environ["WANDB_API_KEY"] = "abc"', 'os.environ["WANDB_API_KEY"] = "<redacted>"'),
        ('{"api_key": "zzz", "pad_token": "<pad>"}', '{"api_key": "<redacted>", "pad_token": "<pad>"}'),
        ("curl -H 'Authorization: Bearer abc.def' x", "curl -H 'Authorization: <redacted>' x"),
        ("Bearer abcdefgh12345678xyz", "Bearer <redacted>"),
        ("run --token=abc --lr=1", "run --token=<redacted> --lr=1"),
        ("AccountName=x;AccountKey=abcd1234+/==;E=y", "AccountName=x;AccountKey=<redacted>;E=y"),
        ('url="https://host/?token=abcdefg1&lr=3"', 'url="https://host/?token=<redacted>&lr=3"'),
        ("password = hunter2", "password = <redacted>"),
    ],
)
def test_what_is_assigned_to_a_secrets_name_is_hidden(text, shown):
    assert redact_text(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        "password = getpass()",
        "token = tokenizer.next_token",
        "f(token=token, api_key=args.api_key)",
        "password: str",
        "token: str = None",
        "api_key: Optional[str] = None",
        "secret: ${oc.env:HF_TOKEN}",
        "export HF_TOKEN=$OTHER_TOKEN",
        "api_key: null",
        "token: <your token>",
        "tokens = tokenizer(text, max_length=512)",
        "key = jax.random.PRNGKey(0)",
        "eos_token_id: 2",
        'sep_token="[SEP]", cls_token="[CLS]"',
        "self.token_embedding = nn.Embedding(vocab, dim)",
        "for token in tokens:",
        "assert len(key) == 3",
        "sk-learn-random-forest-model",
        "task-aaaaaaaaaaaaaaaaaaaaaaaaa",
        "hf_transfer_enabled_for_downloads",
        "npm_config_registry_of_company",
        "meta-llama/Meta-Llama-3-8B-Instruct",
        "Qwen/Qwen2.5-7B-Instruct-GPTQ-Int4",
        "0c4e8f1a9b2d3c4e5f60718293a4b5c6d7e8f901",
        "basic understanding-of-transformers",
        "commit: 0c4e8f1a9b2d3c4e5f60718293a4b5c6d7e8f901",
        "_fingerprint: 8a5edab282632443",
        "http://[::1]:8080/",
        "2024-01-01T10:00:00Z",
    ],
)
def test_what_repeats_a_run_survives(text):
    assert redact_text(text) == text


@given(st.text())
def test_any_text_is_taken_and_hiding_twice_changes_nothing_more(text):
    once = redact_text(text)
    assert redact_text(once) == once


@given(st.integers(), st.sampled_from([HEX, ALNUM, LETTERS]), st.integers(min_value=32, max_value=200))
def test_a_long_generated_word_looks_random(seed, alphabet, length):
    assert looks_random(a_text(alphabet, length, seed))


@pytest.mark.parametrize(("alphabet", "length"), [(URL_SAFE, 40), (ALNUM + "+/", 40), (ALNUM, 24), (URL_SAFE, 120)])
def test_nearly_every_generated_text_looks_random(alphabet, length):
    known = sum(looks_random(a_text(alphabet, length, seed)) for seed in range(2000))
    assert known >= 1970


@pytest.mark.parametrize("alphabet", [HEX, ALNUM, LETTERS, string.digits + string.ascii_lowercase])
def test_a_generated_word_of_32_letters_looks_random(alphabet):
    assert all(looks_random(a_text(alphabet, 32, seed)) for seed in range(200))


def test_identities_of_36_letters_look_random():
    import uuid

    assert all(looks_random(str(uuid.UUID(int=random.Random(seed).getrandbits(128)))) for seed in range(50))


@pytest.mark.parametrize(
    "text",
    [
        *("meta-llama/Meta-Llama-3-8B-Instruct", "gpt2-l12-h8-d768-seq1024-bs32", "/data/2024/run1/shard-00001.parquet", "input_ids"),
        *("stabilityai/stable-diffusion-xl-base-1.0", "2024-01-01T10:00:00Z", "exp_042_lr3e-4_wd0.1_warmup500", "short", ""),
        *("this is a sentence with many words in it", "./relative/path/to/AFile1B2C3D", "labels.train.primary.english"),
    ],
)
def test_names_of_models_runs_and_files_do_not_look_random(text):
    assert not looks_random(text)


@pytest.mark.parametrize(
    ("name", "text", "is_hidden"),
    [
        ("password", "hunter2", True),
        ("password", "1234", True),
        ("token", "1234", False),
        ("token", "abc", True),
        ("token", "", False),
        ("token", "true", False),
        ("token", "<|endoftext|>", False),
        ("eos_token", "</s>", False),
        ("eos_token", a_text(ALNUM, 40, 1), True),
        ("primary_key", "user_id", False),
        ("cache_key", a_text(HEX, 40, 1), True),
        ("use_auth_token", "True", False),
        ("PWD", "/data/run", False),
        ("db_pwd", "hunter2", True),
        ("HF_TOKEN", "$OTHER", False),
        ("HF_TOKEN", "****", False),
        ("lr", a_text(ALNUM, 40, 1), False),
    ],
)
def test_a_name_and_its_value_decide_together(name, text, is_hidden):
    assert hides(name, text) is is_hidden


HOSTILE = [
    *(
        "a",
        "a-",
        "a.",
        "a=",
        "a:",
        ":",
        "://",
        "://a@",
        "@",
        "=",
        "'",
        '"',
        "-----BEGIN PRIVATE KEY-----",
        "token=",
        'token="',
        "eyJ",
        "eyJa.",
    ),
    *("sk-", "key: ", "bearer ", "authorization:", "a_", "x1", " ", "\\", "token = \t ", "AKIA", "$(", "{{", "secret'] = "),
]


@pytest.mark.parametrize("atom", HOSTILE)
def test_a_text_takes_time_in_proportion_to_its_length(atom):
    began = time.process_time()
    redact_text((atom * 100_000)[:100_000])
    assert time.process_time() - began < 3.0


def test_the_patterns_have_no_match_without_one_of_the_signs_that_are_looked_for_first():
    for form, (prefix, alphabet, length) in FORMS.items():
        key = prefix + a_text(alphabet, length, 3)
        assert any(sign in key for sign in secret_text.SIGNS_OF_SHAPES), form
