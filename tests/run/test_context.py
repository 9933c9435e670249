"""The context: a recipe's hash covers what can change a number, days choose parts, and loading writes nothing."""

import os
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest
import yaml
from kit.stage_kit import DAY, NEXT, context, leaves, put, trace

from tasks.claims.extract import extract_claims
from tasks.core import keys
from tasks.core.config import Recipe, validate
from tasks.core.errors import ConfigError, UsageError
from tasks.core.schemas import CLAIMS
from tasks.publish.publish import load_warehouse, publish_warehouse
from tasks.run.build import build_context
from tasks.run.identity import SCORING_SQL, as_json, recipe_definition
from tasks.run.plan import missing_parts, trace_parts
from tasks.store.query import sql, sql_dir

RECIPE = validate(Recipe, {"judge": "j.yaml"}, "test")


def hash_of(
    recipe: Recipe = RECIPE, extractor: str = "e", judge: str = "j", scorer: str = "s", text: Callable[[str], str] = sql
) -> str:
    return keys.version(recipe_definition(recipe, extractor, [judge], {"answer": scorer}, text=text))


def test_a_command_names_the_config_unless_it_is_the_default(tmp_path: Path) -> None:
    ctx = replace(context(tmp_path), path=Path("my configs/night.yaml"))
    assert ctx.sql_command("FROM runs") == "leadline sql -c 'my configs/night.yaml' \"FROM runs\""
    assert replace(ctx, path=Path("configs/nightly.yaml")).sql_command("FROM runs") == 'leadline sql "FROM runs"'


class TestRecipe:
    @pytest.mark.parametrize("changed", [{"extractor": "x"}, {"judge": "x"}, {"scorer": "x"}])
    def test_another_extractor_judge_or_scorer_is_another_recipe(self, changed: dict[str, str]) -> None:
        assert hash_of(**changed) != hash_of()

    @pytest.mark.parametrize(
        ("section", "change"),
        [
            ("pairing", {"kind": "cited"}), ("pairing", {"k": 6}), ("pairing", {"window_words": 161}),
            ("pairing", {"joint_words": 300}), ("pairing", {"pack_words": 999}),
            ("scoring", {"misuse_penalty": 1}), ("scoring", {"partial_credit": 0.1}),
            ("scoring", {"dangling_as_misuse": True}), ("waterfall", {"partial_passes": True}),
            ("triad", {"context_relevance": 0.5}), ("triad", {"groundedness": 51}), ("triad", {"answer_relevance": 0.5}),
            ("waterfall", {"retrieval": 0.5}), ("waterfall", {"answerability": 0.5}), ("waterfall", {"faithfulness": 0.6}),
            ("waterfall", {"answer_relevance": 0.5}), ("grace", {"source": "doc"}),
        ],
    )  # fmt: skip
    def test_every_number_that_enters_a_score_is_in_the_hash(self, section: str, change: dict) -> None:
        assert hash_of(validate(Recipe, {"judge": "j.yaml", section: change}, "test")) != hash_of()

    def test_no_field_is_forgotten(self) -> None:
        """Each is a number that enters a score, or enters by a version, or can change none."""
        mark = next(m for m in self.test_every_number_that_enters_a_score_is_in_the_hash.pytestmark)
        numbers = {f"{section}.{name}" for section, change in mark.args[1] for name in change}
        by_version = {
            "extractor", "apps", "earlier_questions", "judge", "cascade.judge", "relevance", "answer_relevance.method",
            "answer_relevance.writer", "answer_relevance.rater", "context_relevance.method",
            "context_relevance.reranker", "context_relevance.rater", "answerability.method", "answerability.rater",
            "grades.grader",
        }  # fmt: skip
        tested_below = {"method", "patterns", "cascade.band", *(f"cascade.{n}" for n in numbers if "pairing" in n)}
        # Annotations are an input, as the traces are: what is made of them is made again when they change.
        changes_nothing = {"name", "shadow.judge", "shadow.share", "grace.annotations"}
        assert numbers | by_version | tested_below | changes_nothing == set(leaves(Recipe))

    def test_so_are_the_method_the_patterns_and_the_ways_of_a_cascade(self) -> None:
        further = {"judge": "k.yaml", "band": [0.2, 0.8]}
        changes = [
            {"method": "citations", "pairing": {"kind": "cited_together"}},
            {"pairing": {"kind": "cited_together"}},
            {"patterns": ["ghost_number"]},
            {"cascade": [further]},
            {"cascade": [{**further, "band": [0.3, 0.8]}]},
            {"cascade": [{**further, "pairing": {"k": 6}}]},
        ]
        recipes = [validate(Recipe, {"judge": "j.yaml", **change}, "test") for change in changes]
        found = {
            keys.version(recipe_definition(r, "e", ["j", "k"][: 1 + len(r.cascade)], {"answer": "s"})) for r in recipes
        }
        assert len(found | {hash_of()}) == 1 + len(changes)

    @pytest.mark.parametrize("name", SCORING_SQL)
    def test_so_is_the_text_of_every_query_that_scores(self, name: str) -> None:
        assert hash_of(text=lambda query: sql(query) + (" " if query == name else "")) != hash_of()

    def test_every_query_in_the_folders_that_score_is_hashed(self) -> None:
        folders = ("judging", "scoring", "sums", "nightly")
        files = {f"{folder}/{path.stem}" for folder in folders for path in (sql_dir() / folder).glob("*.sql")}
        assert set(SCORING_SQL) == files | {"macros", "views/reviewed_claims"}

    def test_another_grader_is_another_recipe(self) -> None:
        found = {
            keys.version(recipe_definition(RECIPE, "e", ["j"], {"answer": "s"}, grader)) for grader in (None, "g", "h")
        }
        assert len(found) == 3
        assert "grades" not in recipe_definition(RECIPE, "e", ["j"], {"answer": "s"})

    def test_a_name_a_place_and_the_order_of_keys_change_nothing(self) -> None:
        other = {"name": "renamed", "judge": "elsewhere/j.yaml", "scoring": {"partial_credit": 0, "misuse_penalty": 2}}
        assert hash_of(validate(Recipe, other, "test")) == hash_of()

    def test_the_same_config_gives_the_same_recipe_wherever_it_lies(self, tmp_path: Path) -> None:
        found = set()
        for name, extractor in (("a", "sentences"), ("b", "sentences"), ("c", "segments")):
            (tmp_path / name).mkdir()
            found.add(context(tmp_path / name, recipe={"extractor": {"kind": extractor}}).recipe)
        assert len(found) == 2

    def test_an_apps_own_extractor_settings_are_in_it(self, tmp_path: Path) -> None:
        styles = [{}, {"shop": {"kind": "segments"}}, {"help": {"kind": "segments"}}]
        assert len({context(tmp_path, recipe={"apps": s}).recipe for s in styles}) == 3


