"""`advisor-cli explain`: the page of one rule, with its own case as the example."""

import argparse
import difflib
import sys

from advisor.cli import exit_codes
from advisor.engine.rule_page import page_of
from advisor.model.errors import WrongUsage
from advisor.rules.registry import REGISTRY, find


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command's options."""
    parser = commands.add_parser("explain", description="Print the page of a rule: what it means, how it is recognized, what to do.")
    parser.add_argument("rule", metavar="CODE_OR_NAME", help="for example MEM203, or logits-upcast")


def run(arguments: argparse.Namespace) -> int:
    """Print the page."""
    rule = find(arguments.rule)
    if rule is None:
        known = [word for one in REGISTRY for word in (one.code, one.name)]
        near = difflib.get_close_matches(arguments.rule.lower(), [word.lower() for word in known], n=3)
        remedy = f"did you mean {' or '.join(near)}?" if near else "advisor-cli rules lists them all"
        raise WrongUsage(f"explain: no rule is called {arguments.rule}", remedy)
    sys.stdout.write(page_of(rule))
    return exit_codes.NOTHING_FOUND
