"""From a config to a source, and the error when the config is wrong."""

import re
from pathlib import Path

import pytest

from tasks import sources
from tasks.core import plugins
from tasks.core.errors import ConfigError
from tasks.sources.jsonl import JsonlSource

GOOD: dict[str, object] = {"kind": "jsonl", "paths": ["a.jsonl"]}


def test_kinds_are_the_public_modules() -> None:
    assert list(plugins.kinds(sources)) == [
        "jsonl", "langfuse", "langsmith", "mlflow", "otlp", "phoenix", "ragas", "ragchecker", "sql", "table", "trulens",
    ]  # fmt: skip


def test_loads_by_kind() -> None:
    assert isinstance(sources.load(GOOD, "s.yaml", Path()), JsonlSource)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"paths": ["a"]},
            "s.yaml: kind is missing. Write one of: jsonl, langfuse, langsmith, mlflow, otlp, phoenix, ragas, ",
        ),
        ({**GOOD, "kind": "json"}, "s.yaml: kind is 'json', which is no kind of source. Did you mean 'jsonl'?"),
        ({**GOOD, "kind": "reading"}, "s.yaml: kind is 'reading', which is no kind of source."),
        ({**GOOD, "kind": "tabular"}, "s.yaml: kind is 'tabular', which is no kind of source."),
        ({**GOOD, "kind": 3}, "s.yaml: kind is 3, which is no kind of source."),
        ({**GOOD, "kind": ["jsonl"]}, "s.yaml: kind is ['jsonl'], which is no kind of source."),
        ({"kind": "jsonl"}, "s.yaml: paths is missing."),
        ({**GOOD, "paths": []}, "s.yaml: paths is []."),
        ({**GOOD, "paths": [""]}, "s.yaml: paths.0 is ''."),
        ({**GOOD, "path": "a"}, "s.yaml: path is not a known key. Did you mean 'paths'"),
        ({**GOOD, "unknown_fields": "drop"}, "s.yaml: unknown_fields is 'drop'."),
    ],
)
def test_wrong_config(settings: dict[str, object], message: str) -> None:
    start = re.escape(message.rstrip("?"))
    with pytest.raises(ConfigError, match=f"^{start}"):
        sources.load(settings, "s.yaml", Path())
