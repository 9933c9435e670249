"""Coverage of the 95% intervals in simulated nights with few and many questions.

    python -m bench.intervals [--nights 2000] [--questions 5 15 50] [--bootstrap] [--all]
    python -m bench.intervals --samples

A world is a population of questions with a known true value; each night draws some questions. Printed are the lowest,
mean and highest coverage over the worlds of a kind, and the number of worlds outside of 92 to 98%; with `--all`, every
world. The intervals are compared with Student's t and with Wilson's interval by the design effect, both from the same
cluster-robust variance, and with `--bootstrap` (slow) with the percentile bootstrap, with expanded percentiles for few
questions. `--samples` prints width and coverage of the intervals for a day of a million answers of which only a share
is judged. Left out: differences and corrected means (`tests/stats`).
"""

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from rich.console import Console
from scipy import special

from bench import common
from tasks.stats.intervals import Z, intervals, means
from tasks.stats.jackknife import macro, share_of_repeats

Numbers: TypeAlias = npt.NDArray[np.float64]
Ends: TypeAlias = tuple[Numbers, Numbers]
Values: TypeAlias = Callable[[np.random.Generator, tuple[int, ...]], Numbers]  # draws independent values
SIZES = (5, 15, 50)
LOW, HIGH = 0.92, 0.98
RESAMPLES = 600
# Scores of the bundled sample's three nights by judge `similarity`, at 24 quantiles.
SAMPLE = {
    "groundedness": [0.0] * 16 + [0.25, 0.33, 0.7] + [1.0] * 5,
    "faithfulness": [0.0] * 3 + [0.33] * 3 + [0.41] + [0.5] * 3 + [0.52] + [0.67] * 5 + [0.75, 0.79] + [1.0] * 6,
    "utilization": [0.0] * 3 + [0.2] + [0.25] * 3 + [0.33] * 8 + [0.35] + [0.5] * 3 + [0.63] + [0.67] * 3 + [0.72],
    "context relevance": [
        *(0.11, 0.23, 0.36, 0.39, 0.41, 0.44, 0.45, 0.46, 0.49, 0.5, 0.52, 0.53),
        *(0.54, 0.55, 0.57, 0.58, 0.61, 0.63, 0.64, 0.65, 0.65, 0.69, 0.77, 0.78),
    ],
}
GRADES = {  # probabilities of the grades 1 to 5
    "mostly 5": (0.05, 0.05, 0.1, 0.3, 0.5),
    "nearly all 5": (0.02, 0.03, 0.05, 0.1, 0.8),
    "around 3": (0.05, 0.2, 0.5, 0.2, 0.05),
    "1 or 5": (0.4, 0.05, 0.1, 0.05, 0.4),
    "nearly all 4": (0.02, 0.03, 0.05, 0.8, 0.1),
}


@dataclass(frozen=True)
class World:
    """A population of questions.

    Attributes:
        kind: Kind of number.
        truth: Returns the true value of the whole population.
        draw: Returns (nights, m) sums and counts of the m questions of each night; None if the number is not a mean.
        ends: Returns (nights,) ends of each night's interval; None if the number is a mean.
    """

    kind: str
    name: str
    truth: Callable[[], float]
    draw: Callable[[np.random.Generator, int, int], Ends] | None = None
    ends: Callable[[np.random.Generator, int, int], Ends] | None = None


# Populations ----------------------------------------------------------------------------------------------------------


def share(p: float) -> Values:
    return lambda rng, shape: (rng.random(shape) < p).astype(np.float64)


def discrete(values: Sequence[float], p: Sequence[float] | None = None) -> Values:
    return lambda rng, shape: rng.choice(np.array(values), shape, p=p)


