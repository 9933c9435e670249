"""What a recipe is: the settings, versions and SQL that decide a stored number. A change starts another recipe."""

import hashlib
from collections.abc import Callable, Mapping, Sequence

import msgspec

from tasks import patterns
from tasks.core.config import Pairing, Recipe
from tasks.store.query import sql, sql_in

PAIRING_RULES = 2  # raised when the same settings lead to other windows or pairs
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
    """What a recipe's hash is made of. The name is left out: renaming changes no number.

    Args:
        extractor: Its version.
        judges: Their versions, in the order of the cascade.
        relevance: See `scorers.versions`.
        grader: Its version; None where the recipe names none.
        languages: What each judge reads; None for all.
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
            for judge, e in zip(judges[1:], recipe.cascade, strict=False)  # two passes of one judge are no cascade
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
