"""Selects the claims that people should label next from the published warehouse, with their texts.

Nothing is written and nothing is locked. Left out: the files that people fill in (`formats.py`, and the page
`tasks/publish/report/labeling.py`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

from tasks.core.config import did_you_mean
from tasks.core.errors import UsageError
from tasks.core.labeling import Task
from tasks.run.selectors import LEAST_PREFIX
from tasks.store.query import sql
from tasks.store.warehouse import Reader

JUDGED = (
    "judge_version", "status", "label", "misused", "p_supported", "p_contradicted", "confidence", "deciding_chunk_ids",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Scope:
    """Answers under one recipe.

    Attributes:
        recipe_name: Name of a recipe: of its versions the one that counts for the night; None where `recipe` is given.
        recipe: Hash of one, whether it counts or not.
        app: Of this application; None for all.
    """

    recipe_name: str | None
    recipe: str | None = None
    app: str | None = None
    first: date | None = None
    last: date | None = None

    @property
    def params(self) -> dict[str, object]:
        """Parameters of the SQL."""
        names = ("recipe_name", "recipe", "app", "first", "last")
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True, slots=True)
class Wanted:
    """Options of an export.

    Attributes:
        need: One of `SAMPLING`.
        count: Claims at most; of `random`, answers.
        reviewers: How many people should label each claim.
        reviewer: Claims that this person has labeled are left out; None for anybody.
        seed: Another one gives another draw.
        show_judge: Include the judge's result.
    """

    need: str
    count: int
    reviewers: int = 1
    reviewer: str | None = None
    seed: str = "0"
    show_judge: bool = False


@dataclass(frozen=True, slots=True)
class Selection:
    """The selected claims.

    Attributes:
        tasks: Most wanted first; of `random`, answer by answer.
        enough: Claims left out since they have enough reviews, or one by the reviewer.
        more: Wanted claims beyond the count.
        redacted: Answers left out since their text was redacted.
        answers: Answers that were searched.
    """

    tasks: tuple[Task, ...]
    enough: int
    more: int
    redacted: int
    answers: int


def scope_of(reader: Reader, word: str, app: str | None, first: date | None, last: date | None) -> Scope:
    """The recipe that a word names: a name that counts for nights, another recipe's name, or the beginning of a hash.

    Raises:
        UsageError: There is no such recipe, or several.
    """
    rows = reader.rows(sql("review/recipes"), {})
    if not rows:
        raise UsageError("the warehouse has no scores yet. Run `leadline nightly` first.")
    if any(r["recipe"] is None and r["name"] == word for r in rows):
        return Scope(word, None, app, first, last)
    named = [r["recipe"] for r in rows if r["recipe"] and r["name"] == word]
    by_hash = [r["recipe"] for r in rows if r["recipe"] and len(word) >= LEAST_PREFIX and r["recipe"].startswith(word)]
    found = named or by_hash
    if not found:
        names = sorted({r["name"] for r in rows})
        raise UsageError(f"--recipe {word}: no such recipe has scores. {did_you_mean(word, names, 'recipes')}")
    if len(found) > 1:
        raise UsageError(f"--recipe {word} could be {' or '.join(found)}. Give one by its hash.")
    return Scope(None, found[0], app, first, last)


def select(reader: Reader, scope: Scope, wanted: Wanted) -> Selection:
    """The claims that people should label."""
    options = {name: getattr(wanted, name) for name in ("need", "count", "reviewers", "reviewer", "seed")}
    rows = reader.rows(sql("review/candidates"), {**scope.params, **options})
    total, claims = rows[0], [r for r in rows if r["claim_id"] is not None]
    of = {"dates": sorted({r["date"] for r in claims}), "trace_ids": sorted({r["trace_id"] for r in claims})}
    texts = reader.rows(sql("review/texts"), of) if claims else []
    answers = {(r["date"], r["trace_id"]): r for r in texts}
    tasks = tuple(_task(r, answers[r["date"], r["trace_id"]], wanted) for r in claims)
    return Selection(tasks, total["n_enough"], total["n_wanted"] - len(tasks), total["n_redacted"], total["n_answers"])


def _task(claim: Mapping[str, Any], answer: Mapping[str, Any], wanted: Wanted) -> Task:
    cited = claim["cited_chunk_ids"]
    context = {
        "date": str(claim["date"]),
        "app": answer["app"],
        "generator": answer["generator"],
        "claim": claim["text"],
        "span": [claim["span_start"], claim["span_end"]],
        "question": answer["question"],
        "answer": answer["answer"],
        "chunks": [
            {"chunk_id": c["chunk_id"], "title": c["title"], "text": c["text"], "cited": c["chunk_id"] in cited}
            for c in answer["chunks"]
        ],
    }
    if wanted.show_judge:
        context["judge"] = {name: claim[name] for name in JUDGED}
    return Task(
        trace_id=claim["trace_id"],
        claim_id=claim["claim_id"],
        sampling=wanted.need,
        adjudicated=bool(claim["adjudicate"]),
        reviewer=wanted.reviewer,
        context=context,
    )