def beta(a: float, b: float, at_top: float = 0.0, at_bottom: float = 0.0) -> Values:
    """Beta distribution with additional mass at the ends of the scale."""

    def draw(rng: np.random.Generator, shape: tuple[int, ...]) -> Numbers:
        u = rng.random(shape)
        inside = np.where(u < at_top + at_bottom, 0.0, rng.beta(a, b, shape))
        return np.where(u < at_top, 1.0, inside)

    return draw


def traces(how: str, rng: np.random.Generator, nights: int, m: int) -> npt.NDArray[np.int64]:
    """(nights, m) number of observations of each question."""
    if how == "1 to 6":
        return 1 + rng.poisson(1.5, (nights, m))
    if how == "some again and again":  # one in five questions: about 7 times, occasionally 25 times
        return np.where(rng.random((nights, m)) < 0.8, 1, rng.geometric(0.15, (nights, m)))
    if how == "claims":  # one or several answers with one to eight claims each
        answers = 1 + rng.poisson(0.7, (nights, m))
        each = rng.integers(1, 9, (nights, m, int(answers.max())))
        return np.where(np.arange(each.shape[-1]) < answers[..., None], each, 0).sum(axis=-1)
    return np.full((nights, m), int(how))


def mean_world(kind: str, name: str, values: Values, truth: float, how: str, alike: float) -> World:
    """A world of means. Observations of one question have correlation `alike`."""

    def draw(rng: np.random.Generator, nights: int, m: int) -> Ends:
        counts = traces(how, rng, nights, m)
        shape = (nights, m, int(counts.max()))
        own = rng.random(shape) < np.sqrt(alike)
        drawn = np.where(own, values(rng, (nights, m, 1)), values(rng, shape))
        return np.where(np.arange(shape[-1]) < counts[..., None], drawn, 0.0).sum(axis=-1), counts.astype(np.float64)

    asked = f"asked {how} times" if how in "125" else how
    return World(kind, f"{name}, {asked}, correlation {alike:g}", lambda: truth, draw)


WAYS = [("1", 0.0), *((n, r) for n in "25" for r in (0.0, 0.3)), *(("1 to 6", r) for r in (0.0, 0.3, 1.0))]
SHARES = {f"p = {p}": (share(p), p) for p in (0.05, 0.1, 0.2, 0.5, 0.8, 0.9, 0.95)}
SCORES = {
    **{name: (discrete(values), float(np.mean(values))) for name, values in SAMPLE.items()},
    "85% at the top": (beta(1, 1, 0.85), 0.925),
    "70% at the top": (beta(1, 1, 0.7), 0.85),
    "30% at 0, 50% at 1": (beta(1, 1, 0.5, 0.3), 0.6),
    "beta(½, 5)": (beta(0.5, 5), 1 / 11),
    "beta(8, 2)": (beta(8, 2), 0.8),
    "beta(20, 20)": (beta(20, 20), 0.5),
}
GRADED = {name: (discrete(np.arange(5) / 4, p), float(np.arange(5) / 4 @ np.array(p))) for name, p in GRADES.items()}


def worlds() -> Iterator[World]:
    """Yield all worlds, ordered by kind."""
    for kind, found in (("shares", SHARES), ("scores", SCORES), ("grades", GRADED)):
        for name, (values, truth) in found.items():
            yield from (mean_world(kind, name, values, truth, *way) for way in WAYS)
    for p in (0.05, 0.1, 0.2):
        yield from (mean_world("claims", f"p = {p}", share(p), p, "claims", r) for r in (0.0, 0.1, 0.3))
    for accuracy in (0.4, 0.7, 0.9):
        yield from (quotient(accuracy, which) for which in ("precision", "recall", "F1"))
    for sources in (5, 10, 30):
        yield from (macro_world(sources, which) for which in ("precision", "recall", "F1"))
    for name in ("groundedness", "faithfulness", "beta(8, 2)"):
        for alike in (0.0, 0.3, 0.7):
            yield from (repeats_world(name, alike, what) for what in ("spread", "range", "share"))
    for name in ("p = 0.8", "p = 0.9"):
        for alike in (0.0, 0.3, 1.0):
            yield mean_world("some again and again", name, *SHARES[name], "some again and again", alike)
    for name in ("groundedness", "85% at the top", "beta(8, 2)"):
        for alike in (0.0, 0.3, 1.0):
            yield mean_world("some again and again", name, *SCORES[name], "some again and again", alike)


