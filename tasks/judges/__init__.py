"""Judges: from evidence and a claim to a verdict (METHODS section 3). One module here is one kind.

A kind's module has a pydantic model `Config` (every key of its YAML file but `kind`) and
`build(config, where) -> Judge`; that is all it takes to add one. Names with a leading underscore are no kinds.
"""

import importlib
import pkgutil
from pathlib import Path

from tasks.core.config import did_you_mean, load_yaml, validate
from tasks.core.errors import ConfigError
from tasks.core.types import Judge


def kinds() -> list[str]:
    """Names that `kind:` may have."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__) if not module.name.startswith("_"))


def load(path: Path) -> Judge:
    """The judge that a YAML file describes. Its model is not loaded before the first request.

    Raises:
        ConfigError: The file or one of its keys is wrong, or its kind is unknown.
    """
    data = load_yaml(path)
    kind = data.pop("kind", None)
    known = kinds()
    if kind is None:
        raise ConfigError(path, "kind", "is missing", f"Add it; known judges: {', '.join(known)}.")
    if kind not in known:
        raise ConfigError(path, "kind", f"is {kind!r}", did_you_mean(str(kind), known, "judges"))
    module = importlib.import_module(f"{__name__}.{kind}")
    judge: Judge = module.build(validate(module.Config, data, path), str(path))
    return judge
