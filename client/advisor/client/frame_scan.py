"""One pass over the variables of an attachment's callers: which are settings, loaders, data sets, schedules, plain numbers."""

import os
from collections.abc import Iterable
from itertools import islice
from types import FrameType
from typing import Any, NamedTuple

from advisor.client.frame_locals import variables_of
from advisor.client.object_fields import class_path, instance_dict, mro, static_attribute
from advisor.client.own_code import is_library

CONFIG_CLASSES = frozenset(
    {
        *("argparse.Namespace", "transformers.training_args.TrainingArguments", "absl.flags._flagvalues.FlagValues"),
        *("omegaconf.dictconfig.DictConfig", "ml_collections.config_dict.config_dict.ConfigDict"),
    }
)
"""Classes whose instances are settings, whatever they are called and wherever they are found."""

CONFIG_WORDS = frozenset(
    {
        *(
            "args",
            "arguments",
            "cfg",
            "conf",
            "config",
            "configs",
            "configuration",
            "flags",
            "hparam",
            "hparams",
            "hps",
            "hp",
            "opt",
            "opts",
        ),
        *("hyperparameters", "hyperparams", "hyper", "options", "settings", "cli"),
    }
)
"""Last words of the names of settings: `args`, `train_cfg`, `self.config`."""

CONFIG_ENDINGS = ("config", "args", "arguments", "hparams", "hyperparameters", "settings", "options", "cfg", "conf")
"""Ends of the names of their classes: `gptconf = GPTConfig(...)`."""

KINDS = {
    "torch.utils.data.dataloader.DataLoader": "loader",
    "torch.utils.data.dataset.Dataset": "dataset",
    "datasets.arrow_dataset.Dataset": "dataset",
    "datasets.iterable_dataset.IterableDataset": "dataset",
    "datasets.dataset_dict.DatasetDict": "dataset",
    "numpy.memmap": "file",
    "torch.optim.lr_scheduler.LRScheduler": "schedule",
    "torch.optim.lr_scheduler._LRScheduler": "schedule",
    "torch.optim.optimizer.Optimizer": "optimizer",
    "torch.nn.modules.module.Module": "model",
    "transformers.trainer.Trainer": "trainer",
    "types.ModuleType": "none",
    "module": "none",
    "function": "none",
    "builtin_function_or_method": "none",
    "torch.Tensor": "none",
    **dict.fromkeys(CONFIG_CLASSES, "config"),
}
"""What an instance of a class, or of one derived from it, is."""

SCALARS = (bool, int, float, str)
CONSTANTS = (*SCALARS, tuple, list, dict)

MOST_VARIABLES = 4000
"""Looked at in all: about 1 ms."""
MOST_FOUND = 16
"""Of each kind."""
MOST_SCALARS = 300
MOST_LOOKED_AT = 16
"""Items of a dictionary by which it is known as settings."""


class Variable(NamedTuple):
    """A value, what it is called, and where: "main in train.py"."""

    name: str
    value: Any
    where: str


class Scan(NamedTuple):
    """What the callers' variables are, each list innermost first; keeps its objects alive: use it and let it go.

    Attributes:
        by_kind: "config", "loader", "dataset", "file", "schedule", "optimizer", "model", "trainer" → variables.
        constants: variables of modules in UPPER_CASE.
        scalars: other numbers, switches and texts, of the user's functions and of the main module.
        files: of the user's code among the callers.
        is_cut: whether there was more than is looked at.
    """

    by_kind: dict[str, list[Variable]]
    constants: list[Variable]
    scalars: list[Variable]
    files: list[str]
    is_cut: bool


def scan(frames: Iterable[FrameType]) -> Scan:
    """Look through the callers' variables, and through the globals of the modules that are the user's own."""
    return _Pass().over(frames)


