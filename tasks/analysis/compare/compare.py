"""`leadline compare`: what the warehouse says of two sides (METHODS sections 11 and 14). Reads, and writes nothing.

Judges and recipes are compared on the same traces and claims, generators and prompt versions on the same questions
where both answered enough of them, ranges of days on their means. Left out: which sides a word means (`sides.py`), how
rows become differences (`differing.py`), and how it all is shown (`flows/analysis/compare.py`).
"""

from collections.abc import Sequence
from typing import Any

import pyarrow.compute as pc

from tasks.analysis.compare.against_people import against_people
from tasks.analysis.compare.differences import Populations, ask, grouped, numbers_of, only, pair_estimate
from tasks.analysis.compare.disagreements import flipped, labels, patterns, side_claims
from tasks.analysis.compare.drift import backfill, shifts
from tasks.analysis.compare.findings import MAIN, Comparison, Group, Noise, Shift
from tasks.analysis.compare.selectors import Filters, Row, Side, resolve
from tasks.core.errors import UsageError
from tasks.stats.comparison import signal_to_noise, spread
from tasks.store.warehouse import Reader


def compare(reader: Reader, words: tuple[str, str], filters: Filters, number: str | None, flips: int) -> Comparison:
    """Everything that the warehouse says of two sides.

    Args:
        words: What the user calls them, such as `judge:nli`.
        number: Looked at closely: its noise, and each app and generator; the recipes' main number by default.
        flips: How many of the claims that flipped are shown with their texts.

    Raises:
        UsageError: A side is unknown or not scored, or nothing can be compared.
    """

    def select(name: str, **params: object) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = ask(reader, name, **params).to_pylist()
        return rows

    a, b, notes = resolve(select, words, filters)
    if a.kind in ("judge", "recipe"):
        return _same_traces(reader, a, b, filters, number, flips, notes)
    return _two_populations(reader, a, b, filters, number, notes)


def _same_traces(
    reader: Reader, a: Side, b: Side, filters: Filters, number: str | None, flips: int, notes: list[str]
) -> Comparison:
    scope = {"recipe_a": a.recipe["recipe"], "recipe_b": b.recipe["recipe"], **filters.scope}
    covered = ask(reader, "coverage", **scope).to_pylist()[0]
    if not covered["n_both"]:
        raise UsageError(
            f"{a.name} and {b.name} have scored no trace both. Score the days of one with the other first: "
            f"{backfill(b.recipe, a.recipe['first_date'], a.recipe['last_date'])}."
        )
    rows = ask(reader, "both", **scope)
    known = numbers_of(rows.filter(pc.greater(rows["n"], 0)))
    main = _main(number, known)
    of_main = only(rows, number=main)
    alone = [int(pc.sum(of_main[c]).as_py() or 0) for c in ("n_only_a", "n_only_b")]
    if any(alone):
        notes.append(
            f"{alone[0]:,} traces have {_said(main)} under A only, {alone[1]:,} under B only: in no difference."
        )
    estimates = tuple(Group("", n, pair_estimate(only(rows, number=n), n)) for n in known)
    n = next(g.estimate.n_a for g in estimates if g.number == main)
    (variance_a, note_a), (variance_b, note_b) = (_judge_noise(reader, side.recipe, main) for side in (a, b))
    difference = next(g.estimate.difference for g in estimates if g.number == main)
    noise = spread(variance_a, n, variance_b, n)
    same_claims = a.recipe["extractor_version"] == b.recipe["extractor_version"]
    if not same_claims:
        notes.append("The two recipes cut answers into different claims: labels and patterns are not compared.")
    return Comparison(
        kind=a.kind,
        a=a,
        b=b,
        filters=filters,
        number=main,
        pairing="traces",
        left_out=(covered["n_only_a"], covered["n_only_b"]),
        estimates=estimates,
        signal=(Noise("judge", noise, signal_to_noise(difference, noise), _join(note_a, note_b)),),
        by_app=grouped([rows], main, "app", pair_estimate),
        by_generator=grouped([rows], main, "generator", pair_estimate),
        labels=labels(ask(reader, "labels", **scope)) if same_claims else None,
        people=against_people(reader, a, b, filters) if same_claims else None,
        patterns=patterns(ask(reader, "patterns", **scope).to_pylist()) if same_claims else (),
        flips=flipped(reader, scope, flips) if same_claims and flips else (),
        cost=tuple(_cost(reader, side, other, filters) for side, other in ((a, b), (b, a))),
        notes=tuple(notes),
    )


