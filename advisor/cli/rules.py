"""`advisor-cli rules`: all rules with their summaries."""

import argparse
import json
import sys

from advisor.cli import exit_codes
from advisor.cli.terminal import terminal_columns
from advisor.render.layout import paragraph, plain_text
from advisor.rules.registry import REGISTRY, all_rules

WIDEST_COLUMNS = 100
"""Longer lines are hard to read, however wide the terminal is."""

LEAST_SUMMARY_COLUMNS = 48
"""Columns beside the longest name: code and blanks, and three or four words of a summary."""


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command's options."""
    parser = commands.add_parser("rules", description="List all rules: code, name, what it says.")
    parser.add_argument("--format", choices=("text", "json"), default="text", help="of the list (text by default)")


def run(arguments: argparse.Namespace) -> int:
    """Print the list."""
    if arguments.format == "json":
        listed = [{"code": rule.code, "name": rule.name, "summary": rule.summary} for rule in all_rules()]
        sys.stdout.write(json.dumps(listed, indent=2) + "\n")
        return exit_codes.NOTHING_FOUND
    sys.stdout.write(listing(min(terminal_columns(), WIDEST_COLUMNS)))
    return exit_codes.NOTHING_FOUND


def listing(width: int) -> str:
    """The rules in lines of at most `width` columns: codes and names beside the summaries, or above them where there is no room."""
    names = max(len(entry.name) for entry in REGISTRY)
    is_wide = width - names >= LEAST_SUMMARY_COLUMNS
    lines = (
        line
        for rule in all_rules()
        for line in (
            paragraph((rule.summary, ""), width=width, mark=f"{rule.code} {rule.name:<{names}}")
            if is_wide
            else paragraph((f"{rule.name}: {rule.summary}", ""), width=width, mark=rule.code)
        )
    )
    return plain_text(lines)
