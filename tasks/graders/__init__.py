"""Graders: the six grades of a whole answer (METHODS section 9). One module here is one kind.

A kind's module has a pydantic model `Config` (the keys of its YAML file) and `build(config, where) -> Grader`. Names
with a leading underscore are no kinds.
"""

import sys
from pathlib import Path
from typing import cast

from tasks.core.config import load_yaml
from tasks.core.grades import Grader
from tasks.core.plugins import configured


def load(path: Path) -> Grader:
    """The grader that a YAML file describes. Its model is not loaded before the first call.

    Raises:
        ConfigError: The file or one of its keys is wrong, or its kind is unknown.
    """
    module, config = configured(sys.modules[__name__], load_yaml(path), "grader", path)
    return cast("Grader", module.build(config, str(path)))
