"""Write the list of rule modules into advisor/rules/registry.py; a test compares it with the files."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
REGISTRY = ROOT / "advisor" / "rules" / "registry.py"


def modules() -> list[str]:
    """One dotted name a rule file, sorted."""
    files = (ROOT / "advisor" / "rules").glob("*/*.py")
    holding = (file for file in files if "@rule(" in file.read_text(encoding="utf-8"))
    return sorted(".".join(file.relative_to(ROOT).with_suffix("").parts) for file in holding)


def registry_text() -> str:
    """The registry's text with the list of today's files."""
    listed = "".join(f'    "{module}",\n' for module in modules())
    text = REGISTRY.read_text(encoding="utf-8")
    return re.sub(r"(MODULES: tuple\[str, \.\.\.\] = \()[^)]*\)", rf"\1\n{listed})", text)


if __name__ == "__main__":
    REGISTRY.write_text(registry_text(), encoding="utf-8")
