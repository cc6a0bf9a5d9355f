"""The seven items of a run's record: which are known, and how to supply those that are not."""

from collections.abc import Mapping
from typing import Any, NamedTuple

ITEMS = ("run_id", "commit", "config", "data_version", "seed", "environment", "metrics")

REMEDIES = {
    "commit": "run the training from a git working tree, or set GIT_COMMIT where the image is built",
    "config": "attach(config=...): a dictionary, a dataclass, the parsed arguments",
    "data_version": "attach(data_version=...): a revision, a date or a hash of the data",
    "seed": "attach(seed=...), and pass the same number to torch.manual_seed, random.seed and numpy.random.seed",
    "environment": "let the sidecar run: it lists the installed packages",
    "metrics": "log(loss=..., ...) of what attach() gives back",
}
"""Item → what the user can do."""


class Missing(NamedTuple):
    """An item of the record that is not known, or not whole.

    Attributes:
        item: of ITEMS.
        because: what was looked for and not found.
        remedy: how to supply it.
    """

    item: str
    because: str
    remedy: str


def known_items(
    facts: Mapping[str, Any],
    slow: Mapping[str, Any] | None = None,
    *,
    run_id: str | None = None,
    metric_names: tuple[str, ...] | None = None,
) -> dict[str, Any]:
    """The seven items as far as they are known; None is what is not.

    Args:
        facts: of `facts_at_attach`, or read from run.json.
        slow: of `facts_of_folder`, or read from record.json; None before the sidecar has found it.
        run_id: the run's name.
        metric_names: what was logged; None where that is not known yet.
    """
    slow = slow or {}
    configuration = _part(facts, "configuration")
    return {
        "run_id": run_id,
        "commit": _part(facts, "code").get("commit") or _part(slow, "code").get("commit"),
        "config": {name: value for name, value in configuration.items() if value} or None,
        "data_version": _data_version(facts, slow),
        "seed": _seed(facts),
        "environment": _environment(facts, slow) if _part(slow, "packages") else None,
        "metrics": list(metric_names) if metric_names else None,
    }


def missing_items(
    facts: Mapping[str, Any], slow: Mapping[str, Any] | None = None, *, metric_names: tuple[str, ...] | None = None
) -> list[Missing]:
    """What is not known of the record, in the order of ITEMS; what may still come (the sidecar's part, the metrics) is not called missing.

    Args:
        facts: as in `known_items`.
        slow: as there; None while the sidecar is at work.
        metric_names: what was logged until the end; None while the run goes on.
    """
    known = known_items(facts, slow, run_id="known", metric_names=metric_names)
    pending = {*(("environment",) if slow is None else ()), *(("metrics",) if metric_names is None else ())}
    found = [Missing(item, _because(item, facts, slow), REMEDIES[item]) for item in ITEMS if known[item] is None and item not in pending]
    changes = _part(slow or {}, "code").get("changes") or {}
    if known["commit"] is not None and changes.get("is_cut"):
        found.insert(
            0, Missing("commit", "the changes since the commit were too large to be kept whole", "commit them before the next run")
        )
    return found


def _because(item: str, facts: Mapping[str, Any], slow: Mapping[str, Any] | None) -> str:
    if item == "commit":
        return str(_part(slow or {}, "code").get("because") or _part(facts, "code").get("because") or "no git repository was found")
    return {
        "config": "no arguments, dataclass or dictionary of settings was found among the callers' variables",
        "data_version": "no data set with a fingerprint was found, and no version was told",
        "seed": "none was told, none is in the configuration, and torch was not seeded before attach()",
        "environment": "the installed packages could not be listed",
        "metrics": "nothing was logged",
    }[item]


def _data_version(facts: Mapping[str, Any], slow: Mapping[str, Any]) -> Any:  # noqa: ANN401 - a text, or names with texts
    told = _part(facts, "told").get("data_version")
    if told:
        return told
    fingerprints = _part(facts, "data").get("fingerprints")
    if fingerprints:
        return dict(fingerprints)
    files = _part(slow, "data_files")
    digests = {path: each.get("sha256") or each.get("sampled_sha256") for path, each in files.items()}
    return {path: digest for path, digest in digests.items() if digest} or None


def _seed(facts: Mapping[str, Any]) -> int | None:
    told = _part(facts, "told").get("seed")
    if told is not None:
        return int(told)
    randomness = _part(facts, "randomness")
    torch = _part(_part(randomness, "generators"), "torch")
    if torch.get("is_seeded"):
        return int(torch["initial_seed"])
    configured = _part(randomness, "configured_seeds")
    return next((int(seed) for seed in configured.values()), None)


def _environment(facts: Mapping[str, Any], slow: Mapping[str, Any]) -> dict[str, Any]:
    torch = _part(facts, "torch")
    return {
        "python": _part(facts, "python").get("version"),
        "torch": torch.get("version"),
        "cuda": torch.get("cuda_version") or torch.get("hip_version"),
        "driver": _part(slow, "machine").get("gpu_driver_version"),
        "device": (torch.get("device") or {}).get("name"),
        "image": _part(_part(slow, "machine"), "container").get("image"),
        "packages": dict(_part(slow, "packages").get("versions") or {}),
    }


def _part(facts: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = facts.get(name)
    return found if isinstance(found, Mapping) else {}
