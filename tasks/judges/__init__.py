"""Judges, which give verdicts on claims and their evidence (docs/methods.md#labels). Each module here is one kind.

A module defines a pydantic model `Config` (the keys of its YAML file) and `build(config, where) -> Judge`. Modules with
a leading underscore are not kinds.
"""

import sys
from pathlib import Path
from typing import cast

from tasks.core.config import load_yaml
from tasks.core.plugins import configured
from tasks.core.types import Judge


def load(path: Path) -> Judge:
    """The judge that a YAML file describes. The first request loads its model.

    Raises:
        ConfigError: The file or one of its keys is wrong, or its kind is unknown.
    """
    module, config = configured(sys.modules[__name__], load_yaml(path, "kind"), "judge", path)
    return cast("Judge", module.build(config, str(path)))
