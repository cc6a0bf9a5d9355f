"""What the callers' variables are taken for. Classes of torch and others are played by empty ones of the same path."""

import argparse
import dataclasses
import sys
import types

import pytest

from advisor.client.frame_scan import MOST_FOUND, is_config_name, scan

HERE = "test_frame_scan.py"


def a_class(path, *bases):
    module, _, name = path.rpartition(".")
    return type(name, bases, {"__module__": module})


def found_by(frame):
    return scan([frame])


def names(found, kind):
    return [each.name for each in found.by_kind.get(kind, ())]


@dataclasses.dataclass
class GPTConfig:
    n_layer: int = 2


class Rates:
    lr = 0.1


def test_settings_are_known_by_their_class_whatever_their_name():
    def train():
        weird = argparse.Namespace(lr=1)  # noqa: F841 - found in the frame
        gptconf = GPTConfig()  # noqa: F841
        return found_by(sys._getframe())

    assert names(train(), "config") == ["weird", "gptconf"]


def test_settings_are_known_by_their_name():
    def train():
        cfg = {"lr": 1}  # noqa: F841
        train_config = types.SimpleNamespace(lr=1)  # noqa: F841
        hparams = Rates  # noqa: F841
        return found_by(sys._getframe())

    assert names(train(), "config") == ["cfg", "train_config", "hparams"]


def test_what_only_bears_the_name_of_settings_is_left():
    def train():
        args = (1, 2)  # noqa: F841
        config = None  # noqa: F841
        options = {1: 2}  # noqa: F841
        cfg = {"weight": object()}  # noqa: F841
        opts = [1]  # noqa: F841
        return found_by(sys._getframe())

    assert names(train(), "config") == []


def test_the_attributes_of_the_object_whose_method_runs_are_looked_at():
    class Runner:
        def __init__(self):
            self.args = argparse.Namespace(lr=1)
            self.train_loader = a_class("torch.utils.data.dataloader.DataLoader")()

        def train(self):
            return found_by(sys._getframe())

    found = Runner().train()
    assert names(found, "config") == ["self.args"]
    assert names(found, "loader") == ["self.train_loader"]
    assert found.by_kind["config"][0].where == f"train in {HERE}"


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("torch.utils.data.dataset.Dataset", "dataset"),
        ("datasets.arrow_dataset.Dataset", "dataset"),
        ("torch.optim.lr_scheduler.LRScheduler", "schedule"),
        ("torch.optim.optimizer.Optimizer", "optimizer"),
        ("torch.nn.modules.module.Module", "model"),
        ("numpy.memmap", "file"),
        ("transformers.training_args.TrainingArguments", "config"),
        ("omegaconf.dictconfig.DictConfig", "config"),
    ],
)
def test_instances_of_derived_classes_are_known_by_their_bases(path, kind):
    derived = type("Mine", (a_class(path),), {})

    def train():
        something = derived()  # noqa: F841
        return found_by(sys._getframe())

    assert names(train(), kind) == ["something"]


def test_a_trainers_own_attributes_are_looked_at():
    trainer_class = a_class("transformers.trainer.Trainer")

    def train():
        trainer = trainer_class()
        trainer.args = a_class("transformers.training_args.TrainingArguments")()
        trainer.train_dataset = a_class("datasets.arrow_dataset.Dataset")()
        return found_by(sys._getframe())

    found = train()
    assert names(found, "config") == ["self.args"]
    assert names(found, "dataset") == ["self.train_dataset"]


def test_numbers_and_words_of_a_function_are_kept_and_its_private_ones_are_not():
    def train():
        lr, name, flag, _private, LAYERS = 0.1, "adam", True, 3, 4  # noqa: F841, N806
        values = [1, 2]  # noqa: F841
        return found_by(sys._getframe())

    found = train()
    assert {(each.name, each.value) for each in found.scalars if each.where.startswith("train")} == {
        ("lr", 0.1),
        ("name", "adam"),
        ("flag", True),
    }
    assert ("LAYERS", 4) in {(each.name, each.value) for each in found.constants}


def test_constants_of_a_users_module_are_kept():
    code = compile("LR = 0.1\nLAYERS = (1, 2)\nlr = 3\nimport sys\nframe = sys._getframe()\n", "/project/train.py", "exec")
    space = {"__name__": "train"}
    exec(code, space)
    found = scan([space["frame"]])
    assert [(each.name, each.value, each.where) for each in found.constants] == [("LR", 0.1, "train.py"), ("LAYERS", (1, 2), "train.py")]
    assert [(each.name, each.value) for each in found.scalars] == [("lr", 3)]
    assert found.files == ["/project/train.py"]


def test_of_a_librarys_frames_only_known_classes_are_taken():
    code = compile(
        "def step():\n    LR = 0.1\n    config = {'lr': 1}\n    args = Namespace(lr=2)\n    return getframe()\n",
        "/x/site-packages/lib/a.py",
        "exec",
    )
    space = {"Namespace": argparse.Namespace, "getframe": sys._getframe, "CONSTANT": 1}
    exec(code, space)
    found = scan([space["step"]()])
    assert names(found, "config") == ["args"]
    assert found.constants == found.scalars == []
    assert found.files == []


def test_a_value_is_taken_once_and_not_too_many_of_a_kind():
    def train():
        config = args = argparse.Namespace(lr=1)  # noqa: F841
        return found_by(sys._getframe())

    assert len(names(train(), "config")) == 1

    class Runner:
        def train(self):
            return found_by(sys._getframe())

    runner = Runner()
    for number in range(100):
        setattr(runner, f"a{number}", argparse.Namespace())
    assert len(names(runner.train(), "config")) == MOST_FOUND


def test_a_great_many_variables_are_not_all_looked_at():
    code = compile("import sys\nframe = sys._getframe()\n", "/project/train.py", "exec")
    space = {f"a{number}": object() for number in range(100_000)}
    exec(code, space)
    assert scan([space["frame"]]).is_cut
    assert not scan([]).is_cut


def test_no_code_of_the_variables_runs():
    class Trap:
        @property
        def __class__(self):
            raise AssertionError

        def __getattribute__(self, name):
            raise AssertionError(name)

        def __eq__(self, other):
            raise AssertionError

        __hash__ = None

    def train():
        config = Trap()  # noqa: F841
        other = Trap()  # noqa: F841
        return found_by(sys._getframe())

    train()


@pytest.mark.parametrize(
    ("name", "is_one"),
    [
        ("args", True),
        ("train_cfg", True),
        ("CFG", True),
        ("self.config", True),
        ("hparams", True),
        ("_hparams", True),
        ("model", False),
        ("configure", False),
    ],
)
def test_names_of_settings(name, is_one):
    assert is_config_name(name) is is_one