class _Pass:
    """The state of one scan."""

    def __init__(self) -> None:
        self.found = Scan({}, [], [], [], False)
        self._kinds: dict[type, str] = {}
        self._seen: set[int] = set()
        self._left = MOST_VARIABLES

    def over(self, frames: Iterable[FrameType]) -> Scan:
        modules: set[int] = set()
        for frame in frames:
            path = frame.f_code.co_filename
            is_users = not is_library(path)
            place = os.path.basename(path)  # noqa: PTH119 - a text
            for name, value in variables_of(frame):
                self._look(name, value, f"{frame.f_code.co_name} in {place}", is_users=is_users, is_module=False)
            if is_users and id(frame.f_globals) not in modules:
                modules.add(id(frame.f_globals))
                if path not in self.found.files:
                    self.found.files.append(path)
                # Copied at once: another thread may import something meanwhile.
                for name, value in list(frame.f_globals.items()):
                    self._look(name, value, place, is_users=True, is_module=True)
        return self.found._replace(is_cut=self._left <= 0)

    def _look(self, name: str, value: Any, where: str, *, is_users: bool, is_module: bool) -> None:  # noqa: ANN401
        self._left -= 1
        if self._left <= 0 or name.startswith("__"):
            return
        kind = type(value)
        if is_users and kind in CONSTANTS and self._is_plain(name, value, where, is_module=is_module):
            return
        what = self._kinds.get(kind)
        if what is None:
            what = self._kinds[kind] = _kind_of(kind)
        if not what and is_users and (is_config_name(name) or what_ends_as_config(kind)) and _may_be_config(value):
            what = "config"
        if what and what != "none" and id(value) not in self._seen:
            self._seen.add(id(value))
            kept = self.found.by_kind.setdefault(what, [])
            if len(kept) < MOST_FOUND:
                kept.append(Variable(name, value, where))
            if what == "trainer" or (name == "self" and is_users):
                self._look_into(value, where, is_users=is_users)
        elif name == "self" and is_users and not what:
            self._look_into(value, where, is_users=is_users)

    def _look_into(self, owner: Any, where: str, *, is_users: bool) -> None:  # noqa: ANN401 - any object
        """The attributes of the object whose method is running: `self.args`, `self.train_dataset`."""
        for name, value in list(instance_dict(owner).items())[:MOST_SCALARS]:
            if name != "self" and type(name) is str and type(value) not in SCALARS:
                self._look(f"self.{name}", value, where, is_users=is_users, is_module=False)

    def _is_plain(self, name: str, value: Any, where: str, *, is_module: bool) -> bool:  # noqa: ANN401
        """Keep a constant or a scalar; whether the variable needs no other look."""
        if name.isupper() and (is_module or type(value) in SCALARS):
            if len(self.found.constants) < MOST_SCALARS:
                self.found.constants.append(Variable(name, value, where))
            return True
        if type(value) not in SCALARS:
            return False
        if not name.startswith("_") and len(self.found.scalars) < MOST_SCALARS:
            self.found.scalars.append(Variable(name, value, where))
        return True


def _kind_of(kind: type) -> str:
    return next((KINDS[path] for base in mro(kind) if (path := class_path(base)) in KINDS), "")


def is_config_name(name: str) -> bool:
    """Whether a variable's name is that of settings."""
    return name.lower().replace(".", "_").rpartition("_")[2] in CONFIG_WORDS


def what_ends_as_config(kind: type) -> bool:
    """Whether a class's name is that of settings, and its instances declare their fields."""
    if not class_path(kind).lower().endswith(CONFIG_ENDINGS):
        return False
    return static_attribute(kind, "__dataclass_fields__") is not None or static_attribute(kind, "__attrs_attrs__") is not None


def _may_be_config(value: Any) -> bool:  # noqa: ANN401 - any object
    """Whether a thing with such a name holds settings: a dictionary with names for keys, a class or an object with attributes."""
    kind = type(value)
    if issubclass(kind, dict):
        first = list(islice(dict.items(value), MOST_LOOKED_AT))
        return all(type(key) is str for key, _ in first) and any(type(inner) in CONSTANTS for _, inner in first)
    if issubclass(kind, type):
        return not class_path(value).startswith("builtins")
    return kind not in (list, tuple, set, frozenset) and bool(instance_dict(value) or static_attribute(kind, "__dataclass_fields__"))
