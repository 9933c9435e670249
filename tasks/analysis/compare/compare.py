"""`leadline compare`: compare two arms, reading only the published warehouse.

Method: docs/methods.md#noise-and-confidence and docs/methods.md#judge-versions-and-backfill.

Judges and recipes are compared on the same traces and claims. Generators and prompt versions are compared on the same
questions if both answered enough of them. Ranges of days are compared by their means. Left out: resolving selectors
(`arms.py`), and showing the results (`tasks/publish/documents/comparison.py`).
"""

from collections.abc import Sequence

import polars as pl

from tasks.analysis.compare.arms import Arm, resolve
from tasks.analysis.compare.claims import against_people, flipped, labels, separate_claims
from tasks.analysis.compare.differences import Populations, grouped, numbers_of, only, pair_estimate
from tasks.analysis.compare.drift import attribute, backfill
from tasks.analysis.compare.results import MAIN, Comparison, Drift, Group, Noise
from tasks.analysis.frames import select
from tasks.core.errors import UsageError
from tasks.run.selectors import Filters, Row
from tasks.stats.comparison import signal_to_noise, spread
from tasks.store.warehouse import Reader


def compare(reader: Reader, selectors: tuple[str, str], filters: Filters, number: str | None, flips: int) -> Comparison:
    """Compare two arms.

    Args:
        selectors: Selectors of baseline and candidate, such as `judge:nli`.
        number: The main number, which is also compared by app and generator and with its noise. By default, the main
            number of the recipes' method.
        flips: Largest number of flipped claims to show with their texts.

    Raises:
        UsageError: A selector is unknown, an arm has no scores, or the arms have nothing in common.
    """
    a, b, notes = resolve(reader, selectors, filters)
    if a.kind in ("judge", "recipe"):
        return _same_traces(reader, a, b, filters, number, flips, notes)
    return _two_populations(reader, a, b, filters, number, notes)


def _same_traces(
    reader: Reader, a: Arm, b: Arm, filters: Filters, number: str | None, flips: int, notes: list[str]
) -> Comparison:
    scope = {"recipe_a": a.recipe["recipe"], "recipe_b": b.recipe["recipe"], **filters.scope}
    covered = select(reader, "compare/coverage", **scope).row(0, named=True)
    if not covered["n_both"]:
        raise UsageError(
            f"{a.name} and {b.name} have no scored trace in common. Score the days of one with the other first: "
            f"{backfill(b.recipe, a.recipe['first_date'], a.recipe['last_date'])}."
        )
    rows = select(reader, "compare/paired_numbers", **scope)
    numbers = numbers_of(rows.filter(pl.col("n") > 0))
    name = _main_number(number, numbers)
    only_a, only_b = only(rows, name).select("n_only_a", "n_only_b").sum().row(0)
    if only_a or only_b:
        notes.append(
            f"{only_a:,} traces have {_words(name)} under A only, {only_b:,} under B only; no difference includes them."
        )
    estimates = {n: pair_estimate(only(rows, n), n) for n in numbers}
    main = estimates[name]
    same_claims = a.recipe["extractor_version"] == b.recipe["extractor_version"]
    if not same_claims:
        notes.append("The two recipes cut answers into different claims: labels and patterns are not compared.")
    return Comparison(
        kind=a.kind,
        baseline=a.names,
        candidate=b.names,
        filters=filters,
        number=name,
        main=main,
        pairing="traces",
        left_out=(covered["n_only_a"], covered["n_only_b"]),
        estimates=tuple(Group("", n, e) for n, e in estimates.items()),
        signal=(_judge_noise(reader, (a, b), (main.n_a, main.n_b), name, main.difference),),
        by_app=grouped([rows], name, "app", pair_estimate),
        by_generator=grouped([rows], name, "generator", pair_estimate),
        labels=labels(select(reader, "compare/labels", **scope)) if same_claims else None,
        people=against_people(reader, a, b, filters) if same_claims else None,
        patterns=tuple(select(reader, "compare/patterns", **scope).to_dicts()) if same_claims else (),
        flips=flipped(reader, scope, flips) if same_claims and flips else (),
        cost=tuple(_cost(reader, arm, other, filters) for arm, other in ((a, b), (b, a))),
        notes=tuple(notes),
    )


