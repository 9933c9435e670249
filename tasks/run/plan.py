"""What a run has to compute: parts of `traces`, parts without results, and late traces that can't be scored."""

from datetime import timedelta
from functools import lru_cache

import polars as pl

from tasks.core.schemas import CURRENT_RECIPES, TRACE_SCORES, TRACES, Table
from tasks.run.context import Context
from tasks.run.scopes.scope import oldest
from tasks.run.scopes.variants import Variant
from tasks.store.lake import Lake, Part
from tasks.text.follow_ups import is_follow_up

TURN = ["app", "session", "timestamp", "trace_id", "question"]


def trace_parts(ctx: Context) -> list[Part]:
    """Parts of `traces` of the days to complete."""
    return [p for p in ctx.lake.parts(TRACES, days=(oldest(ctx.config, ctx.first), ctx.last)) if ctx.covers(p.date)]


def missing_parts(ctx: Context, table: Table, version: str) -> tuple[list[Part], int]:
    """Parts of `traces` without a part of `table`, and the number of rows in the existing parts of `table`."""
    missing: list[Part] = []
    reused = 0
    for part in trace_parts(ctx):
        if found := ctx.lake.find(table, part.name, version, part.partition[-1]):
            reused += found.rows()
        else:
            missing.append(part)
    return missing, reused


def with_earlier_questions(ctx: Context, part: Part, traces: pl.DataFrame) -> pl.DataFrame:
    """Return traces with `question` as the recipe reads it: a follow-up comes after its session's earlier ones.

    Sessions are read from the day of the part and the day before. An earlier question that arrives late does not change
    stored results.
    """
    if not ctx.settings.earlier_questions:
        return traces
    days = (str(part.date - timedelta(days=1)), str(part.date))
    turns = _turns(tuple(p for day in days for p in ctx.lake.parts(TRACES, day)), ctx.settings.earlier_questions)
    return traces.join(turns, on="trace_id", how="left", maintain_order="left").with_columns(
        question=pl.coalesce("as_read", "question")
    )


@lru_cache(maxsize=1)
def _turns(parts: tuple[Part, ...], most: int) -> pl.DataFrame:
    """`trace_id` of follow-up questions, and `as_read`: the question with the earlier ones."""
    turns = pl.concat([part.frame(TURN).drop_nulls("session") for part in parts]).sort("timestamp", "trace_id")
    earlier = [pl.col("question").shift(n).over("app", "session") for n in range(most, 0, -1)]
    as_read = pl.concat_str([*earlier, "question"], separator=" ", ignore_nulls=True)
    asks_on = pl.col("question").map_elements(is_follow_up, pl.Boolean)
    return turns.select("trace_id", "question", as_read=as_read).filter(asks_on).drop("question")


def unusable_notes(ctx: Context) -> tuple[str, ...]:
    """A note for each recipe with late traces that can't be scored, because their judge can no longer be used."""
    notes = []
    for unusable in ctx.unusable:
        recipe, days = unusable.variant.chosen.recipe, unusable.variant.days
        parts = [p for p in ctx.lake.parts(TRACES) if p.date in days and not _scored(ctx.lake, p, unusable.variant)]
        if late := sorted({str(p.date) for p in parts}):
            which = f"{', '.join(late[:5])}{', …' if len(late) > 5 else ''}"
            notes.append(
                f"Traces of {which} came late and stay without numbers of recipe {recipe.name!r}: judge "
                f"{recipe.judge.stem!r} counted for them. {unusable.reason}"
            )
    return tuple(notes)


def _scored(lake: Lake, part: Part, variant: Variant) -> bool:
    """Whether a part has scores by the judge that counted for it, or no traces in that judge's scope."""
    if not any(map(variant.scope.takes, part.read(["app"])["app"].unique().to_pylist())):
        return True
    day = part.partition[-1]
    counted = lake.frame(CURRENT_RECIPES, day).filter(recipe_name=variant.chosen.recipe.name)
    recipes = {recipe for app, recipe in counted.select("app", "recipe").iter_rows() if variant.scope.takes(app)}
    return any(lake.find(TRACE_SCORES, part.name, recipe, day) for recipe in recipes)
