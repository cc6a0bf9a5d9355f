import pytest

from advisor.client.record_items import ITEMS, known_items, missing_items

COMMIT = "a" * 40


def some_facts(**changes):
    facts = {
        "code": {"commit": COMMIT, "because": ""},
        "configuration": {"told": None, "found": [{"name": "args", "values": {"lr": 1}}], "constants": {}, "variables": {}},
        "told": {"data_version": "v3", "seed": 7},
        "data": {"fingerprints": {}},
        "randomness": {"configured_seeds": {}, "generators": {}},
        "python": {"version": "3.11.1"},
        "torch": {"version": "2.13", "cuda_version": "12.8"},
    }
    return {**facts, **changes}


def some_slow(**changes):
    slow = {
        "code": {"commit": COMMIT, "changes": {"is_cut": False}},
        "packages": {"versions": {"torch": "2.13"}},
        "machine": {},
        "data_files": {},
    }
    return {**slow, **changes}


def names(facts, slow=None, **options):
    return [each.item for each in missing_items(facts, slow, **options)]


def test_a_whole_record_lacks_nothing():
    assert names(some_facts(), some_slow(), metric_names=("loss",)) == []
    known = known_items(some_facts(), some_slow(), run_id="r1", metric_names=("loss",))
    assert tuple(known) == ITEMS
    assert None not in known.values()
    assert known["environment"]["cuda"] == "12.8"


@pytest.mark.parametrize(
    ("changes", "item"),
    [
        ({"code": {"commit": None, "because": "no git repository was found"}}, "commit"),
        ({"configuration": {"told": None, "found": [], "constants": {}, "variables": {}}}, "config"),
        ({"told": {"data_version": None, "seed": 7}}, "data_version"),
        ({"told": {"data_version": "v3", "seed": None}}, "seed"),
    ],
)
def test_each_item_that_is_not_known_is_named_with_its_remedy(changes, item):
    slow = some_slow(code={}) if item == "commit" else some_slow()
    (missing,) = missing_items(some_facts(**changes), slow, metric_names=("loss",))
    assert missing.item == item
    assert missing.because
    assert ("attach(" in missing.remedy) == (item != "commit")


def test_what_the_sidecar_and_the_run_may_still_bring_is_not_missing_before_they_end():
    assert names(some_facts()) == []
    assert names(some_facts(), some_slow(packages=None)) == ["environment"]
    assert names(some_facts(), some_slow(), metric_names=()) == ["metrics"]


def test_nothing_known_at_all_is_all_missing():
    assert names({}, {}, metric_names=()) == ["commit", "config", "data_version", "seed", "environment", "metrics"]


def test_faults_of_parts_leave_their_items_unknown():
    broken = dict.fromkeys(("code", "configuration", "told", "data", "randomness", "torch"))
    assert names(broken) == ["commit", "config", "data_version", "seed"]


def test_the_seed_is_known_from_torch_or_from_the_configuration():
    unset = {"told": {"seed": None, "data_version": "v"}}
    seeded = {"generators": {"torch": {"is_seeded": True, "initial_seed": 5}}, "configured_seeds": {"args.seed": 6}}
    chance = {"generators": {"torch": {"is_seeded": False, "initial_seed": 2**60}}, "configured_seeds": {}}
    configured = {"generators": {"torch": {"is_seeded": False}}, "configured_seeds": {"args.seed": 6}}
    assert known_items(some_facts(**unset, randomness=seeded))["seed"] == 5
    assert known_items(some_facts(**unset, randomness=configured))["seed"] == 6
    assert known_items(some_facts(**unset, randomness=chance))["seed"] is None
    assert known_items(some_facts())["seed"] == 7
    assert known_items(some_facts(told={"seed": 0}))["seed"] == 0


def test_the_data_are_known_by_a_fingerprint_or_by_the_digests_of_their_files():
    unset = {"told": {"seed": 1, "data_version": None}}
    assert known_items(some_facts(**unset, data={"fingerprints": {"ds": "f"}}))["data_version"] == {"ds": "f"}
    files = {
        "/d/a.bin": {"sha256": "x", "sampled_sha256": None},
        "/d/b.bin": {"sha256": None, "sampled_sha256": "y"},
        "/d/c": {"sha256": None},
    }
    assert known_items(some_facts(**unset), some_slow(data_files=files))["data_version"] == {"/d/a.bin": "x", "/d/b.bin": "y"}


def test_a_commit_whose_changes_were_not_kept_whole_is_missing_in_part():
    slow = some_slow(code={"commit": COMMIT, "changes": {"is_cut": True}})
    (missing,) = missing_items(some_facts(), slow, metric_names=("loss",))
    assert missing.item == "commit"
    assert "commit them" in missing.remedy


def test_the_sidecar_may_know_the_commit_that_the_files_did_not_tell():
    facts = some_facts(code={"commit": None, "because": "reftable"})
    assert known_items(facts, some_slow())["commit"] == COMMIT
