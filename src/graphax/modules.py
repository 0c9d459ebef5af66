"""Packages that import their modules on first use, and modules that have moved."""

import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any


def lazily(package: str, places: Mapping[str, Sequence[str]], extra: Callable[[str], str] | None = None) -> Callable:
    """The ``__getattr__`` of a package that imports names and modules on first use.

    ``places`` maps each module to the names it defines. If a module needs a package that is not installed, ``extra``
    maps the name of the module to the extra that provides it.
    """
    homes = {name: module for module, names in places.items() for name in names}

    def __getattr__(name: str) -> Any:
        if name not in homes:
            if not name.startswith("_") and find_spec(f"{package}.{name}") is not None:
                return import_module(f"{package}.{name}")
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        try:
            found = getattr(import_module(f"{package}.{homes[name]}"), name)
        except ModuleNotFoundError as error:
            if extra is None:
                raise
            wanted = f"{package}.{name} needs {error.name}: pip install 'graphax-alphagrad[{extra(homes[name])}]'"
            raise ImportError(wanted, name=error.name) from error
        setattr(sys.modules[package], name, found)
        return found

    return __getattr__


class Moved(ModuleType):
    """Stands in for a module that has moved, and looks names up in the modules that have them now."""

    def __init__(self, name: str, *places: str):
        super().__init__(name, f"Moved to {' and '.join(places)}.")
        self.__dict__["_places"] = places
        sys.modules[name] = self

    def __getattr__(self, name: str) -> Any:
        places = () if name.startswith("__") else self.__dict__["_places"]
        for place in places:
            if hasattr(module := import_module(place), name):
                warnings.warn(f"{self.__name__}.{name} is {place}.{name} now", DeprecationWarning, stacklevel=2)
                return getattr(module, name)
        raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
