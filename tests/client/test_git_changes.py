import os

import pytest
from git_repositories import ENVIRONMENT, a_repository, git

from advisor.client import git_changes
from advisor.client.git_changes import facts_of_code
from advisor.client.redaction import REDACTED


def facts(folder, files=(), environment=ENVIRONMENT):
    return facts_of_code((str(folder),), environment, files=[str(each) for each in files])


def test_a_clean_tree_has_no_changes(tmp_path):
    commit = a_repository(tmp_path)
    found = facts(tmp_path, [tmp_path / "train.py"])
    assert found["commit"] == commit
    assert found["branch"] == "main"
    assert found["refusal"] is None
    assert found["tracked"] == {str(tmp_path / "train.py"): True}
    changes = found["changes"]
    assert not changes["is_dirty"]
    assert changes["diff"] == ""
    assert changes["diff_digest"] is None
    assert not changes["is_cut"]


def test_the_diff_that_is_kept_makes_the_tree_again(tmp_path):
    a_repository(tmp_path / "r", {"train.py": "a = 1\n", "old.py": "x = 1\ny = 2\n", "gone.py": "1\n"})
    (tmp_path / "r/train.py").write_text("a = 2\n")
    (tmp_path / "r/gone.py").unlink()
    git(tmp_path / "r", "mv", "old.py", "name with space.py")
    changes = facts(tmp_path / "r")["changes"]
    assert changes["is_dirty"]
    assert sorted(changes["status"]) == [" D gone.py", " M train.py", "R  name with space.py (was old.py)"]
    git(tmp_path, "clone", "-q", str(tmp_path / "r"), str(tmp_path / "again"))
    (tmp_path / "patch").write_text(changes["diff"])
    git(tmp_path / "again", "apply", str(tmp_path / "patch"))
    assert (tmp_path / "again/train.py").read_text() == "a = 2\n"
    assert not (tmp_path / "again/gone.py").exists()
    assert (tmp_path / "again/name with space.py").exists()


def test_equal_changes_have_equal_digests(tmp_path):
    for name in ("a", "b"):
        a_repository(tmp_path / name)
        (tmp_path / name / "train.py").write_text("print(2)\n")
    first, second = (facts(tmp_path / name)["changes"]["diff_digest"] for name in ("a", "b"))
    assert first == second
    (tmp_path / "b/train.py").write_text("print(3)\n")
    assert facts(tmp_path / "b")["changes"]["diff_digest"] != first


def test_new_sources_are_kept_and_other_new_files_named(tmp_path):
    a_repository(tmp_path)
    (tmp_path / "new.py").write_text("lr = 1\ntoken = 'abc'\n")
    (tmp_path / "data.bin").write_bytes(bytes(10))
    (tmp_path / "package").mkdir()
    (tmp_path / "package/module.py").write_text("x = 1\n")
    (tmp_path / "package/weights.pt").write_bytes(bytes(10))
    (tmp_path / "link.py").symlink_to("/etc/passwd")
    changes = facts(tmp_path, [tmp_path / "new.py"])["changes"]
    assert sorted(changes["untracked"]) == ["data.bin", "link.py", "new.py", "package/"]
    assert changes["new_files"] == {"new.py": f"lr = 1\ntoken = '{REDACTED}'\n", "package/module.py": "x = 1\n"}
    assert not changes["is_dirty"]
    assert facts(tmp_path, [tmp_path / "new.py"])["tracked"] == {str(tmp_path / "new.py"): False}


def test_secrets_of_the_diff_are_hidden_and_files_of_secrets_are_only_named(tmp_path):
    a_repository(tmp_path, {"train.py": "x = 1\n", ".env": "A=1\n", "conf/credentials.json": "{}\n", "key.pem": "x\n"})
    (tmp_path / "train.py").write_text("x = 1\nwandb.login(api_key='s3cret')\nurl = 'https://u:s3cret@h/'\n")
    (tmp_path / ".env").write_text("A=s3cret\n")
    (tmp_path / "conf/credentials.json").write_text('{"a": "s3cret"}\n')
    (tmp_path / "key.pem").write_text("s3cret\n")
    (tmp_path / "secrets.py").write_text("A = 's3cret'\n")
    found = facts(tmp_path)
    assert "s3cret" not in repr(found)
    assert f"api_key='{REDACTED}'" in found["changes"]["diff"]
    assert sorted(found["changes"]["status"]) == [" M .env", " M conf/credentials.json", " M key.pem", " M train.py"]


def test_remotes_are_kept_without_credentials(tmp_path):
    a_repository(tmp_path)
    git(tmp_path, "remote", "add", "origin", "https://me:s3cret@host/org/repo.git")
    git(tmp_path, "remote", "add", "fork", "git@host:me/repo.git")
    assert facts(tmp_path)["remotes"] == {"origin": f"https://{REDACTED}@host/org/repo.git", "fork": "git@host:me/repo.git"}


