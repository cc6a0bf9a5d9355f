"""What is known of a run at the attachment, at once: under a millisecond for a typical script, and never an error."""

import os
import sys
import time
from collections.abc import Callable, Iterable
from types import FrameType
from typing import Any

from advisor.client.configuration import facts_of_configuration, seeds_in
from advisor.client.data_facts import facts_of_data
from advisor.client.environment_variables import facts_of_environment, snapshot_of
from advisor.client.frame_scan import Scan, scan
from advisor.client.git_head import head_of
from advisor.client.model_facts import facts_of_models, facts_of_optimizers, facts_of_schedules
from advisor.client.own_code import folders_of_code
from advisor.client.plain_values import PlainValues
from advisor.client.randomness import facts_of_randomness
from advisor.client.record_items import missing_items
from advisor.client.redaction import redact_argv
from advisor.client.torch_settings import facts_of_torch, loaded_versions

MOST_ARGUMENTS = 400
LONGEST_ARGUMENT = 4000

NOTEBOOK_NAMES = ("__vsc_ipynb_file__", "__session__")
"""Variables in which VS Code and Jupyter leave the notebook's path."""

RANK_VARIABLES = {
    "rank": ("RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK"),
    "world_size": ("WORLD_SIZE", "SLURM_NTASKS", "OMPI_COMM_WORLD_SIZE"),
    "local_rank": ("LOCAL_RANK", "SLURM_LOCALID", "OMPI_COMM_WORLD_LOCAL_RANK"),
    "local_world_size": ("LOCAL_WORLD_SIZE", "SLURM_NTASKS_PER_NODE", "OMPI_COMM_WORLD_LOCAL_SIZE"),
    "node_rank": ("GROUP_RANK", "NODE_RANK", "SLURM_NODEID"),
}

NO_SCAN = Scan({}, [], [], [], is_cut=False)


def facts_at_attach(  # noqa: PLR0913 - what attach() is told
    *,
    model: Any = None,  # noqa: ANN401 - a module, or several
    optimizer: Any = None,  # noqa: ANN401 - an optimizer, or several
    config: Any = None,  # noqa: ANN401 - whatever the user keeps settings in
    data_version: str | None = None,
    seed: int | None = None,
    frames: Iterable[FrameType] = (),
) -> dict[str, Any]:
    """Everything of the record that costs next to nothing, as values of JSON with secrets hidden.

    Args:
        model: one or several (a list or tuple); where None, those among the callers' variables.
        optimizer: the same.
        config: the settings, where the user told them.
        data_version: the same of the data.
        seed: the same of the seed.
        frames: of the callers, innermost first (`frame_locals.callers`).

    Returns:
        `process`, `python`, `packages`, `torch`, `ranks`, `environment`, `code`, `told`, `configuration`, `models`, `optimizers`,
        `schedules`, `data`, `randomness`, each as its module says; `missing`, items of the record that are not known, with remedies;
        `limits`, how much was cut and hidden; `faults`, parts that could not be found, with the class of the error; `seconds` that it
        took. Can be called again later: what was loaded or seeded since is then seen.
    """
    began = time.perf_counter()
    values = PlainValues()
    parts = _Parts()
    scanned: Scan = parts.made("scan", lambda: scan(frames)) or NO_SCAN
    environment: dict[str, str] = parts.made("environment", lambda: snapshot_of(os.environ)) or {}
    torch = sys.modules.get("torch")
    found = scanned.by_kind
    facts = parts.facts
    parts.add("process", lambda: _process(scanned, values, environment))
    parts.add("python", lambda: _python(environment))
    parts.add("packages", loaded_versions)
    parts.add("torch", facts_of_torch)
    parts.add("ranks", lambda: _ranks(environment))
    parts.add("environment", lambda: facts_of_environment(environment))
    parts.add("code", lambda: _code(scanned, environment))
    parts.add("told", lambda: {"data_version": values.read(data_version, "data_version"), "seed": values.read(seed, "seed")})
    parts.add("configuration", lambda: facts_of_configuration(config, scanned, values))
    models = [each.value for each in found.get("model", ())] if model is None else _several(model)
    parts.add("models", lambda: facts_of_models(models, torch, values))
    optimizers = [each.value for each in found.get("optimizer", ())] if optimizer is None else _several(optimizer)
    parts.add("optimizers", lambda: facts_of_optimizers(optimizers, values))
    parts.add("schedules", lambda: facts_of_schedules([each.value for each in found.get("schedule", ())], values))
    parts.add("data", lambda: facts_of_data(scanned, values))
    parts.add("randomness", lambda: _randomness(seed, facts.get("configuration")))
    parts.add("missing", lambda: [each._asdict() for each in missing_items(facts)])
    facts["limits"] = {"cut_count": values.cut_count, "redacted_count": values.redacted_count, "is_scan_cut": scanned.is_cut}
    facts["faults"] = parts.faults
    facts["seconds"] = time.perf_counter() - began
    return facts


