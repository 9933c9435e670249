"""What the hand-written pages say of the program is so: options, links, files and the example of a judge."""

import re
import sys
import tomllib
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest
import yaml
from kit.root import ROOT

from flows.__main__ import LEADLINE
from flows.nightly.summary import COLUMNS
from tasks import executors, extractors, judges, sources
from tasks.core import errors
from tasks.core.config import Alerts, DuckLake, Nightly, Promotion, Recipe, Report, Sample, validate
from tasks.core.errors import ConfigError
from tasks.core.keys import request_key
from tasks.core.schemas import TABLES
from tasks.core.types import Request
from tasks.graders import llm
from tasks.run.build import build_contexts

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
README = (ROOT / "README.md").read_text(encoding="utf-8")
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
CONFIGURATION = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
ARCHITECTURE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")


def _prose(page: Path) -> str:
    return re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)


def _anchors(page: Path) -> set[str]:
    """The anchors that GitHub gives the headings of a page."""
    headings = re.findall(r"^#+ (.+)$", _prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in headings}


def _links() -> Iterator[tuple[Path, str]]:
    for page in PAGES:
        for target in re.findall(r"\]\(([^)\s]+)\)", _prose(page)):
            if not target.startswith(("http://", "https://")):
                yield page, target


@pytest.mark.parametrize(("page", "target"), sorted(set(_links())), ids=lambda v: v if isinstance(v, str) else v.name)
def test_links_lead_somewhere(page: Path, target: str) -> None:
    path, _, anchor = target.partition("#")
    place = (page.parent / path).resolve() if path else page
    assert place.exists()
    if anchor:
        assert anchor in _anchors(place)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_pages_name_files_that_exist(page: Path) -> None:
    """Paths in backticks, from the root; placeholders such as <kind> and patterns stand for many."""
    named = re.findall(r"`((?:tasks|flows|sql|configs|tests|scripts|bench|docs)/[\w./-]*[\w/])`", _prose(page))
    missing = [n for n in named if not (ROOT / n).exists()]
    invented = {"configs/judges/words.yaml"}  # the example that CONTRIBUTING.md walks through
    assert set(missing) <= invented


def test_readme_lists_every_command_with_every_option() -> None:
    reference = README[README.index("### Commands") : README.index("### Pages")]
    commands = {name: LEADLINE.get_command(None, name) for name in LEADLINE.list_commands(None)}
    rows = {m[1]: m[0] for m in re.finditer(r"^\| `leadline ([\w-]+).*$", reference, re.MULTILINE)}
    assert set(rows) == set(commands)
    for name, command in commands.items():
        for option in (o for p in command.params for o in p.opts if o.startswith("-")):
            everywhere = reference.split("|")[0]
            assert f"`{option}" in rows[name] + everywhere, f"{name} {option}"


def test_readme_lists_every_exit_code() -> None:
    kinds = [e for e in vars(errors).values() if isinstance(e, type) and issubclass(e, errors.LeadlineError)]
    listed = {int(code) for code in re.findall(r"^\| (\d+) \|", README, re.MULTILINE)}
    assert listed == {0, 130, 143} | {kind.exit_code for kind in kinds}


def test_readme_shows_the_columns_that_a_run_prints() -> None:
    shown = re.search(r"```text\nGroundedness.*?```", README, re.DOTALL)
    assert shown
    assert [c for c in COLUMNS if c not in shown[0]] == []


def test_architecture_names_only_tables_and_views_that_exist() -> None:
    stages = ARCHITECTURE[ARCHITECTURE.index("## The stages") : ARCHITECTURE.index("**Pairs.**")]
    made = {n for row in stages.splitlines()[4:] for n in re.findall(r"`(\w+)`", "|".join(row.split("|")[2:4]))}
    assert made <= set(TABLES)
    assert {"traces", "claims", "pairs", "verdicts", "relevance", "claim_results", "trace_scores"} <= made


def test_layers_are_those_that_are_checked() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    layers = next(c["layers"] for c in contracts["contracts"] if c["type"] == "layers")
    checked = [[m.strip().removeprefix("tasks.") for m in layer.split("|")] for layer in layers]
    drawing = re.search(r"```text\n(flows .*?)```", ARCHITECTURE, re.DOTALL)
    assert drawing
    drawn = [line.split("  ")[0].removeprefix("tasks.").split() for line in drawing[1].splitlines()]
    assert [sorted(x) for x in drawn] == [sorted(x) for x in checked]


def test_the_trace_that_the_readme_shows_can_be_read(tmp_path: Path) -> None:
    line = re.search(r"```json\n(.*?)\n```", README, re.DOTALL)
    assert line
    (tmp_path / "a.jsonl").write_text(line[1] + "\n", encoding="utf-8")
    source = sources.load({"kind": "jsonl", "paths": ["a.jsonl"], "unknown_fields": "quarantine"}, "", tmp_path)
    batches = list(source.read(source.files(date(2026, 11, 1), date(2026, 11, 1))[0]))
    assert [(b.table.num_rows, b.rejects) for b in batches] == [(1, [])]


