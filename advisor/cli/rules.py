"""`advisor-cli rules`: all rules, a line each."""

import argparse
import json
import sys

from advisor.cli import exit_codes
from advisor.rules.registry import REGISTRY, all_rules


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command's options."""
    parser = commands.add_parser("rules", description="List all rules, a line each: code, name, what it says.")
    parser.add_argument("--format", choices=("text", "json"), default="text", help="of the list (text by default)")


def run(arguments: argparse.Namespace) -> int:
    """Print the list."""
    if arguments.format == "json":
        listed = [{"code": rule.code, "name": rule.name, "summary": rule.summary} for rule in all_rules()]
        sys.stdout.write(json.dumps(listed, indent=2) + "\n")
        return exit_codes.NOTHING_FOUND
    width = max(len(entry.name) for entry in REGISTRY)
    for rule in all_rules():
        sys.stdout.write(f"{rule.code}  {rule.name:<{width}}  {rule.summary}\n")
    return exit_codes.NOTHING_FOUND
