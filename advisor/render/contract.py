"""A report as the JSON contract of the project: plain dictionaries, numbers as numbers, unknown as null."""

import json
import math
from typing import Any

from advisor.model.finding import Action, Finding, Observation
from advisor.model.memory import BLOCKS, MemoryLedger
from advisor.model.report import Diagnosis, Report
from advisor.model.run import RECORD_ITEMS, RunRecord
from advisor.model.step_time import PARTS, OperatorCost, StepBreakdown

Json = dict[str, Any]


def as_json(report: Report) -> str:
    """The report as one JSON document, ASCII only, so that any byte sequence of an input survives a pipe."""
    return json.dumps(as_contract(report), indent=2, allow_nan=False)


def as_contract(report: Report) -> Json:
    """The report as the contract's structure."""
    return {
        "diagnoses": [_diagnosis(diagnosis) for diagnosis in report.diagnoses],
        "memory": _memory(report.memory) if report.memory else None,
        "time": _time(report.time, report.operators) if report.time else None,
        "record": _record(report.record),
        "skipped_rules": [{"code": rule.code, "needs": list(rule.needs), "collect_with": rule.collect_with} for rule in report.skipped],
        "faulted_rules": [{"code": rule.code, "because": rule.because} for rule in report.faulted],
        "unreadable": [{"path": item.path, "because": item.because} for item in report.unreadable],
    }


def _record(record: RunRecord | None) -> Json:
    if record is None:
        return dict.fromkeys(RECORD_ITEMS) | {"missing": list(RECORD_ITEMS)}
    return {name: record.items.get(name) for name in RECORD_ITEMS} | {"missing": list(record.missing)}


def _diagnosis(diagnosis: Diagnosis) -> Json:
    finding = diagnosis.finding
    return {
        "rank": diagnosis.rank,
        "code": diagnosis.code,
        "name": diagnosis.name,
        "severity": finding.severity.name,
        "confidence": diagnosis.confidence,
        "statement": finding.statement,
        "evidence": [_observation(item) for item in finding.observations],
        "impact": {
            "recoverable_bytes": finding.impact.recoverable_bytes,
            "recoverable_seconds_per_step": _number(finding.impact.recoverable_seconds_per_step),
            "step_ratio": _number(finding.impact.step_ratio),
        },
        "actions": [_action(action) for action in _actions(finding)],
        "ruled_out": [{"code": item.code, "because": item.because} for item in finding.ruled_out],
    }


def _actions(finding: Finding) -> tuple[Action, ...]:
    """The remedies, and behind them what would settle the diagnosis: the contract has one list for both."""
    return (*finding.actions, finding.settles) if finding.settles else finding.actions


def _observation(item: Observation) -> Json:
    return {"statement": item.statement, "value": _number(item.value), "unit": item.unit, "source": str(item.source)}


def _action(action: Action) -> Json:
    return {
        "title": action.title,
        "change": action.change,
        "predicted": {
            "peak_bytes": action.predicted.peak_bytes,
            "fits": action.predicted.fits,
            "step_seconds": _number(action.predicted.step_seconds),
        },
        "verified_by": action.verified_by.value,
        "cost": action.cost,
    }


def _memory(ledger: MemoryLedger) -> Json:
    return {
        "device_bytes": ledger.device_bytes,
        "at": ledger.at.value,
        "ledger": {name: ledger.entries.get(name) for name in BLOCKS},
        "basis": ledger.basis.value,
    }


def _time(breakdown: StepBreakdown, operators: tuple[OperatorCost, ...]) -> Json:
    return {
        "window_seconds": _number(breakdown.window_seconds),
        "steps": breakdown.step_count,
        "step_seconds": _number(breakdown.step_seconds),
        "busy_ratio": _number(breakdown.busy_ratio),
        "breakdown": {name: _number(breakdown.parts.get(name)) for name in PARTS},
        "bound": breakdown.bound.value,
        "mfu_ratio": _number(breakdown.mfu_ratio),
        "operators": [_operator(operator) for operator in operators],
    }


def _operator(operator: OperatorCost) -> Json:
    return {
        "name": operator.name,
        "seconds": _number(operator.device_seconds),
        "calls": operator.calls,
        "flops": _number(operator.flops),
        "bytes": _number(operator.moved_bytes),
        "intensity": _number(operator.intensity),
        "attained_ratio": _number(operator.attained_ratio),
        "bound": operator.bound.value,
    }


def _number(value: float | None) -> float | int | None:
    """A JSON number: whole numbers without a point, what is not finite is unknown."""
    if value is None or not math.isfinite(value):
        return None
    return int(value) if isinstance(value, int) or (float(value).is_integer() and abs(value) < 2**53) else float(value)
