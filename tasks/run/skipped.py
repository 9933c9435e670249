"""Notes of nights that a run leaves as they are, though traces came for them later.

The judge that counted for them is retired, has changed or is gone, so that nobody can say what it would have said.
"""

from tasks.core.schemas import CURRENT_RECIPES, TRACE_SCORES, TRACES
from tasks.run.context import Context
from tasks.run.variants import Variant
from tasks.store.lake import Lake, Part


def notes(ctx: Context) -> tuple[str, ...]:
    """A note for each recipe and judge that leaves traces without numbers; none where everything had been scored."""
    found = []
    for left in ctx.skipped:
        recipe, window = left.variant.chosen.recipe, left.variant.window
        parts = [p for p in ctx.lake.parts(TRACES) if window.holds(p.date) and not _scored(ctx.lake, p, left.variant)]
        if days := sorted({str(p.date) for p in parts}):
            which = f"{', '.join(days[:5])}{', …' if len(days) > 5 else ''}"
            found.append(
                f"Traces of {which} came late and stay without numbers of recipe {recipe.name!r}: judge "
                f"{recipe.judge.stem!r} counted for them. {left.why}"
            )
    return tuple(found)


def _scored(lake: Lake, part: Part, variant: Variant) -> bool:
    """Whether a part of `traces` holds nothing that the judge counted for, or has its scores."""
    if not any(map(variant.scope.takes, part.read(["app"])["app"].unique().to_pylist())):
        return True
    day = part.partition[-1]
    counted = [row for night in lake.parts(CURRENT_RECIPES, day) for row in night.read().to_pylist()]
    mine = {
        r["recipe"] for r in counted if r["recipe_name"] == variant.chosen.recipe.name and variant.scope.takes(r["app"])
    }
    return any(lake.find(TRACE_SCORES, part.name, recipe, day) for recipe in mine)
