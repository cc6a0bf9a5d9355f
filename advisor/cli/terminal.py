"""Whether to write colors: only to a terminal, never where NO_COLOR is set."""

import os


def colors_wanted() -> bool:
    """By NO_COLOR (any value but empty turns colors off) and TERM=dumb."""
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
