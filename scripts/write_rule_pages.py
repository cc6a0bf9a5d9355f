"""Write docs/rules/: one page a rule and the list of them; a test compares them with the rules."""

from pathlib import Path

from advisor.engine.rule_page import page_of
from advisor.rules.registry import all_rules

PAGES = Path(__file__).resolve().parents[1] / "docs" / "rules"


def pages() -> dict[str, str]:
    """File name → text, of all pages."""
    listed = "".join(f"| [{rule.code}]({rule.code}.md) | {rule.name} | {rule.summary} |\n" for rule in all_rules())
    index = f"# Rules\n\n| code | name | what it says |\n|---|---|---|\n{listed}"
    return {"README.md": index} | {f"{rule.code}.md": page_of(rule) for rule in all_rules()}


if __name__ == "__main__":
    PAGES.mkdir(parents=True, exist_ok=True)
    wanted = pages()
    for stale in set(PAGES.glob("*.md")) - {PAGES / name for name in wanted}:
        stale.unlink()
    for name, text in wanted.items():
        (PAGES / name).write_text(text, encoding="utf-8")
