"""Libraries that load at their first use, so that a run without work for them does not wait."""

import importlib.util
import sys
from types import ModuleType


def lazy(name: str) -> ModuleType:
    """The module, which loads when an attribute of it is first read.

    Raises:
        ModuleNotFoundError: It is not installed.
    """
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.find_spec(name)
    if spec is None or spec.loader is None:
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)
    spec.loader = importlib.util.LazyLoader(spec.loader)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