class _Parts:
    """Parts found one by one: a fault in one leaves the others."""

    def __init__(self) -> None:
        self.facts: dict[str, Any] = {}
        self.faults: dict[str, str] = {}

    def made(self, name: str, find: Callable[[], Any]) -> Any:  # noqa: ANN401 - whatever it finds
        try:
            return find()
        except Exception as fault:  # noqa: BLE001 - whatever it is, the training goes on; its text might hold a secret
            self.faults[name] = type(fault).__name__
            return None

    def add(self, name: str, find: Callable[[], Any]) -> None:
        self.facts[name] = self.made(name, find)


def _process(scanned: Scan, values: PlainValues, environment: dict[str, str]) -> dict[str, Any]:
    arguments = list(sys.argv[:MOST_ARGUMENTS])
    values.cut_count += max(0, len(sys.argv) - MOST_ARGUMENTS)
    return {
        "argv": [each[:LONGEST_ARGUMENT] for each in redact_argv(arguments)],
        "interpreter_argv": [each[:LONGEST_ARGUMENT] for each in redact_argv(sys.orig_argv[:MOST_ARGUMENTS])],
        "executable": sys.executable,
        "cwd": _cwd(),
        "script": _script(),
        "module": _module(),
        "notebook": _notebook(environment),
        "code_files": scanned.files,
        "search_path": [each for each in sys.path if type(each) is str],
        "pid": os.getpid(),
        "parent_pid": os.getppid(),
        "host": os.uname().nodename,
    }


def _cwd() -> str | None:
    try:
        return os.getcwd()  # noqa: PTH109 - a text
    except OSError:  # it was removed
        return None


def _main_names() -> dict[str, Any]:
    main = sys.modules.get("__main__")
    return vars(main) if main is not None else {}


def _script() -> str | None:
    path = _main_names().get("__file__")
    return os.path.abspath(path) if isinstance(path, str) else None  # noqa: PTH100 - a text


def _module() -> str | None:
    """The name given to `python -m`."""
    spec = _main_names().get("__spec__")
    name = getattr(spec, "name", None)
    return name if isinstance(name, str) else None


def _notebook(environment: dict[str, str]) -> str | None:
    """The notebook's path where its program tells it; "unknown" in a notebook that does not; None elsewhere."""
    if "ipykernel" not in sys.modules and "google.colab" not in sys.modules:
        return None
    names = _main_names()
    told = next((names[name] for name in NOTEBOOK_NAMES if isinstance(names.get(name), str)), None)
    return told or environment.get("JPY_SESSION_NAME") or "unknown"


def _python(environment: dict[str, str]) -> dict[str, Any]:
    return {
        "version": ".".join(map(str, sys.version_info[:3])),
        "build": sys.version,
        "implementation": sys.implementation.name,
        "platform": sys.platform,
        "machine": os.uname().machine,
        "optimize": sys.flags.optimize,
        "hash_seed": environment.get("PYTHONHASHSEED"),
        "is_isolated": bool(sys.flags.isolated),
        "is_free_threaded": not getattr(sys, "_is_gil_enabled", lambda: True)(),
    }


def _ranks(environment: dict[str, str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, variables in RANK_VARIABLES.items():
        text = next((environment[each] for each in variables if each in environment), "")
        found[name] = int(text) if text.isdecimal() else None
    distributed = sys.modules.get("torch.distributed")
    found["backend"] = None
    if distributed is not None and hasattr(distributed, "is_initialized") and distributed.is_initialized():
        found.update(rank=distributed.get_rank(), world_size=distributed.get_world_size(), backend=str(distributed.get_backend()))
    return found


def _code(scanned: Scan, environment: dict[str, str]) -> dict[str, Any]:
    return head_of(folders_of_code(_script(), scanned.files, _cwd()), environment)._asdict()


def _several(value: Any) -> list[Any]:  # noqa: ANN401 - one or several
    return list(value) if type(value) in (list, tuple) else [value]


def _randomness(told: int | None, configuration: dict[str, Any] | None) -> dict[str, Any]:
    configured = seeds_in(configuration) if configuration else {}
    seeds = [seed for seed in (told, *configured.values()) if type(seed) is int]
    return {"configured_seeds": configured, "generators": facts_of_randomness(seeds)}
