"""Where the corpus of real inputs lies; tests that need it skip with a reason where it is missing."""

import os
from pathlib import Path

import pytest


def corpus() -> Path:
    """The corpus folder; skips the test where it is missing."""
    declared = os.environ.get("ADVISOR_CORPUS")
    folder = Path(declared) if declared else Path(__file__).parents[2] / "shared" / "corpus"
    if not folder.is_dir():
        pytest.skip(f"the corpus of real inputs is not at {folder}; set ADVISOR_CORPUS to its folder")
    return folder