def _two_populations(
    reader: Reader, a: Side, b: Side, filters: Filters, number: str | None, notes: list[str]
) -> Comparison:
    rows_a, rows_b = (ask(reader, "side", **side.scope(filters.app)) for side in (a, b))
    known = numbers_of(rows_a, rows_b)
    main = _main(number, known)
    both = Populations(rows_a, rows_b, main, may_pair=a.kind != "dates")
    estimates = tuple(Group("", n, both.estimate(only(rows_a, number=n), only(rows_b, number=n), n)) for n in known)
    difference = next(g.estimate.difference for g in estimates if g.number == main)
    n_a, n_b = both.sizes()
    (variance_a, note_a), (variance_b, note_b) = (_judge_noise(reader, side.recipe, main) for side in (a, b))
    by_judge = spread(variance_a, n_a, variance_b, n_b)
    by_repeats = spread(both.repeats()[0], n_a, both.repeats()[1], n_b)
    told = "Measured on questions that were asked more than once; the judge's noise is in it"
    if by_repeats is None:
        told = "Measured where some questions have several traces, on both sides"
    changed: tuple[Shift, ...] = ()
    if a.kind == "dates":
        changed = shifts(reader, a, b, filters, (only(rows_a, number=main), only(rows_b, number=main)), notes)
    elif both.pairs:
        notes.append(f"Paired: {both.shared:,} questions that both answered, the mean of each; others are left out.")
    else:
        shared = f"only {both.shared:,}" if both.shared else "none"
        notes.append(f"Not paired, since {shared} of the questions were answered by both: two samples are compared.")
    return Comparison(
        kind=a.kind,
        a=a,
        b=b,
        filters=filters,
        number=main,
        pairing="questions" if both.pairs else "none",
        left_out=(both.questions[0] - both.shared, both.questions[1] - both.shared) if both.pairs else (0, 0),
        estimates=estimates,
        signal=(
            Noise("judge", by_judge, signal_to_noise(difference, by_judge), _join(note_a, note_b)),
            Noise("repeats", by_repeats, signal_to_noise(difference, by_repeats), told),
        ),
        by_app=grouped([rows_a, rows_b], main, "app", both.estimate),
        by_generator=() if a.kind == "generator" else grouped([rows_a, rows_b], main, "generator", both.estimate),
        shifts=changed,
        **side_claims(reader, a, b, filters),
        cost=tuple(_usage(reader, side, filters) for side in (a, b)),
        notes=tuple(notes),
    )


def _main(number: str | None, known: Sequence[str]) -> str:
    if number in known:
        return str(number)
    if number is not None:
        raise UsageError(f"--number {number}: both sides don't have it. They have {', '.join(known) or 'none'}.")
    found = [n for n in (*MAIN, *known) if n in known]
    if not found:
        raise UsageError("the two sides have no number in common: nothing of them is scored, or by different methods.")
    return found[0]


def _judge_noise(reader: Reader, recipe: Row, number: str) -> tuple[float | None, str]:
    """Variance that the judge's noise gives one trace, and in a note what that rests on, or how to measure it.

    The judges of a cascade make their noise independently of each other: their variances add up.
    """
    rows = {r["judge_version"]: r for r in ask(reader, "noise", recipe=recipe["recipe"]).to_pylist()}
    lacking = [v for v in dict.fromkeys(recipe["judge_versions"]) if v not in rows]
    judge = recipe["judge_name"]
    if lacking:
        days = f"--from {recipe['first_date']} --to {recipe['last_date']}"
        how = f"leadline noise --sample 500 {days}"
        return None, f"{judge}: never measured under recipe {recipe['recipe_name']!r} ({how})"
    if any(r["number"] != number for r in rows.values()):
        return None, f"{judge}: measured of {_said(next(iter(rows.values()))['number'])} only"
    variance = sum(r["trace_sd"] ** 2 for r in rows.values())
    asked = sum(r["n"] for r in rows.values())
    exactly = "" if variance else ": it repeats itself exactly, so that any difference is one of labels"
    return variance, f"{judge}: {asked:,} requests judged again{exactly}"


def _cost(reader: Reader, side: Side, other: Side, filters: Filters) -> Row:
    """What the side's judges took for the traces that both have."""
    judges = ask(
        reader, "cost", recipe=side.recipe["recipe"], other=other.recipe["recipe"], **filters.scope
    ).to_pylist()
    seconds, gpu = ([j[c] for j in judges if j["verdicts"]] for c in ("seconds", "gpu_seconds"))
    return {
        "side": side.name,
        **{c: sum(j[c] for j in judges) for c in ("verdicts", "tokens_in", "tokens_cached", "tokens_out")},
        "seconds": None if None in seconds else sum(seconds),
        "gpu_seconds": None if None in gpu else sum(gpu),
    }


def _usage(reader: Reader, side: Side, filters: Filters) -> Row:
    """What the side's answers took their generator, as far as the traces say so."""
    return {"side": side.name, **ask(reader, "usage", **side.scope(filters.app)).to_pylist()[0]}


def _said(number: str) -> str:
    return number.replace("_", " ")


def _join(*notes: str) -> str:
    return "; ".join(dict.fromkeys(notes))
