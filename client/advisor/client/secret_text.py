"""Find secrets in a text by their shape: keys of known services, signed tokens, private keys, credentials in URLs, assignments."""

import re

from advisor.client.secret_names import PLAIN, SECRET, STEMS, SUSPECT, judged

REDACTED = "<redacted>"

SHORTEST_SECRET = 8
"""Letters; a shorter text matches no pattern."""

KNOWN_SHAPES = (
    r"(?<![A-Za-z0-9])(?=[ASadeghlnprstwxy])(?:"
    r"(?:[srp]k_(?:live|test)|gh[oprsu]|hf|api_org|github_pat|r8|gsk|npm|dop_v1|lsv2_(?:pt|sk)|wandb_v1)_[A-Za-z0-9_]{24,}"
    r"|(?:glpat|nvapi|xai|pplx|tvly|pypi|xox[abeoprs]|xapp|AGE-SECRET-KEY)-[A-Za-z0-9_-]{16,}"
    r"|sk-[A-Za-z0-9_-]{20,}"
    r"|(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Za-z0-9])"
    r"|AIza[A-Za-z0-9_-]{35}"
    r"|ya29\.[A-Za-z0-9_-]{20,}"
    r"|dapi[0-9a-f]{32}"
    r"|eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?"
    r"|SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}"
    r"|hooks\.slack\.com/services/[A-Za-z0-9/]{16,}"
    r"|discord(?:app)?\.com/api/webhooks/[A-Za-z0-9_/-]{16,}"
    r")"
)
"""Forms that services publish so that their keys are recognized."""

SIGNS_OF_SHAPES = (
    *(
        "sk-",
        "k_live_",
        "k_test_",
        "gho_",
        "ghp_",
        "ghr_",
        "ghs_",
        "ghu_",
        "hf_",
        "api_org_",
        "github_pat_",
        "r8_",
        "gsk_",
        "npm_",
        "dop_v1_",
    ),
    *("lsv2_", "wandb_v1_", "glpat-", "nvapi-", "xai-", "pplx-", "tvly-", "pypi-", "xox", "xapp-", "AGE-SECRET", "AKIA", "ASIA", "AIza"),
    *("ya29.", "dapi", "eyJ", "SG.", "hooks.slack", "api/webhooks"),
)
"""One of these is in every text that has a match: looking for them is faster than the search, and nearly no text has one."""

SHORTEST_SHAPE = 20
"""Letters of the shortest match, AKIA and sixteen more."""

DOUBTFUL = r"(?:hf|npm|r8)_|(?:sk|pypi|xai|pplx|tvly)-"
"""Prefixes that names of settings and packages share (`hf_transfer_...`, `sk-learn-...`): what follows must look random as well."""

CREDENTIALS = (
    r"(?i)\b((?:proxy-)?authorization[\"']?\s{0,9}[:=]\s{0,9}[\"']?)([^\r\n\"',]+)|\b(bearer|basic)\s{1,9}([A-Za-z0-9._~+/=-]{16,})"
)

PRIVATE_KEY = r"(?s)-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY-----.*?(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY-----|\Z)"

USER_OF_URL = r"(?<![A-Za-z0-9+.-])([A-Za-z][A-Za-z0-9+.-]{0,30})://([^\s/?#\"'<>]*)@"

ASSIGNMENT = (
    r"(?<![\w.])(?P<name>[A-Za-z_][\w.-]{0,120})(?P<sign>[\"']?\]?[ \t]{0,40}(?:=>|:=|:(?!//)|=)[ \t]{0,40})"
    r"(?:[rbufRBUF]{0,2}\"(?P<double>[^\"\r\n]*)\"|[rbufRBUF]{0,2}'(?P<single>[^'\r\n]*)'|(?P<bare>[^\s\"',;&()\[\]{}<>]{1,400}))"
)
"""`name = "value"`, `"name": "value"`, `NAME=value`, `?name=value&`, `environ["NAME"] = "value"`."""

REST_OF_BARE = r"[^\s\"',;&()\[\]{}<>]*"
"""What is left of an unquoted value that is longer than the search for one looks: in `a=a=a=...` each would be looked at to the end."""

REFERENCE = r"\$\{?[\w.:]+\}?|\$\([^)]*\)|%[\w]+%|\{\{[^}]*\}\}|<[^<>]{0,60}>|\[[A-Z_]{1,30}\]|\*+|x{3,}|X{3,}|\.{3}"
"""Not the secret itself: a reference to a variable, a vocabulary's `<pad>` or `[SEP]`, a placeholder."""

FIRST_OF_REFERENCES = frozenset("$%{<[*xX.")

NOTHING_SECRET = frozenset({"", "true", "false", "none", "null", "nil", "yes", "no", "on", "off", "auto", "default", "0", "1"})

TYPE_WORDS = frozenset({"str", "int", "float", "bool", "bytes", "any", "object", "dict", "list", "optional", "string", "self", "secretstr"})
"""What follows `password:` in a declaration."""

NUMBER = r"[-+]?(?:\d[\d_]*(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?"
PATH_OF_NAMES = r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+\.?"
SHAPE_OF_RANDOM = r"[A-Za-z0-9+/=_.~:-]{20,1000}"
UUID = r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
TURN = r"(?<=[0-9])[A-Za-z]|(?<=[a-z])[A-Z]"