def test_a_long_diff_is_cut_and_said_to_be(tmp_path, monkeypatch):
    a_repository(tmp_path, {"data.csv": "1\n"})
    (tmp_path / "data.csv").write_text("22222222\n" * 5000)
    monkeypatch.setattr(git_changes, "MOST_DIFF_BYTES", 10_000)
    changes = facts(tmp_path)["changes"]
    assert len(changes["diff"]) == 10_000
    assert changes["is_cut"]
    assert changes["cut"] == ["the diff: it is longer than 10000 bytes"]
    assert changes["status"] == [" M data.csv"]


def test_many_new_files_are_cut_and_counted(tmp_path, monkeypatch):
    a_repository(tmp_path)
    monkeypatch.setattr(git_changes, "MOST_NAMES", 5)
    monkeypatch.setattr(git_changes, "MOST_NEW_TEXT_BYTES", 20)
    for number in range(9):
        (tmp_path / f"new{number}.py").write_text("x = 12345\n")
    changes = facts(tmp_path)["changes"]
    assert changes["untracked_count"] == 9
    assert len(changes["untracked"]) == 5
    assert len(changes["new_files"]) == 2
    assert len(changes["cut"]) == 2


def test_nothing_of_the_repositorys_own_runs_and_nothing_in_it_changes(tmp_path):
    a_repository(tmp_path, {"train.py": "x = 1\n", ".gitattributes": "*.py diff=trap\n"})
    trap = tmp_path / "trap.sh"
    trap.write_text(f"#!/bin/sh\ntouch {tmp_path}/sprung\n")
    trap.chmod(0o755)
    for setting in (
        "core.fsmonitor",
        "diff.external",
        "diff.trap.textconv",
        "diff.trap.command",
        "core.pager",
        "core.editor",
        "core.sshCommand",
    ):
        git(tmp_path, "config", setting, str(trap))
    for hook in ("post-index-change", "pre-commit", "post-checkout"):
        (tmp_path / ".git/hooks").mkdir(exist_ok=True)
        (tmp_path / ".git/hooks" / hook).symlink_to(trap)
    (tmp_path / "train.py").write_text("x = 2\n")
    os.utime(tmp_path / ".gitattributes")
    before = (tmp_path / ".git/index").stat().st_mtime_ns
    assert "+x = 2" in facts(tmp_path)["changes"]["diff"]
    assert not (tmp_path / "sprung").exists()
    assert (tmp_path / ".git/index").stat().st_mtime_ns == before
    assert not (tmp_path / ".git/index.lock").exists()


def test_variables_that_point_git_elsewhere_are_not_passed_on(tmp_path):
    commit = a_repository(tmp_path / "r")
    a_repository(tmp_path / "other", {"x": "y"})
    environment = {**ENVIRONMENT, "GIT_DIR": str(tmp_path / "other/.git"), "GIT_WORK_TREE": str(tmp_path / "other")}
    found = facts(tmp_path / "r", environment=environment)
    assert found["commit"] == commit
    assert not found["changes"]["is_dirty"]


def test_a_tree_without_a_commit_says_that_there_is_nothing_to_compare_with(tmp_path):
    git(tmp_path, "init", "-q")
    (tmp_path / "a.py").write_text("1\n")
    git(tmp_path, "add", "a.py")
    found = facts(tmp_path)
    assert found["commit"] is None
    assert found["changes"]["status"] == ["A  a.py"]
    assert found["changes"]["cut"] == ["the diff: there is no commit to compare with"]


def test_where_git_refuses_its_reason_is_kept(tmp_path):
    commit = a_repository(tmp_path)
    (tmp_path / ".git/config").write_text("[core\n")
    found = facts(tmp_path)
    assert found["commit"] == commit
    assert found["changes"] is None
    assert "config" in found["refusal"]


def test_without_git_the_commit_is_still_known(tmp_path):
    commit = a_repository(tmp_path)
    found = facts(tmp_path, environment={"PATH": "/nonexistent"})
    assert found["commit"] == commit
    assert found["changes"] is None
    assert found["refusal"]


def test_outside_of_a_repository_git_is_not_asked(tmp_path, monkeypatch):
    monkeypatch.setattr(git_changes, "output_of", None)
    found = facts(tmp_path)
    assert found["root"] is None
    assert found["because"] == "no git repository was found"


def test_the_state_of_a_submodule_is_part_of_the_diff(tmp_path):
    a_repository(tmp_path / "inner")
    a_repository(tmp_path / "outer")
    git(tmp_path / "outer", "submodule", "--quiet", "add", str(tmp_path / "inner"), "sub")
    git(tmp_path / "outer", "commit", "-q", "-m", "sub")
    git(tmp_path / "outer/sub", "commit", "-q", "--allow-empty", "-m", "more")
    moved = git(tmp_path / "outer/sub", "rev-parse", "HEAD")
    assert moved in facts(tmp_path / "outer")["changes"]["diff"]


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", "ключ = 1\n".encode(), b""])
def test_any_content_of_a_file_is_taken(tmp_path, content):
    a_repository(tmp_path)
    (tmp_path / "train.py").write_bytes(content)
    assert facts(tmp_path)["changes"]["is_dirty"]