class TestLoad:
    def test_nothing_is_written(self, tmp_path: Path) -> None:
        context(tmp_path)
        assert sorted(p.name for p in tmp_path.iterdir()) == ["judge.yaml", "nightly.yaml"]

    def test_an_empty_range_is_the_users_mistake(self, tmp_path: Path) -> None:
        with pytest.raises(UsageError, match="--from 2026-11-02 is after --to 2026-11-01"):
            build_context(tmp_path / "nightly.yaml", NEXT, DAY)

    def test_a_source_in_its_own_file_starts_its_paths_there(self, tmp_path: Path) -> None:
        (tmp_path / "sources").mkdir()
        (tmp_path / "sources" / "s.yaml").write_text(yaml.safe_dump({"kind": "jsonl", "paths": ["x.jsonl"]}))
        (tmp_path / "sources" / "x.jsonl").write_text("")
        (source,) = context(tmp_path, sources=["sources/s.yaml"]).sources
        assert [f.path for f in source.files(DAY, DAY)] == ["x.jsonl"]

    @pytest.mark.parametrize(
        ("recipe", "message"),
        [
            ({"extractor": {"kind": "sentence"}}, r"nightly\.yaml: recipe\.extractor\.kind is 'sentence'.*Did you mean 'sentences'"),
            ({"apps": {"shop": {"kind": "x"}}}, r"nightly\.yaml: recipe\.apps\.shop\.kind is 'x'"),
            ({"judge": "none.yaml"}, r"none\.yaml does not exist"),
            ({"relevance": {"max_tokens": 3}}, r"nightly\.yaml: recipe\.relevance\.max_tokens is 3"),
        ],
    )  # fmt: skip
    def test_mistakes_name_the_file_and_the_key(self, tmp_path: Path, recipe: dict, message: str) -> None:
        with pytest.raises(ConfigError, match=message):
            context(tmp_path, recipe=recipe)

    def test_an_app_is_cut_by_its_own_extractor(self, tmp_path: Path) -> None:
        ctx = context(tmp_path, recipe={"apps": {"whole": {"kind": "segments"}}})
        put(ctx, trace("t", "One. Two."), trace("u", "One. Two.", app="whole"))
        assert extract_claims(ctx).computed == 2 + 1  # two sentences, one segment


class TestDays:
    def test_the_runs_days_and_those_to_catch_up(self, tmp_path: Path) -> None:
        ctx = context(tmp_path)
        for day in (1, 2, 3, 4):
            put(ctx, trace(f"t{day}", day=date(2026, 11, day)))
        ctx = replace(ctx, first=date(2026, 11, 3), last=date(2026, 11, 3))
        assert [p.date.day for p in trace_parts(ctx)] == [3]
        later = context(tmp_path, first=ctx.first, last=ctx.last, limits={"catch_up_days": 1})
        assert [p.date.day for p in trace_parts(later)] == [2, 3]

    def test_missing_parts(self, tmp_path: Path) -> None:
        ctx = context(tmp_path, last=NEXT)
        put(ctx, trace("t1", "One. Two."))
        extract_claims(ctx)
        late = put(ctx, trace("t2", day=NEXT))
        assert missing_parts(ctx, CLAIMS, ctx.extractor.version) == ([late], 2)
        assert missing_parts(ctx, CLAIMS, "another") == (trace_parts(ctx), 0)


def test_json_of_a_definition_is_canonical() -> None:
    assert as_json({"b": 1, "a": [True, None, "é"]}) == '{"a":[true,null,"é"],"b":1}'


@pytest.mark.parametrize(("private", "file", "folder"), [(True, 0o600, 0o700), (False, 0o644, 0o755)])
def test_only_its_user_can_read_what_a_run_writes(tmp_path: Path, private: bool, file: int, folder: int) -> None:
    before = os.umask(0o022)
    try:
        ctx = context(tmp_path, **({} if private else {"private": False}))
        part = put(ctx, trace("t"))
        load_warehouse(ctx)
        publish_warehouse(ctx)
    finally:
        os.umask(before)
    assert [path.stat().st_mode & 0o777 for path in (part.path, ctx.config.warehouse)] == [file, file]
    assert [path.stat().st_mode & 0o777 for path in (part.path.parent, ctx.lake.root)] == [folder, folder]