TURN_RATIO = 0.12
"""Of a letter after a digit, or a capital after a small letter, per character: random base64 has 0.31, hexadecimal 0.23, the names of
models, files and runs below 0.1."""

UNBROKEN_LENGTH = 32
"""A word without separators as long as this is no word."""


def looks_random(text: str) -> bool:
    """Whether a text looks like a generated key: long, one word, and letters and digits mixed as people do not mix them."""
    if text.startswith(("/", "./", "../", "~/")):
        # A path is as random as its longest part; base64 may begin with a slash as well.
        text = max(text.split("/"), key=len)
    if re.fullmatch(SHAPE_OF_RANDOM, text) is None:
        return False
    if re.fullmatch(UUID, text) is not None:
        return True
    if len(text) >= UNBROKEN_LENGTH and text.rstrip("=").isalnum() and not text.isdecimal():
        return True
    return len(re.findall(TURN, text)) >= TURN_RATIO * len(text)


def is_reference(text: str) -> bool:
    """Whether the text is not a secret itself, but says where it is, or that there is none."""
    return text[:1] in FIRST_OF_REFERENCES and re.fullmatch(REFERENCE, text) is not None


def _is_number(text: str) -> bool:
    return (text[:1].isdigit() or text[:1] in "+-.") and re.fullmatch(NUMBER, text) is not None


def hides(name: str, text: str) -> bool:
    """Whether the value of a thing of this name must be hidden."""
    level = judged(name)
    if level == PLAIN or text.lower() in NOTHING_SECRET or is_reference(text):
        return False
    if level == SUSPECT:
        return looks_random(text)
    if name.lower() in {"pwd", "oldpwd"} and text.startswith("/"):
        return False
    return level == SECRET or not _is_number(text)


def redact_text(text: str) -> str:
    """The text with each secret in it replaced by REDACTED; linear in its length."""
    if len(text) < SHORTEST_SECRET:
        return text
    if "PRIVATE KEY-----" in text:
        text = re.sub(PRIVATE_KEY, REDACTED, text)
    if "://" in text:
        text = re.sub(USER_OF_URL, _without_user, text)
    if len(text) >= SHORTEST_SHAPE and any(sign in text for sign in SIGNS_OF_SHAPES):
        text = re.sub(KNOWN_SHAPES, _known, text)
    if "=" in text or ":" in text or " " in text:
        lowered = text.lower()
        if "auth" in lowered or "bearer " in lowered or "basic " in lowered:
            text = re.sub(CREDENTIALS, _credentials, text)
        if any(stem in lowered for stem in STEMS):
            text = _without_assigned(text)
    return text


def _known(match: "re.Match[str]") -> str:
    found = match.group()
    doubtful = re.match(DOUBTFUL, found)
    tail = found[doubtful.end() :] if doubtful else ""
    return found if doubtful and not tail.isalnum() and not looks_random(tail) else REDACTED


def _without_user(match: "re.Match[str]") -> str:
    scheme, user = match.groups()
    is_login_name = ":" not in user and (scheme.lower() not in {"http", "https"} or user == "git")
    return match.group() if is_login_name or not user else f"{scheme}://{REDACTED}@"


def _credentials(match: "re.Match[str]") -> str:
    header, value, scheme, secret = match.groups()
    if header is not None:
        return match.group() if is_reference(value.strip()) else header + REDACTED
    return f"{scheme} {REDACTED}" if any(letter.isdigit() for letter in secret) else match.group()


def _without_assigned(text: str) -> str:
    assignment, pieces, kept, at = re.compile(ASSIGNMENT), [], 0, 0
    while (match := assignment.search(text, at)) is not None:
        # Whatever is kept is searched for what is assigned inside it: `url="https://host/?token=..."`.
        at = match.end("sign")
        if judged(match["name"]) == PLAIN:
            continue
        value = next(group for group in ("double", "single", "bare") if match[group] is not None)
        if value == "bare":
            if not _is_bare_secret(match):
                continue
            rest = re.compile(REST_OF_BARE).match(text, match.end())
            end = rest.end() if rest else match.end()
        elif hides(match["name"], match[value]):
            end = match.end(value)
        else:
            continue
        pieces += [text[kept : match.start(value)], REDACTED]
        kept = at = end
    return "".join((*pieces, text[kept:]))


def _is_bare_secret(match: "re.Match[str]") -> bool:
    """Of an unquoted value: `PASSWORD=hunter2` of a shell is one, `token=token` and `password: str` of a program are none."""
    name, sign, value, text = match["name"], match["sign"].strip("\"']"), match["bare"], match.string
    rest = text[match.end() : match.end() + 1]
    is_code = rest in ("(", "[") or value.lower() in TYPE_WORDS or re.fullmatch(PATH_OF_NAMES, value) is not None
    if is_code or value.lower().rstrip("0123456789_") in name.lower() or not hides(name, value):
        return False
    has_digit = any(letter.isdigit() for letter in value)
    if judged(name) == SUSPECT or (has_digit and len(value) >= SHORTEST_SECRET and not value.isidentifier()):
        return True
    if sign == "=":
        before = text[match.start() - 1 : match.start()]
        return name.isupper() or before in ("?", "&", "-")
    # Of a settings file: the value is all that is left of the line; in a program a lone identifier is a variable.
    return rest in ("", "\r", "\n") and (sign.startswith(":") or has_digit)
