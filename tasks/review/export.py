"""Selects the claims to label and the answers to grade next from the published warehouse, with their texts.

Nothing is written or locked. Left out: the files that people fill in (`formats.py`, and the page
`tasks/publish/report/labeling.py`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

from tasks.core.config import did_you_mean
from tasks.core.errors import UsageError
from tasks.core.labeling import OF_GRADES, Task
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
        recipe_name: Name of a recipe, which means the version that counts for each night; None if `recipe` is given.
        recipe: Hash of a recipe, whether it counts or not.
        app: The application; None for all.
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
        count: Largest number of claims; for `random`, of answers.
        reviewers: Number of people who should label each claim.
        reviewer: Leave out claims that this person has labeled; None for nobody.
        seed: Seed of the random draw.
        show_judge: Whether to include the judge's result.
        grades: Whether to also ask for grades of the drawn answers; only for `random`.
    """

    need: str
    count: int
    reviewers: int = 1
    reviewer: str | None = None
    seed: str = "0"
    show_judge: bool = False
    grades: bool = False


@dataclass(frozen=True, slots=True)
class Selection:
    """The selected claims and grades.

    Attributes:
        tasks: Claims and grades, most wanted first; for `random`, answer by answer.
        enough: Claims left out because they have enough reviews, or one by the reviewer.
        more: Number of wanted claims beyond `count`.
        redacted: Answers left out because their text was redacted.
        answers: Number of answers that were searched.
        enough_grades: Grades left out for the same reasons as in `enough`.
    """

    tasks: tuple[Task, ...]
    enough: int
    more: int
    redacted: int
    answers: int
    enough_grades: int = 0


def scope_of(reader: Reader, word: str, app: str | None, first: date | None, last: date | None) -> Scope:
    """Resolve --recipe: a name that counts for nights, another recipe's name, or the beginning of a hash.

    Raises:
        UsageError: No recipe matches, or several do.
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
    """Select the claims for people to label, and the answers to grade."""
    options = {name: getattr(wanted, name) for name in ("need", "count", "reviewers", "reviewer", "seed")}
    rows = reader.rows(sql("review/candidates"), {**scope.params, **options})
    total, claims = rows[0], [r for r in rows if r["claim_id"] is not None]
    graded = (
        reader.rows(sql("review/answers"), {**scope.params, **options, "grades": [*OF_GRADES]}) if wanted.grades else []
    )
    grades = [r for r in graded if r["grade"] is not None]
    place = {at: i for i, at in enumerate(dict.fromkeys((r["date"], r["trace_id"]) for r in (*grades, *claims)))}
    both = sorted((*claims, *grades), key=lambda r: place[r["date"], r["trace_id"]]) if grades else claims
    of = {"dates": sorted({d for d, _ in place}), "trace_ids": sorted({t for _, t in place})}
    texts = reader.rows(sql("review/texts"), of) if place else []
    answers = {(r["date"], r["trace_id"]): r for r in texts}
    return Selection(
        tasks=tuple(_task(r, answers[r["date"], r["trace_id"]], wanted) for r in both),
        enough=total["n_enough"],
        more=total["n_wanted"] - len(claims),
        redacted=total["n_redacted"],
        answers=total["n_answers"],
        enough_grades=graded[0]["n_enough"] if graded else 0,
    )


def _task(row: Mapping[str, Any], answer: Mapping[str, Any], wanted: Wanted) -> Task:
    """Make a task from a row of `candidates.sql` or `answers.sql`."""
    cited, grade = row["cited_chunk_ids"], row.get("grade")
    if grade is None:
        own = {"claim": row["text"], "span": [row["span_start"], row["span_end"]]}
    else:
        own = {"values": OF_GRADES[grade]}
    context = {
        "date": str(row["date"]),
        "app": answer["app"],
        "generator": answer["generator"],
        **own,
        "question": answer["question"],
        "answer": answer["answer"],
        "chunks": [
            {"chunk_id": c["chunk_id"], "title": c["title"], "text": c["text"], "cited": c["chunk_id"] in cited}
            for c in answer["chunks"]
        ],
    }
    if wanted.show_judge and grade is None:
        context["judge"] = {name: row[name] for name in JUDGED}
    return Task(
        trace_id=row["trace_id"],
        claim_id=row.get("claim_id"),
        sampling=wanted.need,
        adjudicated=bool(row.get("adjudicate")),
        reviewer=wanted.reviewer,
        context=context,
        grade=grade,
    )