# GRACE and repeats ----------------------------------------------------------------------------------------------------


def counts_of(which: str, tp: Numbers, fp: Numbers, fn: Numbers) -> Ends:
    """Numerator and denominator of precision, recall or F1."""
    return {"precision": (tp, tp + fp), "recall": (tp, tp + fn), "F1": (2 * tp, 2 * tp + fp + fn)}[which]


def quotient(accuracy: float, which: str) -> World:
    """Micro precision, recall or F1: answers cite right and wrong sources, and harder questions fail more often."""

    def draw(rng: np.random.Generator, nights: int, m: int) -> Ends:
        n = 1 + rng.poisson(0.5, (nights, m))
        tp = rng.binomial(n, rng.beta(6 * accuracy, 6 * (1 - accuracy), (nights, m)))
        fp = rng.binomial(n - tp, 0.6) + rng.binomial(n, 0.15)
        above, below = counts_of(which, *(x.astype(np.float64) for x in (tp, fp, n - tp)))
        return above, below

    def truth() -> float:
        above, below = draw(np.random.default_rng(0), 100, 20_000)
        return float(above.sum() / below.sum())

    return World("GRACE, micro", f"{which}, accuracy {accuracy}", truth, draw)


def macro_world(sources: int, which: str) -> World:
    """Macro mean over sources with different accuracies. Misses often and hits sometimes cite another source."""
    accuracy = np.random.default_rng(sources).beta(2.8, 1.2, sources)

    def night(rng: np.random.Generator, m: int) -> tuple[npt.NDArray[Any], ...]:
        right, other = rng.integers(0, sources, (2, m))
        hit = rng.random(m) < accuracy[right]
        wrong = (rng.random(m) < np.where(hit, 0.15, 0.6)) & (other != right)
        at, none = np.arange(m), np.zeros(int(wrong.sum()))
        found = ((hit, none), (np.zeros(m), none + 1), (~hit, none), (np.ones(m), none), (right, other[wrong]))
        return *(np.concatenate(part).astype(np.float64) for part in found), np.concatenate([at, at[wrong]])

    def ends(rng: np.random.Generator, nights: int, m: int) -> Ends:
        found = []
        for _ in range(nights // 4):
            tp, fp, fn, support, source, question = night(rng, m)
            above, below = counts_of(which, tp, fp, fn)
            found.append(intervals(macro(above, below, support, source.astype(np.int64), question, np.ones(m))))
        low, high = np.array(found).reshape(-1, 2).T
        return low, high

    def truth() -> float:
        tp, fp, fn, support, source, question = night(np.random.default_rng(0), 400_000)
        above, below = counts_of(which, tp, fp, fn)
        return float(macro(above, below, support, source.astype(np.int64), question, np.ones(400_000)).values[0])

    return World("GRACE, macro", f"{which}, {sources} sources", truth, ends=ends)


def repeats_world(name: str, alike: float, what: str) -> World:
    """Differences between two to five answers to the same question."""
    values, _ = SCORES[name]

    def draw(rng: np.random.Generator, nights: int, m: int) -> tuple[Numbers, ...]:
        n = rng.integers(2, 6, (nights, m))
        shape = (nights, m, 5)
        drawn = np.where(rng.random(shape) < np.sqrt(alike), values(rng, (nights, m, 1)), values(rng, shape))
        there = np.arange(5) < n[..., None]
        mean = np.where(there, drawn, 0).sum(axis=-1) / n
        variance = np.where(there, (drawn - mean[..., None]) ** 2, 0).sum(axis=-1) / (n - 1)
        reach = np.where(there, drawn, -np.inf).max(axis=-1) - np.where(there, drawn, np.inf).min(axis=-1)
        return n.astype(np.float64), mean, variance, reach

    def ends(rng: np.random.Generator, nights: int, m: int) -> Ends:
        of = np.repeat(np.arange(nights), m)
        n, mean, variance, reach = (x.ravel() for x in draw(rng, nights, m))
        if what == "share":
            return share_of_repeats(n, mean, variance, of, nights)
        values, most = (np.sqrt(variance), 0.5**0.5) if what == "spread" else (reach, 1.0)
        return intervals(means(values, np.ones_like(values), of, None, nights), 0.0, most)

    def truth() -> float:
        _, _, variance, reach = draw(np.random.default_rng(0), 100, 2_000)
        return {"spread": float(np.sqrt(variance).mean()), "range": float(reach.mean()), "share": 1 - alike}[what]

    kind = "repeats: share of the variance" if what == "share" else "repeats: spread and range"
    return World(kind, f"{what} of {name}, correlation {alike:g}", truth, ends=ends)


# Procedures -----------------------------------------------------------------------------------------------------------


def ours(totals: Numbers, counts: Numbers) -> Ends:
    nights, m = totals.shape
    return intervals(means(totals.ravel(), counts.ravel(), np.repeat(np.arange(nights), m), None, nights))


def _robust(totals: Numbers, counts: Numbers) -> tuple[Numbers, Numbers, int]:
    """Means, their cluster-robust variances, and the number of questions."""
    m, n = totals.shape[1], counts.sum(axis=1)
    mean = totals.sum(axis=1) / n
    return mean, m / (m - 1) * ((totals - mean[:, None] * counts) ** 2).sum(axis=1) / n**2, m


def student(totals: Numbers, counts: Numbers) -> Ends:
    """Mean ± t standard errors, clipped to the scale."""
    mean, variance, m = _robust(totals, counts)
    half = special.stdtrit(m - 1, 0.975) * np.sqrt(variance)
    return np.clip(mean - half, 0, 1), np.clip(mean + half, 0, 1)


def design_effect(totals: Numbers, counts: Numbers) -> Ends:
    """Wilson's interval with p (1 − p) / variance as sample size; if nothing varies, with the number of questions."""
    mean, variance, m = _robust(totals, counts)
    with np.errstate(divide="ignore", invalid="ignore"):
        a = Z**2 / np.where(variance > 1e-12, mean * (1 - mean) / variance, m)
    middle, half = (mean + a / 2) / (1 + a), np.sqrt(mean * (1 - mean) * a + a**2 / 4) / (1 + a)
    return middle - half, middle + half


def bootstrap(totals: Numbers, counts: Numbers) -> Ends:
    """Percentile bootstrap over questions, with expanded percentiles for few questions (Hesterberg 2015)."""
    nights, m = totals.shape
    outside = special.ndtr(-special.stdtrit(m - 1, 0.975) * np.sqrt(m / (m - 1)))
    rng, low, high = np.random.default_rng(1), np.empty(nights), np.empty(nights)
    for i in range(nights):
        at = rng.integers(0, m, (RESAMPLES, m))
        drawn = totals[i][at].sum(axis=1) / counts[i][at].sum(axis=1)
        low[i], high[i] = np.quantile(drawn, [outside, 1 - outside])
    return low, high


KINDS = (
    *("shares", "scores", "grades", "claims", "GRACE, micro", "GRACE, macro"),
    *("repeats: spread and range", "repeats: share of the variance", "some again and again"),
)
PROCEDURES: dict[str, Callable[[Numbers, Numbers], Ends]] = {
    "ours": ours,
    "Student's t": student,
    "Wilson by design effect": design_effect,
    "bootstrap": bootstrap,
}


def coverage(world: World, m: int, nights: int, procedure: str = "ours") -> float:
    """Share of nights with an interval whose interval contains the truth; each night has m questions."""
    rng = np.random.default_rng([m, *world.name.encode()])
    if world.draw is None:
        assert world.ends is not None
        low, high = world.ends(rng, nights, m)
    else:
        totals, counts = world.draw(rng, nights, m)
        some = counts.sum(axis=1) > 0
        low, high = PROCEDURES[procedure](totals[some], counts[some])
    known, truth = ~np.isnan(low), world.truth()
    held = (low[known] <= truth + 1e-9) & (truth - 1e-9 <= high[known])
    return float(held.mean())


def of_sample(values: Numbers, taken: float, nights: int) -> tuple[float, float]:
    """Half the mean width of the interval in points of 100, and its coverage of the mean of all answers.

    Args:
        taken: Probability that an answer is judged.
    """
    rng, truth = np.random.default_rng(0), values.mean()
    samples = (values[rng.random(len(values)) < taken] for _ in range(nights))
    low, high = np.array([intervals(means(one, np.ones_like(one))) for one in samples]).reshape(-1, 2).T
    return float(50 * (high - low).mean()), float(((low <= truth) & (truth <= high)).mean())


# Showing --------------------------------------------------------------------------------------------------------------


def show_samples(nights: int, day: int = 1_000_000) -> None:
    columns = ("share", "judged", "scores", "half width", "coverage")
    table = common.table(f"A day of {day:,} answers, {nights:,} samples of each share", columns, left=(2,))
    for name in ("groundedness", "85% at the top"):
        values = SCORES[name][0](np.random.default_rng(1), (day,))
        for taken in (1.0, 0.1, 0.01, 0.001):
            half, held = of_sample(values, taken, nights if taken < 1 else 1)
            table.add_row(
                f"{taken:.1%}", f"{day * taken:,.0f}", name, f"{half:.2f}", f"{held:.1%}" if taken < 1 else ""
            )
    Console(width=110).print(table)


def show(questions: Sequence[int], nights: int, procedures: Sequence[str], *, each: bool) -> None:
    console = Console(width=140)
    title = f"Coverage, {nights:,} nights each: lowest, mean, highest (worlds below 92% / above 98%)"
    columns = ("numbers", "worlds", "procedure", *(f"{m} questions" for m in questions))
    table = common.table(title, columns, left=(0, 2))
    for kind, of_kind in groupby(sorted(worlds(), key=lambda w: KINDS.index(w.kind)), key=lambda w: w.kind):
        found = list(of_kind)
        for procedure in procedures:
            if procedure != "ours" and found[0].draw is None:
                continue
            covered = np.array([[coverage(w, m, nights, procedure) for m in questions] for w in found])
            if each:
                for w, row in zip(found, covered, strict=True):
                    console.print(f"{kind}: {w.name}, {procedure}: " + ", ".join(f"{c:.3f}" for c in row))
            cells = [
                f"{100 * c.min():.1f}, {100 * c.mean():.1f}, {100 * c.max():.1f} ({(c < LOW).sum()}/{(c > HIGH).sum()})"
                for c in covered.T
            ]
            table.add_row(kind, f"{len(found)}", procedure, *cells)
    console.print(table)


def main() -> None:
    parser = common.parser(__doc__)
    parser.add_argument("--nights", type=int, default=2_000)
    parser.add_argument("--questions", type=int, nargs="+", default=SIZES)
    parser.add_argument("--bootstrap", action="store_true")
    parser.add_argument("--all", action="store_true", help="each world by itself")
    parser.add_argument("--samples", action="store_true", help="what a sample costs in width")
    given = parser.parse_args()
    warnings.simplefilter("ignore", RuntimeWarning)
    if given.samples:
        show_samples(min(given.nights, 200))
        return
    chosen = [p for p in PROCEDURES if given.bootstrap or p != "bootstrap"]
    show(given.questions, given.nights, chosen, each=given.all)


if __name__ == "__main__":
    main()
