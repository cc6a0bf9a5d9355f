import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = sorted([*(ROOT / "advisor").rglob("*.py"), *(ROOT / "client").rglob("*.py")])
BAGS = {"utils", "util", "common", "helpers", "helper", "misc", "types", "constants", "base"}
MOST_LINES = 400


def test_no_init_file_stands_directly_in_a_namespace_root():
    assert not (ROOT / "advisor" / "__init__.py").exists()
    assert not (ROOT / "client" / "advisor" / "__init__.py").exists()


def test_no_module_is_named_by_kind_instead_of_subject():
    assert [str(path) for path in SOURCES if path.stem in BAGS] == []


def test_no_source_file_is_longer_than_one_subject():
    assert [path.name for path in SOURCES if len(path.read_text("utf-8").splitlines()) > MOST_LINES] == []


@pytest.mark.parametrize("package", sorted(path.parent.name for path in (ROOT / "advisor").glob("*/__init__.py")))
def test_every_package_ships_its_types(package):
    assert (ROOT / "advisor" / package / "py.typed").exists()


def test_torch_is_imported_by_collect_alone():
    importing = []
    for path in SOURCES:
        names = {
            name.split(".")[0]
            for node in ast.walk(ast.parse(path.read_text("utf-8")))
            for name in (
                [alias.name for alias in node.names]
                if isinstance(node, ast.Import)
                else [node.module or ""]
                if isinstance(node, ast.ImportFrom)
                else []
            )
        }
        if "torch" in names and path.parent.name != "collect":
            importing.append(str(path.relative_to(ROOT)))
    assert importing == []


def test_a_log_is_diagnosed_without_loading_numpy():
    probe = (
        "import sys; from advisor.cli.main import main; import io;"
        "sys.stdin = io.TextIOWrapper(io.BytesIO(b'step 1 loss 2.0\\n'));"
        "main(['diagnose', '-']); sys.stdout.flush();"
        "sys.exit('numpy' in sys.modules or 'msgspec' in sys.modules)"
    )
    finished = subprocess.run(
        [sys.executable, "-c", probe], cwd=ROOT, capture_output=True, check=False, env={"PYTHONPATH": f"{ROOT}:{ROOT / 'client'}"}
    )
    assert finished.returncode == 0, finished.stderr.decode()


def test_committed_text_names_no_path_of_a_machine():
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\n")
    texts = [ROOT / name for name in listed if name and not name.endswith((".gz", ".pickle"))]
    machine = re.compile(r"/(?:work|home|root)/[a-z]")
    offending = [path.name for path in texts if path.exists() and machine.search(path.read_text("utf-8", "replace"))]
    assert [name for name in offending if name != Path(__file__).name] == []
