"""Judges: from evidence and a claim to a verdict (docs/methods.md#labels). One module here is one kind.

A kind's module has a pydantic model `Config` (the keys of its YAML file) and
`build(config, where) -> Judge`; that is all it takes to add one. Names with a leading underscore are no kinds.
"""

import sys
from pathlib import Path
from typing import cast

from tasks.core.config import load_yaml
from tasks.core.plugins import configured
from tasks.core.types import Judge


def load(path: Path) -> Judge:
    """The judge that a YAML file describes. Its model is not loaded before the first request.

    Raises:
        ConfigError: The file or one of its keys is wrong, or its kind is unknown.
    """
    module, config = configured(sys.modules[__name__], load_yaml(path, "kind"), "judge", path)
    return cast("Judge", module.build(config, str(path)))