SHOWN = [
    (page.name, yaml.safe_load(block))
    for page in PAGES
    for block in re.findall(r"```yaml\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    if not block.startswith("apiVersion:")  # for Kubernetes
]


@pytest.mark.parametrize("shown", [s for _, s in SHOWN], ids=[f"{page}-{i}" for i, (page, _) in enumerate(SHOWN)])
def test_the_settings_that_the_pages_show_are_accepted(shown: dict[str, Any]) -> None:
    """Paths in them are relative to `configs/`, as they are for who writes a file there."""
    where = str(ROOT / "configs" / "shown.yaml")
    if "prompts" in shown:
        beside = str(ROOT / "configs" / "graders" / "shown.yaml")
        llm.build(validate(llm.Config, shown, beside), beside)
        return
    if "kind" in shown:
        sources.load(shown, where, ROOT / "configs")
        return
    if "recipes" in shown:
        assert all((ROOT / "configs" / path).is_file() for path in shown["recipes"])
        return
    if "executor" in shown:
        executors.load(shown["executor"], where)
        return
    sections = {
        "alerts": Alerts,
        "ducklake": DuckLake,
        "promotion": Promotion,
        "report": Report,
        "sample": Sample,
    }
    for section, model in sections.items():
        if section in shown and "lake" not in shown:
            validate(model, shown[section], where)
            return
    if "lake_cache" in shown:
        others = yaml.safe_load((ROOT / "configs" / "nightly.yaml").read_text(encoding="utf-8"))
        validate(Nightly, others | shown, where)
        return
    recipe = {"judge": "judges/nli.yaml", **shown.get("recipe", shown)}
    parsed = validate(Recipe, recipe, where, base=ROOT / "configs")
    for settings in (parsed.extractor, *parsed.apps.values()):
        extractors.load(settings, where)
    for path in (parsed.judge, *(further.judge for further in parsed.cascade)):
        judges.load(path)
    if "lake" in shown:
        named = validate(Nightly, shown, where, base=ROOT / "configs").sources
        assert all(isinstance(path, Path) and path.is_file() for path in named)


def test_pages_show_settings_of_every_sort() -> None:
    """Else the test above might have nothing to test."""
    keys = {key for _, shown in SHOWN for key in (*shown, *shown.get("recipe", {}))}
    assert {"kind", "extractor", "apps", "pairing", "cascade", "lake"} <= keys


@pytest.mark.parametrize("path", sorted((ROOT / "configs" / "recipes").glob("*.yaml")), ids=lambda p: p.stem)
def test_every_ready_recipe_is_listed_and_can_be_read(path: Path, tmp_path: Path) -> None:
    assert f"[`{path.name}`](../configs/recipes/{path.name})" in CONFIGURATION
    config = {"lake": "l", "warehouse": "w", "report": {"dir": "r"}, "sources": [{"kind": "jsonl", "paths": ["x"]}]}
    (tmp_path / "n.yaml").write_text(yaml.safe_dump({**config, "recipes": [str(path)]}), encoding="utf-8")
    (ctx,) = build_contexts(tmp_path / "n.yaml", date(2026, 11, 1), date(2026, 11, 1))
    assert ctx.settings.name == path.stem


def test_the_recipe_file_of_the_default_is_the_default() -> None:
    """Else a second recipe beside it would judge everything again."""
    nightly = yaml.safe_load((ROOT / "configs" / "nightly.yaml").read_text(encoding="utf-8"))["recipe"]
    alone = yaml.safe_load((ROOT / "configs" / "recipes" / "claims.yaml").read_text(encoding="utf-8"))
    same = [validate(Recipe, r, "test").model_dump(exclude={"judge"}) for r in (nightly, alone)]
    assert same[0] == same[1]


def test_every_ready_judge_is_listed() -> None:
    """The embedded model, the baseline and the draws have sections of their own."""
    listed = set(re.findall(r"^\| `([\w.-]+\.yaml)` \|", CONFIGURATION, re.MULTILINE))
    ready = {p.name for p in (ROOT / "configs" / "judges").glob("*.yaml")}
    named = {
        name for name in ready - listed if f"`configs/judges/{name}`" in CONFIGURATION or f"`{name}`" in CONFIGURATION
    }
    assert listed <= ready
    assert ready - listed - named == {"replay.yaml", "similarity.yaml"}


def test_failures_that_are_explained_are_those_of_the_code() -> None:
    guide = (ROOT / "docs" / "language-models.md").read_text(encoding="utf-8")
    explained = set(re.findall(r"^\| `(\w+)` \|", guide[guide.index("| failure |") :], re.MULTILINE))
    code = "".join(p.read_text(encoding="utf-8") for p in (ROOT / "tasks").rglob("*.py"))
    assert {"too_long", "truncated", "unparsable", "no_passage", "outage"} <= explained
    assert [name for name in sorted(explained) if f'"{name}"' not in code] == []


@pytest.fixture
def words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The judge that CONTRIBUTING.md shows, as one more module of tasks.judges; its config file."""
    code = re.search(r"```python\n(.*?)```", CONTRIBUTING, re.DOTALL)
    assert code
    (tmp_path / "words.py").write_text(code[1], encoding="utf-8")
    (tmp_path / "words.yaml").write_text("kind: words\nleast: 0.75\n")
    monkeypatch.setattr(judges, "__path__", [*judges.__path__, str(tmp_path)])
    yield tmp_path / "words.yaml"
    sys.modules.pop("tasks.judges.words", None)
    vars(judges).pop("words", None)


def test_the_example_of_a_judge_works_as_one_file_and_one_config(words: Path) -> None:
    """Of "the sky is blue" the first evidence has all four words, the second two: 1 ≥ 0.75 > 0.5."""
    judge = judges.load(words)
    pairs = [("today the sky is blue", "the sky is blue"), ("the grass is green", "the sky is blue")]
    verdicts = judge.judge([Request(request_key(p, h), p, h) for p, h in pairs])
    assert [(v.label, v.p_supported) for v in verdicts] == [("supported", 1.0), ("unsupported", 0.5)]
    assert judge.version == judges.load(words).version
    words.write_text("kind: words\nleast: 0.5\n")
    assert judges.load(words).version != judge.version


def test_the_example_of_a_judge_is_checked_like_any_other(words: Path) -> None:
    words.write_text("kind: words\nleest: 0.5\n")
    with pytest.raises(ConfigError, match="least"):
        judges.load(words)
