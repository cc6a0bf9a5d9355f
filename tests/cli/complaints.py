"""What every answer of `diagnose` must be, whatever it was given; a list of what is wrong with one."""

import json
import re
from pathlib import Path

import jsonschema

SCHEMA = json.loads((Path(__file__).parents[2] / "docs" / "report.schema.json").read_text("utf-8"))
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)

MOST_SECONDS = 2.0
MOST_BYTES = 500 * 1024**2

LARGEST_NUMBER = 2**63
"""Whole numbers beyond are read wrongly by most readers of JSON."""

CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


NO_NUMBER = re.compile(r".*(?<![\w.])-?(?:nan|inf)(?: (?:[KMGT]iB|bytes|s|ms|us)\b|%).*")
"""A figure of ours that is not finite; in quotations of the input "NaN" may stand."""


def complaints_about(run, path, *, gap=False, seconds=MOST_SECONDS, peak_bytes=MOST_BYTES):
    """Sentences on what is wrong with a run of `diagnose --format json PATH`; none where nothing is.

    Args:
        run: of `forked_run`.
        path: the input.
        gap: the input is known to be cut, and the report must say so.
        seconds / peak_bytes: what it may take.
    """
    found = []
    if run.code not in (0, 1, 2):
        return [f"exit code {run.code}: {run.err.strip()}"]
    if "Traceback" in run.err or "internal error" in run.err:
        found.append(f"a traceback: {run.err[-300:]}")
    if run.seconds > seconds:
        found.append(f"{run.seconds:.2f} s")
    if run.peak_bytes > peak_bytes:
        found.append(f"{run.peak_bytes / 1e6:.0f} MB")
    found += _about_errors(run, path)
    try:
        report = json.loads(run.out, parse_constant=lambda word: f"not JSON: {word}")
    except ValueError as error:
        return [*found, f"no JSON: {error}"]
    found += [f"against the contract: {error.message[:200]} at {list(error.path)}" for error in VALIDATOR.iter_errors(report)]
    found += _about_report(report, run)
    if gap and run.code != 2 and "\nWhat this rests on\n" not in run.shown.get("text", ""):
        found.append("a cut that the report does not tell")
    return found


def _about_errors(run, path):
    lines = run.err.splitlines()
    if run.code != 2:
        return [f"exit code {run.code} and on standard error: {lines}"] if lines else []
    if len(lines) != 1:
        return [f"{len(lines)} error lines: {lines}"]
    line = lines[0]
    found = []
    if str(path) not in line:
        found.append(f"an error that does not name the file: {line}")
    if line.count(str(path)) > 1:
        found.append(f"an error that names the file twice: {line}")
    if ";" not in line.replace(str(path), "") or line.rstrip().endswith(";"):
        found.append(f"an error without a remedy: {line}")
    if len(line) > 600:
        found.append(f"an error of {len(line)} characters: {line[:100]}")
    if CONTROLS.search(line):
        found.append(f"control characters in an error: {line!r}")
    return found


def _about_report(report, run):
    found = []
    if run.code == 2:
        return found if len(report["unreadable"]) == 1 else [f"exit code 2, unreadable: {report['unreadable']}"]
    if report["unreadable"]:
        found.append(f"exit code {run.code}, unreadable: {report['unreadable']}")
    if report["faulted_rules"]:
        found.append(f"faults: {report['faulted_rules']}")
    if run.code != bool(report["diagnoses"]):
        found.append(f"exit code {run.code} with {len(report['diagnoses'])} diagnoses")
    found += _about_time(report["time"])
    found += [f"{place} is {number}" for place, number in _numbers(report) if abs(number) >= LARGEST_NUMBER]
    for name, text in run.shown.items():
        if name != "json" and CONTROLS.search(text):
            found.append(f"control characters in {name}")
        if name != "json" and (number := NO_NUMBER.search(text)):
            found.append(f"a number that is none in {name}: {number.group()}")
    if any(len(line) > 80 for line in run.shown.get("text", "").splitlines()):
        found.append("a line of more than 80 columns")
    return found


def _about_time(time):
    if not time or time["busy_ratio"] is None:
        return []
    parts = [part for part in time["breakdown"].values() if part is not None]
    if parts and (abs(sum(parts) - 1) > 1e-6 or min(parts) < 0):
        return [f"the breakdown is no partition: {time['breakdown']}"]
    return []


def _numbers(value, place="report"):
    if isinstance(value, dict):
        for key, part in value.items():
            yield from _numbers(part, f"{place}.{key}")
    elif isinstance(value, list):
        for index, part in enumerate(value):
            yield from _numbers(part, f"{place}[{index}]")
    elif isinstance(value, int | float):
        yield place, value
