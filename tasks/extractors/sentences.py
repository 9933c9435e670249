"""Extractor `sentences`: segments cut further into sentences, without a model (docs/methods.md#claims).

Every sentence keeps the references that cover its segment. sentencex finds the ends of sentences with the rules of the
language.
"""

from typing import Literal

from tasks.core import keys
from tasks.core.types import Extractor
from tasks.extractors import Writers
from tasks.extractors.cut.citations import CutSettings, Finder
from tasks.extractors.segments import RULES, Segments


class Config(CutSettings):
    """Settings of the extractor `sentences`."""

    kind: Literal["sentences"] = "sentences"


def build(config: Config, _: Writers) -> Extractor:
    """The extractor for these settings."""
    version = keys.version({"rules": RULES, **config.model_dump()})
    return Segments(Finder(config), version, config.language, by_sentence=True)
