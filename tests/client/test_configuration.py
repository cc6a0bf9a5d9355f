import argparse
import dataclasses
import enum

from advisor.client.configuration import facts_of_configuration, seeds_in
from advisor.client.frame_scan import Scan, Variable
from advisor.client.plain_values import PlainValues
from advisor.client.redaction import REDACTED


def a_scan(*configs, constants=(), scalars=()):
    by_kind = {"config": [Variable(name, value, "main in train.py") for name, value in configs]}
    return Scan(
        by_kind, [Variable(*each, "train.py") for each in constants], [Variable(*each, "train.py") for each in scalars], [], is_cut=False
    )


def facts(told=None, *configs, **options):
    return facts_of_configuration(told, a_scan(*configs, **options), PlainValues())


class Precision(enum.Enum):
    BF16 = "bf16"


@dataclasses.dataclass
class Inner:
    betas: tuple = (0.9, 0.95)


@dataclasses.dataclass
class Config:
    lr: float = 3e-4
    precision: Precision = Precision.BF16
    inner: Inner = dataclasses.field(default_factory=Inner)
    hub_token: str = "abc"


def test_what_was_told_is_kept_with_its_class():
    assert facts(Config())["told"] == {
        "class": f"{__name__}.Config",
        "values": {"lr": 3e-4, "precision": "bf16", "inner": {"betas": [0.9, 0.95]}, "hub_token": REDACTED},
    }
    assert facts({"lr": 1})["told"] == {"class": "dict", "values": {"lr": 1}}
    assert facts(argparse.Namespace(lr=1))["told"]["values"] == {"lr": 1}
    assert facts()["told"] is None


def test_what_was_found_is_kept_with_its_name_and_place():
    assert facts(None, ("args", argparse.Namespace(lr=1)))["found"] == [
        {"name": "args", "where": "main in train.py", "class": "argparse.Namespace", "values": {"lr": 1}}
    ]


def test_a_class_of_settings_gives_its_attributes_and_those_of_its_bases():
    class Base:
        epochs = 3
        lr = 1.0

    class CFG(Base):
        lr = 0.1
        names = ["a"]  # noqa: RUF012
        _private = 2

        def method(self):
            raise AssertionError

        @property
        def computed(self):
            raise AssertionError

    assert facts(CFG)["told"]["values"] == {"epochs": 3, "lr": 0.1, "names": ["a"], "_private": 2}
    instance = CFG()
    instance.lr = 0.5
    instance.model = object()
    assert facts(instance)["told"]["values"] == {"epochs": 3, "lr": 0.5, "names": ["a"], "_private": 2}


def test_constants_and_variables_stand_by_their_place():
    found = facts(
        constants=[("LR", 0.1), ("WANDB_API_KEY", "abc"), ("TABLE", list(range(5000))), ("CODE", "a = 1\nb = 2")],
        scalars=[("dtype", "bfloat16"), ("n", 3)],
    )
    assert found["constants"] == {"train.py": {"LR": 0.1, "WANDB_API_KEY": REDACTED}}
    assert found["variables"] == {"train.py": {"dtype": "bfloat16", "n": 3}}


def test_sentences_are_no_settings():
    found = facts(scalars=[("text", "Dear Sir, we write"), ("long", "x" * 500), ("empty", ""), ("path", "data/train.bin")])
    assert found["variables"] == {"train.py": {"path": "data/train.bin"}}


def test_seeds_are_found_by_their_names_the_told_ones_first():
    found = facts(
        {"trainer": {"seed": 1}, "SEED": 2},
        ("args", argparse.Namespace(manual_seed=3, seed=None)),
        constants=[("SEED", 4)],
        scalars=[("seed", 5)],
    )
    assert seeds_in(found) == {"config.trainer.seed": 1, "config.SEED": 2, "args.manual_seed": 3, "train.py.SEED": 4, "train.py.seed": 5}


def test_switches_and_fractions_are_no_seeds():
    assert seeds_in(facts({"seed": True, "random_seed": 0.5, "seeds": 3})) == {}
    assert seeds_in(facts([1, 2])) == {}
