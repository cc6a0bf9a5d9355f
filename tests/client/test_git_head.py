import pytest
from git_repositories import a_repository, git

from advisor.client.git_head import head_of, is_commit


def head(folder, **environment):
    return head_of((str(folder),), environment)


def test_the_commit_and_branch_of_a_working_tree_are_those_that_git_says(tmp_path):
    commit = a_repository(tmp_path / "r", {"src/deep/train.py": "1"})
    assert head(tmp_path / "r" / "src" / "deep") == (str(tmp_path / "r"), commit, "main", "")


def test_packed_references_are_read(tmp_path):
    commit = a_repository(tmp_path)
    git(tmp_path, "tag", "v1")
    git(tmp_path, "pack-refs", "--all")
    assert not (tmp_path / ".git/refs/heads/main").exists()
    assert head(tmp_path)[1:] == (commit, "main", "")


def test_a_branch_whose_name_is_part_of_another_is_not_taken_for_it(tmp_path):
    first = a_repository(tmp_path)
    git(tmp_path, "branch", "x/main")
    git(tmp_path, "commit", "-q", "--allow-empty", "-m", "second")
    git(tmp_path, "pack-refs", "--all")
    assert head(tmp_path).commit == git(tmp_path, "rev-parse", "main") != first


def test_a_detached_head_has_no_branch(tmp_path):
    commit = a_repository(tmp_path)
    git(tmp_path, "checkout", "-q", "--detach")
    assert head(tmp_path)[1:] == (commit, None, "")


def test_a_linked_worktree_has_its_own_head_and_the_main_repositorys_references(tmp_path):
    a_repository(tmp_path / "r")
    git(tmp_path / "r", "worktree", "add", "-q", "-b", "other", str(tmp_path / "w"))
    git(tmp_path / "w", "commit", "-q", "--allow-empty", "-m", "second")
    commit = git(tmp_path / "w", "rev-parse", "HEAD")
    assert head(tmp_path / "w") == (str(tmp_path / "w"), commit, "other", "")
    git(tmp_path / "r", "pack-refs", "--all")
    assert head(tmp_path / "w").commit == commit


def test_a_submodule_is_a_repository_of_its_own(tmp_path):
    inner = a_repository(tmp_path / "inner")
    a_repository(tmp_path / "outer")
    git(tmp_path / "outer", "submodule", "--quiet", "add", str(tmp_path / "inner"), "sub")
    assert head(tmp_path / "outer/sub").commit == inner


def test_a_repository_with_names_of_sha256_is_read(tmp_path):
    git(tmp_path, "init", "-q", "--object-format=sha256")
    git(tmp_path, "commit", "-q", "--allow-empty", "-m", "first")
    assert len(head(tmp_path).commit) == 64


def test_a_branch_without_a_commit_is_said_to_have_none(tmp_path):
    git(tmp_path, "init", "-q")
    assert head(tmp_path)[1:] == (None, "main", "the branch main has no commit yet")


def test_a_symbolic_branch_is_followed(tmp_path):
    commit = a_repository(tmp_path)
    git(tmp_path, "symbolic-ref", "refs/heads/alias", "refs/heads/main")
    git(tmp_path, "symbolic-ref", "HEAD", "refs/heads/alias")
    assert head(tmp_path).commit == commit


def test_a_head_that_names_itself_ends(tmp_path):
    a_repository(tmp_path)
    (tmp_path / ".git/refs/heads/main").write_text("ref: refs/heads/main\n")
    assert head(tmp_path).commit is None


@pytest.mark.parametrize("content", [b"", b"\0" * 100, b"ref: ../../../etc/passwd\n", b"ref: /etc/passwd\n", b"\xff\xfe", b"ref:", b"abc"])
def test_a_broken_head_is_unknown(tmp_path, content):
    a_repository(tmp_path)
    (tmp_path / ".git/HEAD").write_bytes(content)
    found = head(tmp_path)
    assert found.root == str(tmp_path)
    assert found.commit is None
    assert found.because


@pytest.mark.parametrize("content", ["", "gitdir: /nowhere", "gitdir:", "something else"])
def test_a_broken_pointer_is_unknown(tmp_path, content):
    (tmp_path / ".git").write_text(content)
    assert head(tmp_path).commit is None


def test_the_reftable_format_is_left_to_git(tmp_path):
    a_repository(tmp_path)
    (tmp_path / ".git/HEAD").write_text("ref: refs/heads/.invalid\n")
    (tmp_path / ".git/reftable").mkdir()
    assert "reftable" in head(tmp_path).because


def test_the_first_folder_in_a_repository_is_taken(tmp_path):
    commit = a_repository(tmp_path / "r")
    (tmp_path / "plain").mkdir()
    assert head_of((str(tmp_path / "plain"), str(tmp_path / "r")), {}).commit == commit


def test_without_a_repository_the_environment_may_name_the_commit(tmp_path):
    found = head(tmp_path, GIT_COMMIT="A" * 40)
    assert found.commit == "a" * 40
    assert "GIT_COMMIT" in found.because
    assert head(tmp_path, GIT_COMMIT="main").commit is None
    assert head(tmp_path) == (None, None, None, "no git repository was found")


@pytest.mark.parametrize(
    ("text", "is_one"), [("a" * 40, True), ("0" * 64, True), ("a" * 39, False), ("g" * 40, False), ("A" * 40, False), ("", False)]
)
def test_what_is_the_name_of_a_commit(text, is_one):
    assert is_commit(text) is is_one
