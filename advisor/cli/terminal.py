"""What the terminal is like: its width, and whether it takes colors."""

import argparse
import os
import sys

PIPE_COLUMNS = 80
"""The width where there is no terminal."""


def colors_wanted() -> bool:
    """By NO_COLOR (any value but empty turns colors off) and TERM=dumb."""
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def terminal_columns() -> int:
    """By COLUMNS, else by the terminal on standard output, else 80; what `shutil.get_terminal_size` says, which is slow to load."""
    try:
        return int(os.environ["COLUMNS"])
    except (KeyError, ValueError):
        pass
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns or PIPE_COLUMNS
    except (OSError, ValueError, AttributeError):
        return PIPE_COLUMNS


class HelpText(argparse.RawDescriptionHelpFormatter):
    """Help texts as they are written, of the terminal's width."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=max(PIPE_COLUMNS // 2, terminal_columns() - 2))
