"""Claim extractors: how an answer is cut into claims (METHODS section 2).

One file per kind. A kind exposes a pydantic model `Config` and `build(config) -> Extractor`; adding one is one file
here. `markdown.py` and `citations.py` are what the kinds share. Leaves out what happens to the claims next.
"""

import sys
from collections.abc import Mapping
from typing import cast

from tasks.core.plugins import configured
from tasks.core.types import Extractor


def load(settings: Mapping[str, object], where: str, prefix: str = "") -> Extractor:
    """The extractor that a config describes.

    Args:
        settings: The settings as read; their `kind` picks the module.
        where: The config file, as the user named it; for errors.
        prefix: Dotted path of the settings inside the file; for errors.

    Raises:
        ConfigError: The kind is unknown, or the settings don't fit it.
    """
    module, config = configured(sys.modules[__name__], settings, "extractor", where, prefix)
    return cast("Extractor", module.build(config))
