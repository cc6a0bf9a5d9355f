"""Tell the user's own code from what is installed."""

# ruff: noqa: PTH117, PTH120 - texts are compared, and this runs in the start of a training

import os
import sys
from collections.abc import Iterable

LIBRARY_FOLDERS = ("/site-packages/", "/dist-packages/", f"/lib/python{sys.version_info[0]}.{sys.version_info[1]}/", "<frozen ")
OWN_FOLDER = os.path.dirname(__file__)


def is_library(path: str) -> bool:
    """Whether code of this file is not the user's: an installed package, the standard library, this package."""
    return path.startswith(OWN_FOLDER) or any(folder in path for folder in LIBRARY_FOLDERS)


def folders_of_code(script: str | None, files: Iterable[str], cwd: str | None) -> tuple[str, ...]:
    """Folders whose repository is the run's: of the script and of the callers' files, unless installed; last the working folder.

    A notebook and an installed program have the working folder alone.
    """
    own = [path for path in (script, *files) if path and os.path.isabs(path) and not is_library(path)]
    return tuple(dict.fromkeys([*(os.path.dirname(path) for path in own[:2]), *((cwd,) if cwd else ())]))
