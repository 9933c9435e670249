"""Where two sides disagree on claims: which label became which, which claims flipped, which failure patterns they show.

Texts of claims, chunks and explanations are read here, for the claims that are asked for.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from tasks.analysis.compare.differences import ask, names_of, only
from tasks.analysis.compare.findings import JUDGED, OUTCOMES, Labels
from tasks.analysis.compare.selectors import Filters, Row, Side
from tasks.stats import agreement
from tasks.store.warehouse import Reader


def labels(rows: pa.Table) -> Labels | None:
    """Which label became which, and how far the two agree; rows of `labels.sql`, None of no claims."""
    if not rows.num_rows:
        return None
    counts = _by_question(rows)
    total = counts.sum(axis=0)
    of_claims = total[: len(JUDGED), : len(JUDGED)]
    groups = []
    for by in ("app", "generator"):
        names = names_of(rows, by)
        for name in names if len(names) > 1 else ():
            part = _by_question(only(rows, **{by: name}))
            groups.append((by, name, agreement.agreement(part[:, : len(JUDGED), : len(JUDGED)])))
    return Labels(
        outcomes=OUTCOMES,
        matrix=tuple(tuple(map(int, row)) for row in total),
        agreement=agreement.agreement(counts[:, : len(JUDGED), : len(JUDGED)]),
        flipped=int(of_claims.sum() - np.trace(of_claims)),
        groups=tuple(groups),
    )


def _by_question(rows: pa.Table) -> agreement.Counts:
    """(m, k, k) claims of each question by outcome under A and under B."""
    at = {outcome: i for i, outcome in enumerate(OUTCOMES)}
    first, second = (np.array([at[o] for o in rows[c].to_pylist()], np.int64) for c in ("outcome_a", "outcome_b"))
    questions = np.array(rows["question"].to_pylist(), np.str_)
    return agreement.tally(questions, first, second, (len(OUTCOMES), len(OUTCOMES)), rows["n"].to_numpy())


def patterns(rows: Sequence[Row]) -> tuple[Row, ...]:
    """How many claims show each failure pattern under A, under B and under both; rows of `patterns.sql`."""
    return tuple(
        {
            "pattern": r["pattern"],
            "n_a": r["n_both"] + r["n_only_a"],
            "n_b": r["n_both"] + r["n_only_b"],
            "n_both": r["n_both"],
        }
        for r in rows
    )


def flipped(reader: Reader, scope: Mapping[str, object], most: int) -> tuple[Row, ...]:
    """The most confident disagreements, with text and evidence, and what each side says of it."""
    chosen = ask(reader, "flips", **scope, most=most).to_pylist()
    if not chosen:
        return ()
    told = ask(reader, "claims", **scope, claim_ids=[r["claim_id"] for r in chosen]).to_pylist()
    by = {(r["recipe"], r["claim_id"]): r for r in told}
    found = []
    for row in chosen:
        details = [by.get((scope[recipe], row["claim_id"]), {}) for recipe in ("recipe_a", "recipe_b")]
        sides = {
            f"{name}_{side}": detail.get(name)
            for side, detail in zip("ab", details, strict=True)
            for name in ("deciding_chunk_id", "deciding_chunk_text", "explanation")
        }
        found.append({**row, "text": details[0].get("text"), "cited": details[0].get("cited_chunk_ids"), **sides})
    return tuple(found)


def side_claims(reader: Reader, a: Side, b: Side, filters: Filters) -> dict[str, Any]:
    """Outcomes and patterns of the claims of each side, which are not the same claims."""
    found: list[dict[str, dict[str, int]]] = []
    for side in (a, b):
        counts: dict[str, dict[str, int]] = {"outcome": {}, "pattern": {}}
        for row in ask(reader, "side_claims", **side.scope(filters.app)).to_pylist():
            counts[row["kind"]][row["name"]] = row["n"]
        found.append(counts)
    names = sorted({*found[0]["pattern"], *found[1]["pattern"]})
    rows = ({"pattern": n, "n_a": found[0]["pattern"].get(n, 0), "n_b": found[1]["pattern"].get(n, 0)} for n in names)
    return {
        "outcomes": (found[0]["outcome"], found[1]["outcome"]),
        "patterns": tuple({**row, "n_both": None} for row in rows),
    }
