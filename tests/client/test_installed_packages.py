import importlib.metadata
import json
import sys

from git_repositories import a_repository

from advisor.client.installed_packages import facts_of_packages


def a_distribution(folder, name, version, **files):
    info = folder / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n\nName: not this\nVersion: 0\n")
    for file, content in files.items():
        (info / f"{file}.json").write_text(json.dumps(content))
    return info


def versions_in(*folders):
    return facts_of_packages([str(folder) for folder in folders])["versions"]


def test_the_answer_is_that_of_the_standard_library():
    expected = {}
    for found in importlib.metadata.distributions(path=sys.path):
        expected.setdefault(found.metadata["Name"], found.version)
    expected.pop(None, None)
    assert expected.keys() >= {"pytest"}
    assert versions_in(*sys.path) == expected


def test_old_kinds_of_metadata_are_read(tmp_path):
    (tmp_path / "develop.egg-info").mkdir()
    (tmp_path / "develop.egg-info/PKG-INFO").write_text("Name: develop\nVersion: 1.0\n")
    (tmp_path / "flat-2.0-py3.egg-info").write_text("Name: flat\nVersion: 2.0\n")
    (tmp_path / "zipped-3.0-py3.11.egg/EGG-INFO").mkdir(parents=True)
    (tmp_path / "zipped-3.0-py3.11.egg/EGG-INFO/PKG-INFO").write_text("Name: zipped\nVersion: 3.0\n")
    assert versions_in(tmp_path) == {"develop": "1.0", "flat": "2.0", "zipped": "3.0"}


def test_a_folder_without_its_metadata_still_tells_both_by_its_name(tmp_path):
    (tmp_path / "some_name-1.2+cpu.dist-info").mkdir()
    (tmp_path / "broken.dist-info").mkdir()
    (tmp_path / "empty-1.dist-info").mkdir()
    (tmp_path / "empty-1.dist-info/METADATA").write_bytes(b"\xff\x00\n")
    assert versions_in(tmp_path) == {"some_name": "1.2+cpu"}


def test_the_first_on_the_path_is_the_one_that_is_imported(tmp_path):
    a_distribution(tmp_path / "a", "torch", "2.13")
    a_distribution(tmp_path / "b", "torch", "2.0")
    found = facts_of_packages([str(tmp_path / "a"), str(tmp_path / "b"), str(tmp_path / "a"), "/nonexistent", str(tmp_path / "x.zip")])
    assert found["versions"] == {"torch": "2.13"}
    assert found["shadowed"] == [f"torch 2.0 in {tmp_path / 'b'}"]


def test_where_a_distribution_came_from_is_kept_without_credentials(tmp_path):
    vcs = {"url": "https://me:s3cret@host/r.git", "vcs_info": {"vcs": "git", "commit_id": "a" * 40}}
    a_distribution(tmp_path, "from-git", "1.0", direct_url=vcs)
    a_distribution(tmp_path, "from-index", "1.0")
    a_distribution(tmp_path, "odd", "1.0", direct_url=[1])
    origins = facts_of_packages([str(tmp_path)])["origins"]
    assert origins == {"from-git": {"url": "https://<redacted>@host/r.git", "commit": "a" * 40, "is_editable": False}}


def test_an_editable_install_tells_the_commit_of_its_folder(tmp_path):
    commit = a_repository(tmp_path / "src")
    a_distribution(tmp_path / "site", "mine", "0.1", direct_url={"url": f"file://{tmp_path / 'src'}", "dir_info": {"editable": True}})
    assert facts_of_packages([str(tmp_path / "site")])["origins"]["mine"]["commit"] == commit


def test_a_conda_environments_packages_are_listed(tmp_path):
    (tmp_path / "conda-meta").mkdir()
    (tmp_path / "conda-meta/cuda-toolkit-12.4-0.json").write_text("{}")
    (tmp_path / "conda-meta/history").write_text("")
    assert facts_of_packages([], executable=str(tmp_path / "bin/python"))["conda"] == ["cuda-toolkit-12.4-0"]
    assert facts_of_packages([], executable=None)["conda"] == []
