"""Write advisor/rules/entries.py, the table of all rules with their needs; a test compares it with the files."""

from pathlib import Path

from advisor.rules.registry import rule_of

ROOT = Path(__file__).resolve().parents[1]
TABLE = ROOT / "advisor" / "rules" / "entries.py"

HEADER = '''"""The table of all rules, written by `make docs`: code, name, module, required and optional needs."""

# fmt: off
ENTRIES: tuple[tuple[str, str, str, tuple[str, ...], tuple[str, ...]], ...] = (
'''


def modules() -> list[str]:
    """One dotted name a rule file."""
    files = (ROOT / "advisor" / "rules").glob("*/*.py")
    holding = (file for file in files if "@rule(" in file.read_text(encoding="utf-8"))
    return [".".join(file.relative_to(ROOT).with_suffix("").parts) for file in holding]


def table_text() -> str:
    """The table's text for today's files."""
    rows = []
    for module in modules():
        rule = rule_of(module)
        required = tuple(need.kind for need in rule.needs if not need.optional)
        optional = tuple(need.kind for need in rule.needs if need.optional)
        rows.append((rule.code, rule.name, module, required, optional))
    return HEADER + "".join(f"    {row!r},\n".replace("'", '"') for row in sorted(rows)) + ")\n"


if __name__ == "__main__":
    TABLE.write_text(table_text(), encoding="utf-8")
