"""Do something once torch is loaded, where attach() comes before `import torch`."""

import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Callable, Sequence
from types import ModuleType


class _AfterLoading(importlib.abc.Loader):
    """A module's own loader, with a call behind it."""

    def __init__(self, loader: importlib.abc.Loader, then: Callable[[], None]) -> None:
        self._loader, self._then = loader, then

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self._loader.exec_module(module)
        self._then()


class WhenLoaded(importlib.abc.MetaPathFinder):
    """Finds a module by the other finders and calls back after it was loaded; then it takes itself out."""

    def __init__(self, name: str, then: Callable[[], None]) -> None:
        self._name, self._then = name, then

    def install(self) -> None:
        """Look before all other finders."""
        sys.meta_path.insert(0, self)

    def remove(self) -> None:
        """Look no more."""
        if self in sys.meta_path:
            sys.meta_path.remove(self)

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,  # noqa: ARG002 - the protocol
        target: ModuleType | None = None,  # noqa: ARG002 - the protocol
    ) -> importlib.machinery.ModuleSpec | None:
        """The other finders' answer, its loader wrapped."""
        if fullname != self._name:
            return None
        self.remove()
        spec = importlib.util.find_spec(fullname)
        if spec is not None and spec.loader is not None:
            spec.loader = _AfterLoading(spec.loader, self._then)
        return spec
