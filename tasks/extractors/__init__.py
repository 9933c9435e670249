"""Claim extractors, which cut an answer into claims (docs/methods.md#claims).

Each module is one kind and defines a pydantic model `Config` and `build(config, writers) -> Extractor`. All kinds share
the package `cut`.
"""

import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Self, cast

from tasks.core import keys
from tasks.core.config import resolved_in
from tasks.core.plugins import configured
from tasks.core.types import Answer, Extraction, Extractor
from tasks.extractors.cut._html import visible as visible
from tasks.extractors.cut._kinds import languages
from tasks.extractors.cut.cutter import counts_from_zero, first_number
from tasks.judges import generate
from tasks.judges.generate import Writer


class Writers:
    """The models that break sentences into facts. Extractors with the same file share one model.

    Args:
        where: The config file that names them. Their paths are relative to it.
    """

    def __init__(self, where: str) -> None:
        self._where = where
        self._open: dict[Path, Writer] = {}

    def open(self, path: Path, gives: Sequence[str]) -> Writer:
        """The writer in a file. The first call loads its model.

        Args:
            gives: The inputs for its prompt.

        Raises:
            ConfigError: The file or one of its keys is wrong.
        """
        at = resolved_in(path, "judges", self._where, "extractor.writer")
        if at not in self._open:
            self._open[at] = generate.load(at, gives)
        return self._open[at]


class ByApp:
    """An extractor that uses each application's own settings.

    Args:
        earlier_questions: See `Recipe`. The caller puts these before a question.
    """

    def __init__(self, default: Extractor, apps: Mapping[str, Extractor], earlier_questions: int = 0) -> None:
        self._default = default
        self._earlier_questions = earlier_questions
        self._apps = dict(apps)

    @property
    def version(self) -> str:
        """Hash of everything that can change the claims."""
        apps = {app: e.version for app, e in self._apps.items()}
        more: dict[str, object] = {"apps": apps} if apps else {}
        more |= {"earlier_questions": self._earlier_questions} if self._earlier_questions else {}
        return keys.version({"default": self._default.version, **more}) if more else self._default.version

    @property
    def modelless(self) -> Self:
        """The same without models; see `Extractor`. Its version is not that of the claims."""
        return type(self)(self._default.modelless, {app: e.modelless for app, e in self._apps.items()})

    @property
    def engines(self) -> frozenset[str]:
        """The engines of the extractors' models."""
        return frozenset(e.engine for e in (self._default, *self._apps.values()))

    @property
    def gpus(self) -> int:
        """The most GPUs that one of the models holds."""
        return max(e.gpus for e in (self._default, *self._apps.values()))

    def extract_many(self, answers: Sequence[tuple[str, Answer]]) -> list[Extraction]:
        """The claims of each answer, in order. Each answer comes with its application.

        Raises:
            EngineError: A model is needed and can't be run.
        """
        own = [self._of(app) for app, _ in answers]
        found: dict[int, Extraction] = {}
        for extractor in {id(one): one for one in own}.values():
            same = [at for at, one in enumerate(own) if one is extractor]
            found.update(zip(same, extractor.extract_many(_numbered([answers[at] for at in same])), strict=True))
        return [found[at] for at in range(len(answers))]

    def close(self) -> None:
        """Free the models; a later call loads them again."""
        for extractor in (self._default, *self._apps.values()):
            extractor.close()

    def _of(self, app: str) -> Extractor:
        return self._apps.get(app, self._default)


def _numbered(answers: Sequence[tuple[str, Answer]]) -> list[Answer]:
    """Set the first citation number of answers that leave it open to that of most other answers of their app."""
    shown = [(app, first_number(answer.text, answer.chunks)) for app, answer in answers]
    votes = Counter(one for one in shown if one[1] is not None)
    most: dict[str, int | None] = {}
    for (app, first), _ in votes.most_common():
        most.setdefault(app, first)
    return [
        answer
        if own is not None or app not in most or not counts_from_zero(answer.chunks)
        else replace(answer, first=most[app])
        for (app, answer), (_, own) in zip(answers, shown, strict=True)
    ]


def covers(language: str | None) -> bool:
    """Whether the phrases of a language are available; True if the language is unknown."""
    return language is None or language in languages()


def load(settings: Mapping[str, object], where: str, prefix: str = "", writers: Writers | None = None) -> Extractor:
    """The extractor that a config describes.

    Args:
        settings: The settings as read. Their `kind` selects the module.
        where: The config file, as the user named it; for messages, and for the paths in it.
        prefix: Dotted path of the settings inside the file; for messages.
        writers: Models shared with other extractors of the file.

    Raises:
        ConfigError: The kind is unknown, or the settings don't fit it.
    """
    module, config = configured(sys.modules[__name__], settings, "extractor", where, prefix)
    return cast("Extractor", module.build(config, writers or Writers(where)))


def load_by_app(
    default: Mapping[str, object],
    apps: Mapping[str, Mapping[str, object]],
    where: str,
    prefix: str,
    earlier_questions: int = 0,
) -> ByApp:
    """The extractors under `extractor` and `apps` of the section `prefix` of a config file.

    Raises:
        ConfigError: See `load`.
    """
    writers = Writers(where)
    section = f"{prefix}." if prefix else ""
    own = {app: load(settings, where, f"{section}apps.{app}", writers) for app, settings in apps.items()}
    return ByApp(load(default, where, f"{section}extractor", writers), own, earlier_questions)
