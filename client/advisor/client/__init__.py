"""The trainer's part of the advisor: `attach()` watches a training run from inside, and costs it next to nothing.

    import advisor.client

    advisor.client.attach()

It imports the standard library, and torch only where the training has loaded it.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from advisor.client.attachment import Attachment, attach

__all__ = ["Attachment", "attach"]


def __getattr__(name: str) -> Any:  # noqa: ANN401 - a function or a class
    """Load what watches a training when it is asked for: whoever only reads a run's files needs the layout alone."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from advisor.client import attachment  # noqa: PLC0415 - see above

    return getattr(attachment, name)