def _two_populations(
    reader: Reader, a: Arm, b: Arm, filters: Filters, number: str | None, notes: list[str]
) -> Comparison:
    of_a, of_b = rows = [select(reader, "compare/numbers", **arm.scope(filters.app)) for arm in (a, b)]
    numbers = numbers_of(of_a, of_b)
    name = _main_number(number, numbers)
    both = Populations(of_a, of_b, name, may_pair=a.kind != "dates")
    estimates = {n: both.estimate(only(of_a, n), only(of_b, n), n) for n in numbers}
    main = estimates[name]
    drift: tuple[Drift, ...] = ()
    if a.kind == "dates":
        drift = attribute(reader, a, b, filters, both.main, notes)
    elif both.pairs:
        notes.append(f"Paired: {both.shared:,} questions that both answered, the mean of each; others are left out.")
    else:
        shared = f"only {both.shared:,}" if both.shared else "none"
        notes.append(f"Not paired, since {shared} of the questions were answered by both: two samples are compared.")
    return Comparison(
        kind=a.kind,
        baseline=a.names,
        candidate=b.names,
        filters=filters,
        number=name,
        main=main,
        pairing="questions" if both.pairs else "none",
        left_out=(both.questions[0] - both.shared, both.questions[1] - both.shared) if both.pairs else (0, 0),
        estimates=tuple(Group("", n, e) for n, e in estimates.items()),
        signal=(
            _judge_noise(reader, (a, b), both.sizes(), name, main.difference),
            _repeat_noise(both, main.difference),
        ),
        by_app=grouped(rows, name, "app", both.estimate),
        by_generator=() if a.kind == "generator" else grouped(rows, name, "generator", both.estimate),
        drift=drift,
        **separate_claims(reader, a, b, filters),
        cost=tuple(
            {"arm": arm.name, **select(reader, "compare/usage", **arm.scope(filters.app)).row(0, named=True)}
            for arm in (a, b)
        ),
        notes=tuple(notes),
    )


def _main_number(wanted: str | None, numbers: Sequence[str]) -> str:
    if wanted in numbers:
        return str(wanted)
    if wanted is not None:
        raise UsageError(f"--number {wanted}: not available in both arms. They have {', '.join(numbers) or 'none'}.")
    found = [n for n in (*MAIN, *numbers) if n in numbers]
    if not found:
        raise UsageError("the two arms have no number in common: they have no scores, or scores of different methods.")
    return found[0]


def _judge_noise(
    reader: Reader, arms: tuple[Arm, Arm], sizes: tuple[float, float], number: str, difference: float | None
) -> Noise:
    """Estimate how much identical runs differ because of the judges' noise.

    Args:
        sizes: Effective number of independent traces of each arm.
    """
    (a, note_a), (b, note_b) = (_judge_variance(reader, arm.recipe, number) for arm in arms)
    noise = spread(a, sizes[0], b, sizes[1])
    return Noise("judge", noise, signal_to_noise(difference, noise), "; ".join(dict.fromkeys((note_a, note_b))))


def _repeat_noise(both: Populations, difference: float | None) -> Noise:
    """Estimate how much identical runs differ, from questions with several traces."""
    (a, b), (size_a, size_b) = both.repeats(), both.sizes()
    noise = spread(a, size_a, b, size_b)
    note = "Measured on repeated questions; the judge's noise is in it"
    if noise is None:
        note = "Measured where some questions have several traces, in both arms"
    return Noise("repeats", noise, signal_to_noise(difference, noise), note)


def _judge_variance(reader: Reader, recipe: Row, number: str) -> tuple[float | None, str]:
    """Variance of a trace's score from the judge's noise, with a note on the measurement or on how to measure it.

    Noise of the judges of a cascade is assumed to be independent, so their variances add up.
    """
    if number.startswith("grade_"):
        return None, "The noise of a grader is not measured"
    rows = select(reader, "compare/noise", recipe=recipe["recipe"])
    judge = recipe["judge_name"]
    if not {*recipe["judge_versions"]} <= {*rows["judge_version"]}:
        days = f"--from {recipe['first_date']} --to {recipe['last_date']}"
        how = f"leadline noise --sample 500 {days}"
        return None, f"{judge}: never measured under recipe {recipe['recipe_name']!r} ({how})"
    if any(rows["number"] != number):
        return None, f"{judge}: measured of {_words(rows['number'][0])} only"
    variance = sum(sd**2 for sd in rows["trace_sd"])
    exactly = "" if variance else ": it repeats itself exactly, so that any difference is one of labels"
    return variance, f"{judge}: {rows['n'].sum():,} requests judged again{exactly}"


def _cost(reader: Reader, arm: Arm, other: Arm, filters: Filters) -> Row:
    """Cost of judging the common traces of both arms with this arm's judges."""
    recipes = {"recipe": arm.recipe["recipe"], "other": other.recipe["recipe"]}
    judges = select(reader, "compare/cost", **recipes, **filters.scope)
    counts = judges.select(pl.col("verdicts", "tokens_in", "tokens_cached", "tokens_out").sum()).row(0, named=True)
    used = judges.filter(pl.col("verdicts") > 0).select("seconds", "gpu_seconds")
    seconds = {c.name: None if c.null_count() else c.sum() for c in used}  # unknown if one judge's speed is
    return {"arm": arm.name, **counts, **seconds}


def _words(number: str) -> str:
    return number.replace("_", " ")
