"""The marks that PyTorch's data loader leaves in a trace around the fetch of each batch."""

import re
from typing import TYPE_CHECKING

from advisor.analysis.named_events import named_rows
from advisor.model.trace import Category, KinetoTrace

if TYPE_CHECKING:
    from advisor.model.trace import Indices

LOADER_MARK = re.compile(r"^enumerate\(DataLoader\)#(?P<iterator>\w+)\.__next__")
"""PyTorch's own mark around the fetch of a batch, since 1.8; the iterator's class tells its
kind."""


def loader_rows(trace: KinetoTrace) -> "Indices":
    """The rows of the loader's marks, in order of their start."""
    return named_rows(trace, LOADER_MARK.match, Category.ANNOTATION)
