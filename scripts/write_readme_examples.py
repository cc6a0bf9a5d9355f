"""Put the real output of the README's commands into it; a test compares."""

import contextlib
import io
import os
import re
from pathlib import Path

from advisor.cli.main import main as run_command

ROOT = Path(__file__).resolve().parents[1]
README = ROOT / "README.md"
SHOWN_LINES = {"diagnose": 34, "roofline": 19}
"""Lines of each command's output that the README shows; the rest is an ellipsis."""


def output_of(command: str) -> str:
    """The first lines that a command prints, run in the clone."""
    words = command.split()
    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    before = Path.cwd()
    os.chdir(ROOT)
    try:
        with contextlib.redirect_stdout(out):
            run_command(words[1:])
    finally:
        os.chdir(before)
    lines = out.buffer.getvalue().decode("utf-8").rstrip().splitlines()
    shown = SHOWN_LINES[words[1]]
    return "\n".join([*lines[:shown], *(["..."] if len(lines) > shown else [])])


def with_output(text: str) -> str:
    """The README with the output of each command that it shows in a block of its own."""
    return re.sub(
        r"```\n\$ (advisor-cli [^\n]*)\n.*?\n```",
        lambda block: f"```\n$ {block[1]}\n{output_of(block[1])}\n```",
        text,
        flags=re.DOTALL,
    )


if __name__ == "__main__":
    README.write_text(with_output(README.read_text(encoding="utf-8")), encoding="utf-8")
