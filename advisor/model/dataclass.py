"""The `dataclass` of this project: for type checkers the standard one, at run time one that starts faster."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dataclasses import dataclass, field, replace
else:
    from advisor.model.light_dataclass import dataclass, field, replace

__all__ = ["dataclass", "field", "replace"]
