"""Hide secrets in what is recorded of a run: arguments, settings, environment variables, URLs, texts.

What names a secret is in `secret_names`, what looks like one in `secret_text`. A hidden value is replaced whole: neither its length nor a
digest of it is kept, from which a short password could be guessed. What is hidden leaves its name, so that whoever repeats the run knows
what to supply.
"""

from collections.abc import Iterable

from advisor.client.secret_names import SECRET, SECRET_TEXT, judged
from advisor.client.secret_text import REDACTED, hides, looks_random, redact_text

SIGNS_IN_NAMES = str.maketrans("-./@", "____")
"""Of options: `--api-key`, and of Hydra: `+group/name@package.option=value`."""


def redact_named(name: str, text: str) -> str:
    """The text that is the value of a thing of this name, with what is secret of it hidden."""
    return REDACTED if hides(name, text) else redact_text(text)


def hides_number(name: str) -> bool:
    """Whether a number of this name must be hidden: a `password`; no `pad_token`, no `access_token_limit`."""
    return judged(name) == SECRET


def hides_all(name: str) -> bool:
    """Whether every text below this name must be hidden: `credentials: {user: ..., value: ...}`."""
    return judged(name) >= SECRET_TEXT


def redact_argv(argv: Iterable[str]) -> list[str]:
    """A command line with its secrets hidden: `--api-key VALUE`, `--token=VALUE`, `wandb.key=VALUE`, URLs, and keys by their shape."""
    redacted, expecting = [], ""
    for argument in argv:
        name, equals, value = argument.partition("=")
        is_name = name.lstrip("+-~").translate(SIGNS_IN_NAMES).isidentifier()
        if equals and is_name:
            redacted.append(f"{name}={redact_named(name, value)}")
            expecting = ""
        elif is_name and argument.startswith("-"):
            redacted.append(redact_text(argument))
            expecting = argument
        else:
            redacted.append(redact_named(expecting, argument) if expecting else redact_text(argument))
            expecting = ""
    return redacted


__all__ = ["REDACTED", "hides_all", "hides_number", "looks_random", "redact_argv", "redact_named", "redact_text"]
