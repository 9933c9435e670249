"""The definition of a recipe: settings, versions and SQL that affect stored numbers. A change starts another recipe."""

import hashlib
from collections.abc import Callable, Mapping, Sequence

import msgspec

from tasks import patterns
from tasks.core.config import Pairing, Recipe
from tasks.store.query import sql, sql_in

PAIRING_RULES = 2  # increase this when the same settings give other windows or pairs
SCORING_SQL = ("macros", *sql_in("judging", "scoring", "sums", "nightly"), "views/reviewed_claims")


def recipe_definition(
    recipe: Recipe,
    extractor: str,
    judges: Sequence[str],
    relevance: Mapping[str, str],
    grader: str | None = None,
    languages: Sequence[Sequence[str] | None] = (),
    text: Callable[[str], str] = sql,
) -> dict[str, object]:
    """Return the definition that is hashed into a recipe's id. The name is left out: renaming changes no number.

    Args:
        extractor: The extractor's version.
        judges: The judges' versions, in the order of the cascade.
        relevance: See `scorers.versions`.
        grader: The grader's version; None if the recipe names none.
        languages: Languages that each judge reads; None for all.
        text: Returns the text of a SQL file by its name.
    """

    def pairing(settings: Pairing) -> dict[str, object]:
        return {**settings.model_dump(), "rules": PAIRING_RULES}

    return {
        "method": recipe.method,
        "extractor": extractor,
        "pairing": pairing(recipe.pairing),
        "judge": judges[0],
        "languages": [None if codes is None else list(codes) for codes in languages],
        "cascade": [
            {"judge": judge, "band": e.band, "pairing": pairing(e.pairing)}
            for judge, e in zip(judges[1:], recipe.cascade, strict=False)  # two passes of one judge are not a cascade
        ],
        "relevance": dict(relevance),
        "scoring": recipe.scoring.model_dump(),
        "triad": recipe.triad.model_dump(),
        "waterfall": recipe.waterfall.model_dump(),
        "grace": {"source": recipe.grace.source},
        "patterns": patterns.rules(recipe.patterns),
        "sql": {name: hashlib.sha256(text(name).encode()).hexdigest()[:16] for name in SCORING_SQL},
        **({"grades": {"grader": grader}} if grader else {}),
    }


def as_json(value: Mapping[str, object]) -> str:
    """Canonical JSON text."""
    return msgspec.json.encode(value, order="sorted").decode()
