"""A rule's page in markdown: its docstring, what it needs, and its own case as the example."""

from advisor.engine.advise import advise
from advisor.engine.collecting import needs_in_words
from advisor.rules.rule import Rule


def page_of(rule: Rule) -> str:
    """The page that `advisor-cli explain` prints and docs/rules/ holds."""
    return f"# {rule.code} {rule.name}\n\n{rule.page}\n\n## What it needs\n\n{_needs(rule)}\n\n## Example\n\n{_example(rule)}"


def _needs(rule: Rule) -> str:
    required = tuple(need.kind for need in rule.needs if not need.optional)
    helpful = tuple(need.kind for need in rule.needs if need.optional)
    lines = []
    if required:
        lines.append(f"Needs {' and '.join(needs_in_words(required)[0])}.")
    if helpful:
        names = needs_in_words(helpful)[0]
        lines.append(f"{'Is surer with' if required else 'Needs one of:'} {', '.join(names)}.")
    return " ".join(lines)


def _example(rule: Rule) -> str:
    report = advise(rule.fires(), (rule,))
    diagnosis = report.diagnoses[0]
    finding = diagnosis.finding
    lines = [f"{finding.severity.name.lower()}, {round(diagnosis.confidence * 100)}% sure: {finding.statement}", ""]
    lines += [f"- {item.statement} ({item.source})" for item in finding.observations]
    if finding.actions:
        lines += ["", *(f"{place}. {action.title}: `{action.change}`" for place, action in enumerate(finding.actions, start=1))]
    return "\n".join(lines) + "\n"
