"""Does a name say that its value is a secret? `HF_TOKEN` and `--api-key` do; `pad_token`, `max_tokens` and `primary_key` do not."""

import re
from functools import lru_cache

PLAIN, SUSPECT, SECRET_TEXT, SECRET = 0, 1, 2, 3
"""What a name says of its value: nothing; hide it if it looks random; hide it if it is a text; hide a number as well."""

WORDS = r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+"
"""The words of a name in snake_case, kebab-case, camelCase or UPPER_CASE."""

LONGEST_NAME = 200
"""Letters looked at, from the end: longer than the names that people give."""

ALWAYS = frozenset(
    {
        *("password", "passwords", "passwd", "passphrase", "pwd", "secret", "secrets", "credential", "credentials", "creds"),
        *("apikey", "apikeys", "apitoken", "authtoken", "accesstoken", "accesskey", "secretkey", "privatekey", "hftoken"),
        *("ghtoken", "authorization", "bearer", "cookie", "cookies", "jwt", "dsn", "netrc", "connectionstring", "mnemonic"),
    }
)
"""Words that make a name that of a secret, wherever they stand."""

ENDINGS = ("password", "passwd", "secret", "apikey", "accesskey", "secretkey", "privatekey", "authtoken", "accesstoken", "apitoken")
"""The same, run together with the word before: `dbpassword`, `mysecret`."""

DESCRIBING = frozenset(
    {
        *("id", "ids", "type", "types", "count", "counts", "length", "len", "size", "dim", "index", "idx", "limit", "budget"),
        *("ratio", "rate", "dropout", "embedding", "embeddings", "embed", "level", "file", "path", "dir", "name", "names", "url"),
        *("uri", "policy", "manager", "method", "mode", "scheme", "provider", "env", "enabled", "required", "version", "expiry"),
        *("expires", "ttl", "loss", "mask", "map", "shift", "mixing", "pruning", "merging", "merge", "classification"),
        *("classifier", "format", "field", "column", "prefix", "suffix", "strategy", "lifetime", "timeout", "num", "heads"),
        *("bytes", "bits", "class", "parallelism", "cls", "rotation", "hint"),
    }
)
"""Last words that make it the name of something about a token, key or secret: `token_type_ids`, `password_file`, `secret_name`."""

SWITCHES = frozenset({"use", "enable", "disable", "no", "is", "has", "with", "without", "skip", "require", "allow", "show", "print"})
"""First words of what is switched on or off: `--use-auth-token` takes no value."""

VOCABULARY = frozenset(
    {
        *("pad", "padding", "eos", "bos", "unk", "unknown", "mask", "sep", "cls", "eot", "eod", "eom", "eop", "sot", "start"),
        *("end", "stop", "boi", "eoi", "boa", "eoa", "fim", "begin", "class", "image", "img", "video", "audio", "speech", "vision"),
        *("patch", "text", "special", "added", "extra", "additional", "sentinel", "register", "pool", "pooling", "prompt"),
        *("prefix", "suffix", "lang", "language", "turn", "user", "assistant", "system", "tool", "think", "thinking", "reasoning"),
        *("first", "last", "next", "new", "per", "num", "max", "min", "n", "number", "target", "source", "word", "sub", "subword"),
        *("byte", "char", "head", "tail", "memory", "latent", "query", "cross", "distillation", "each", "all", "any", "space"),
        *("newline", "blank", "bot", "dummy", "separator", "placeholder", "empty", "single", "input", "output", "decoder"),
        *("encoder", "period", "comma", "digit", "label", "answer", "question", "document", "sentence", "of"),
    }
)
"""Words before `token` that make it one of a vocabulary, or a measure."""

TOKEN_OWNERS = frozenset(
    {
        *("auth", "access", "api", "refresh", "bearer", "session", "hub", "hf", "huggingface", "github", "gh", "gitlab", "git"),
        *("wandb", "aws", "security", "csrf", "oauth", "oidc", "id", "sas", "slack", "telegram", "discord", "npm", "pypi"),
        *("openai", "replicate", "comet", "neptune", "clearml", "databricks", "kaggle", "service", "deploy", "pat", "personal"),
        *("secret", "private", "jupyter", "kube", "vault"),
    }
)
"""Words before `tokens` or `token_...` that make it a secret."""

KEY_OWNERS = frozenset(
    {
        *("api", "access", "secret", "private", "signing", "encryption", "decryption", "ssh", "gpg", "pgp", "rsa", "aes", "hmac"),
        *("account", "storage", "master", "auth", "license", "service", "subscription", "deploy", "client", "app", "consumer"),
        *("shared", "wandb", "hf", "openai", "anthropic", "cohere", "mistral", "groq", "together", "comet", "neptune", "clearml"),
        *("langchain", "langsmith", "google", "gemini", "azure", "aws", "gcp", "github", "kaggle", "databricks", "replicate"),
        *("pinecone", "sentry", "sendgrid", "stripe", "twilio", "serper", "tavily", "voyage", "nvidia", "ngc", "admin", "session"),
        *("cookie", "vault", "minio"),
    }
)
"""Words before `key` that make it a secret; `image_key`, `sort_key`, `rng_key` are none."""

PASS_OWNERS = frozenset(
    {"db", "user", "admin", "root", "smtp", "mysql", "pg", "postgres", "redis", "mongo", "ftp", "http", "proxy", "mail"}
)
"""Words before `pass` that make it a secret; `forward_pass` is none."""

AUTH_OWNERS = frozenset({"basic", "http", "proxy", "registry", "docker", "npm", "user", "x"})
"""Words before `auth` that make it a secret."""

ODD_ENDS = frozenset(
    {("connection", "string"), ("conn", "string"), ("webhook", "url"), ("github", "pat"), ("azure", "pat"), ("gitlab", "pat")}
)
"""The last two words of other names of secrets."""


STEMS = (
    "key",
    "token",
    "pass",
    "secret",
    "auth",
    "cred",
    "pwd",
    "pat",
    "sas",
    "sig",
    "dsn",
    "jwt",
    "cookie",
    "bearer",
    "netrc",
    "conn",
    "hook",
    "mnem",
)
"""A name without one of these is PLAIN: seen ten times faster than its words are taken apart."""


@lru_cache(maxsize=4096)
def judged(name: str) -> int:
    """PLAIN, SUSPECT, SECRET_TEXT or SECRET; a dotted name is read as a whole (`wandb.key`)."""
    lowered = name.lower()
    if not any(stem in lowered for stem in STEMS):
        return PLAIN
    words = _words(name[-LONGEST_NAME:])
    while words and words[-1].isdigit():
        words.pop()
    if not words:
        return PLAIN
    found = max(_by_any_word(words), _by_last_word(words[-1], words[-2] if len(words) > 1 else ""), _by_inner_word(words))
    return min(found, SUSPECT) if words[0] in SWITCHES else found


def _words(name: str) -> list[str]:
    flat = name.replace("-", "_").replace(".", "_")
    if flat.isascii() and flat.replace("_", "").isalpha() and (flat.islower() or flat.isupper()):
        return [word for word in flat.lower().split("_") if word]  # nearly all names; the expression need not even be compiled
    return [word.lower() for word in re.findall(WORDS, name)]


def _by_any_word(words: list[str]) -> int:
    if ALWAYS.isdisjoint(words) and not any(word.endswith(ENDINGS) for word in words):
        return PLAIN
    return SUSPECT if words[-1] in DESCRIBING and words[-3:] != ["access", "key", "id"] else SECRET


def _by_last_word(last: str, before: str) -> int:  # noqa: PLR0911 - one answer a word
    if last in {"key", "keys"}:
        return SECRET_TEXT if before in KEY_OWNERS else SUSPECT
    if last == "token":
        return SUSPECT if before in VOCABULARY else SECRET_TEXT
    if last == "tokens":
        return SECRET_TEXT if before in TOKEN_OWNERS else SUSPECT
    if last == "auth":
        return SECRET_TEXT if before in AUTH_OWNERS else SUSPECT
    if last == "pass":
        return SECRET_TEXT if before in PASS_OWNERS else SUSPECT
    if last in {"sas", "pat", "signature", "sig"} and (before, last) not in ODD_ENDS:
        return SUSPECT
    return SECRET_TEXT if (before, last) in ODD_ENDS else PLAIN


def _by_inner_word(words: list[str]) -> int:
    """Names with one of the words further ahead: `api_key_prod`, `AWS_ACCESS_KEY_ID`, `auth_token_new`."""
    found = PLAIN
    for owner, word in zip(("", *words), words[:-1]):  # noqa: B905 - the last word was judged
        is_owned = (word == "key" and owner in KEY_OWNERS) or (word == "token" and owner in TOKEN_OWNERS)
        if is_owned and (words[-1] not in DESCRIBING or (owner, word, words[-1]) == ("access", "key", "id")):
            return SECRET_TEXT
        if word in {"key", "token", "auth", "pass", "sas", "pat"}:
            found = SUSPECT
    return found
