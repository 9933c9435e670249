"""How far the embedded judge agrees with people: the tables of bench/README.md.

Every number of a set is by a fusion that was fitted to the other sets (`fuse.left_out`), and so are the baselines. A
claim counts by its best chunk; people's partially supported counts as not supported. Left out: the picture
(`chart.py`), other judges, and judges as they are configured (`bench.accuracy.agreement`).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import numpy as np
import numpy.typing as npt
from scipy.special import logit
from sklearn.metrics import roc_auc_score

from bench import marks
from bench.accuracy import fit_similarity
from bench.accuracy.agreement import Interval, Row, agreement
from bench.accuracy.fit_similarity import balanced
from bench.accuracy.labeled import Claims, Floats, Ints
from bench.common import ROOT
from tasks.judges.nli import FEATURES, SURFACE
from tasks.judges.similarity import FEATURES as PLAIN
from tasks.stats import risk
from training import fuse

PAGES = (ROOT / "README.md", ROOT / "bench/README.md")
SOURCE = "judge"  # of the marks in the pages
TITLES = {
    "expertqa": "ExpertQA", "hagrid": "HAGRID", "factcheck_gpt": "Factcheck-GPT", "wice": "WiCE",
    "qags_cnndm": "QAGS-CNN/DM", "fool_me_twice": "Fool Me Twice", "climate_fever": "Climate-FEVER",
    "covidfact": "COVID-Fact",
}  # fmt: skip
OWN_SETS = {"authored", "natural", "twins", "assistant"}  # written for Leadline
CAPTIONS = {
    "judge/agreement": "Agreement with people",
    "judge/confidence": "Confidence",
    "judge/labels": "The other labels",
    "judge/twins": "Minimal pairs",
    "judge/features": "Further features",
}
BINS = 10
COVERAGES = (100, 90, 80, 70, 60, 50, 30, 10)  # per cent of the claims that are answered
FEWEST_PAIRS = 15  # of a kind that gets its own row
LEAST_PENALTY = 1e-3  # baselines are hardly shrunk
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Read:
    """The features of every set: those of the judge, and those of `similarity`."""

    judge: Mapping[str, fuse.Sample]
    plain: Mapping[str, fuse.Sample]


@dataclass(frozen=True)
class Bin:
    """Claims whose p_supported lies in one tenth of [0, 1].

    Attributes:
        n: How many.
        p: Their mean p_supported.
        supported: Share of them that people call supported.
    """

    n: int
    p: float
    supported: float


@dataclass(frozen=True)
class Measured:
    """The judge on one set that its fusion was not fitted to.

    Attributes:
        odds: Log-odds that each claim is supported (claims,).
        contradiction: Log-odds of the model that it is contradicted (claims,).
        row: Agreement with its intervals.
    """

    claims: Claims
    odds: Floats
    contradiction: Floats
    row: Row

    @property
    def p(self) -> Floats:
        """p_supported of each claim (claims,)."""
        found: Floats = 1 / (1 + np.exp(-self.odds))
        return found

    @property
    def wrong(self) -> Bools:
        """Where the judge, which calls a claim supported or not, disagrees with people (claims,)."""
        found: Bools = (self.odds >= 0) != (self.claims.truth == 1)
        return found

    @property
    def bins(self) -> list[Bin]:
        """The reliability diagram: those of `BINS` equal bins that have claims."""
        return reliability(self.p, self.claims.truth)

    @property
    def doubt(self) -> Floats:
        """How near p_supported is to one half (claims,): abstaining starts with the highest."""
        found: Floats = -np.abs(self.odds)
        return found


@dataclass(frozen=True)
class Twins:
    """Minimal pairs: a supported claim and its twin that is not.

    Attributes:
        n: Pairs.
        ordered: Share in which the supported one has the higher p_supported; ties count half.
        accuracy: Balanced accuracy.
        both: Share in which both get the right label.
    """

    n: int
    ordered: float
    accuracy: float
    both: float


def read(sets: Mapping[str, Claims], cache: Path = fuse.CACHE) -> Read:
    """Features of all sets, which `cache` keeps between runs.

    Raises:
        SystemExit: There are fewer than two sets to fit to, or one has claims of one class only.
    """
    if len(set(sets) - fuse.MEASURED_ONLY) < 2:
        raise SystemExit(f"A set is measured by a fit to others. Name more than {', '.join(sets)} with --data.")
    for name, claims in sets.items():
        if not 0 < claims.truth.sum() < len(claims.labels):
            raise SystemExit(f"{name} needs supported and other claims, and has one of the two only. Leave it out.")
    judge, plain = fuse.unfitted(), fit_similarity.unfitted()
    found = [{n: fuse.sample(c, reader, cache) for n, c in sets.items()} for reader in (judge, plain)]
    judge.close()
    plain.close()
    return Read(*found)


# Measuring ------------------------------------------------------------------------------------------------------------


def measure(found: Read) -> dict[str, Measured]:
    """The judge on every set."""
    measured = {}
    for name, sample in found.judge.items():
        odds = sample.claims.best(fuse.left_out(found.judge, name, fuse.FUSED).odds(sample.table))
        contradiction = sample.claims.best(sample.table[:, FEATURES.index("contradiction")])
        measured[name] = Measured(sample.claims, odds, contradiction, _row(sample.claims, odds))
    return measured


def others(found: Read, name: str) -> dict[str, Row]:
    """Agreement of the judge's parts and of the baselines on one set, fitted to the others."""
    sample, plain = found.judge[name], found.plain[name]
    parts = {
        "windows alone": [FEATURES.index("windows")],
        "nearest alone": [FEATURES.index("nearest")],
        "without the model": [FEATURES.index(f) for f in SURFACE],
    }
    odds = {label: fuse.left_out(found.judge, name, columns).odds(sample.table) for label, columns in parts.items()}
    start = [float(f in {"cosine", "overlap"}) for f in PLAIN]
    for label, columns in (("`similarity`", range(len(PLAIN))), ("cosine", [PLAIN.index("cosine")])):
        fitted = fuse.left_out(found.plain, name, columns, LEAST_PENALTY, start, own=())
        odds[label] = fitted.odds(plain.table)
    return {label: _row(sample.claims, sample.claims.best(values)) for label, values in odds.items()}


def reliability(p: Floats, truth: Ints) -> list[Bin]:
    """Claims by tenths of p_supported; empty ones are left out."""
    at = np.clip((p * BINS).astype(np.int64), 0, BINS - 1)
    inside = [at == b for b in range(BINS)]
    return [Bin(int(i.sum()), float(p[i].mean()), float(truth[i].mean())) for i in inside if i.any()]


def ece(bins: Sequence[Bin]) -> float:
    """Expected calibration error: how far share and mean p differ, over claims (Naeini et al. 2015)."""
    return sum(b.n * abs(b.p - b.supported) for b in bins) / sum(b.n for b in bins)


def risk_at(doubt: Floats, wrong: Bools, coverage: float) -> float:
    """Share of wrong labels if that share of the claims is answered, those with the least doubt."""
    n = max(1, round(coverage * len(wrong)))
    return float(risk.shares(doubt, wrong)[n - 1])


def twins(claims: Claims, odds: Floats) -> dict[str, Twins]:
    """Minimal pairs by the kind of the twin that is not supported, most pairs first."""
    truth = claims.truth
    named = sorted((name, -truth[i], i) for i, name in enumerate(claims.pairs) if name)
    pairs = [[i for *_, i in both] for _, both in groupby(named, key=lambda row: row[0])]
    by: dict[str, list[tuple[float, float]]] = {}
    for right, wrong in (pair for pair in pairs if [truth[i] for i in pair] == [1, 0]):
        by.setdefault(claims.kinds[wrong], []).append((odds[right], odds[wrong]))
    return {kind: _twins(rows) for kind, rows in sorted(by.items(), key=lambda item: (-len(item[1]), item[0]))}


def together(found: Iterable[Twins]) -> Twins:
    """Several kinds as one."""
    kinds = list(found)
    n = sum(k.n for k in kinds)
    ordered, accuracy, both = (
        sum(k.n * getattr(k, name) for k in kinds) / n for name in ("ordered", "accuracy", "both")
    )
    return Twins(n, ordered, accuracy, both)


def _twins(rows: Sequence[tuple[float, float]]) -> Twins:
    right, wrong = np.array(rows).T
    ordered = (np.sign(right - wrong) + 1) / 2
    found, refused = right >= 0, wrong < 0
    return Twins(
        len(rows),
        float(ordered.mean()),
        float((found.mean() + refused.mean()) / 2),
        float((found & refused).mean()),
    )


def _row(claims: Claims, odds: Floats) -> Row:
    return agreement(claims.truth, (odds >= 0).astype(np.int64), odds, claims.clusters)


def _area(truth: Bools, scores: Floats) -> float | None:
    return float(roc_auc_score(truth, scores)) if 0 < truth.sum() < len(truth) else None


# Tables ---------------------------------------------------------------------------------------------------------------


def tables(found: Read, measured: Mapping[str, Measured]) -> dict[str, str]:
    """All tables in Markdown, by the names of their marks."""
    made = {
        "agreement": _agreement(found, measured),
        "confidence": _confidence(measured),
        "labels": _labels(measured),
        "twins": _kinds(measured),
        "features": _features(found.judge),
    }
    return {f"{SOURCE}/{name}": table for name, table in made.items()}


def numbers(measured: Mapping[str, Measured]) -> dict[str, str]:
    """Numbers within sentences, by the names of their marks: each set's, and those of all minimal pairs."""
    known: dict[str, str] = {}
    for name, m in measured.items():
        kept, caught = _kept_and_caught(m)
        known |= {
            f"{name}_accuracy": f"{m.row['balanced_accuracy'][0]:.2f}",
            f"{name}_kept": f"{kept:.0%}",
            f"{name}_caught": f"{caught:.0%}",
        }
        if kinds := twins(m.claims, m.odds):
            whole = together(kinds.values())
            known |= {
                f"{name}_pairs": str(whole.n),
                f"{name}_ordered": f"{whole.ordered:.0%}",
                f"{name}_both": f"{whole.both:.0%}",
            }
    return {f"{SOURCE}/{name}": number for name, number in known.items()}


def write(figures: Mapping[str, str], pages: Sequence[Path] = PAGES) -> None:
    """Put the figures between their marks in the pages."""
    for page in pages:
        page.write_text(marks.filled(page.read_text(encoding="utf-8"), figures, SOURCE), encoding="utf-8")


def title(name: str) -> str:
    """A set's name as its authors write it."""
    return TITLES.get(name, name)


def _agreement(found: Read, measured: Mapping[str, Measured]) -> str:
    rows: list[list[str]] = []
    means: list[list[float]] = []
    columns: list[str] = []
    for name, m in measured.items():
        rest = others(found, name)
        columns = list(rest)
        accuracy, area = m.row["balanced_accuracy"], m.row["auc"]
        cells = [f"{_interval(row['balanced_accuracy'])} / {row['auc'][0]:.3f}" for row in rest.values()]
        rows.append([title(name), f"{len(m.claims.labels):,}", _interval(accuracy), _interval(area), *cells])
        if name not in OWN_SETS:
            means.append([x for row in (m.row, *rest.values()) for x in (row["balanced_accuracy"][0], row["auc"][0])])
    if means:
        values = [f"{x:.3f}" for x in np.mean(means, axis=0)]
        pairs = [f"{a} / {b}" for a, b in zip(values[2::2], values[3::2], strict=True)]
        rows.append([_mean_of(len(means)), "", *values[:2], *pairs])
    return markdown(["set", "claims", "`nli`: balanced accuracy", "area", *columns], rows)


def _confidence(measured: Mapping[str, Measured]) -> str:
    rows, means = [], []
    for name, m in measured.items():
        at = [risk_at(m.doubt, m.wrong, c / 100) for c in COVERAGES]
        values = [*_kept_and_caught(m), ece(m.bins), risk.area(m.doubt, m.wrong), *at]
        rows.append([title(name), *(f"{x:.2f}" for x in values)])
        if name not in OWN_SETS:
            means.append(values)
    if means:
        rows.append([_mean_of(len(means)), *(f"{x:.2f}" for x in np.mean(means, axis=0))])
    risks = [f"wrong at {c}%" for c in COVERAGES]
    return markdown(["set", "supported kept", "others caught", "ECE", "AURC", *risks], rows)


def _labels(measured: Mapping[str, Measured]) -> str:
    rows = []
    for name, m in measured.items():
        labels = np.array(m.claims.labels)
        rest = labels != "supported"
        contradicted, partial = labels == "contradicted", labels == "partially_supported"
        if not (contradicted | partial).any():
            continue
        called = (m.odds < 0) & (m.contradiction >= logit(fuse.CONTRADICTED))  # and not supported
        both = int((called & contradicted).sum())
        areas = (_area(contradicted[rest], m.contradiction[rest]), _area(partial[rest], m.odds[rest]))
        ratios = [_ratio(both, int(of.sum())) if contradicted.any() else "" for of in (called, contradicted)]
        area, partial_area = ("" if x is None else f"{x:.2f}" for x in areas)
        rows.append([title(name), *ratios, area, f"{partial.sum():,}" if partial.any() else "", partial_area])
    columns = ["set", "`contradicted`: precision", "recall", "area", "partially supported", "area"]
    return markdown(columns, rows)


def _kinds(measured: Mapping[str, Measured]) -> str:
    rows = []
    for m in measured.values():
        kinds = twins(m.claims, m.odds)
        many = {kind: t for kind, t in kinds.items() if t.n >= FEWEST_PAIRS}
        few = [t for kind, t in kinds.items() if kind not in many]
        shown = dict(many)
        if few:
            shown[f"{len(few)} more kinds, together"] = together(few)
        if kinds:
            shown["all"] = together(kinds.values())
        rows += [
            [kind.replace("_", " "), str(t.n), f"{t.accuracy:.2f}", f"{t.ordered:.2f}", f"{t.both:.2f}"]
            for kind, t in shown.items()
        ]
    return markdown(["what differs", "pairs", "balanced accuracy", "right one higher", "both right"], rows)


def _features(samples: Mapping[str, fuse.Sample]) -> str:
    subsets = {"as shipped": list(fuse.FUSED)}
    subsets |= {f"with {f}": [*fuse.FUSED, i] for i, f in enumerate(FEATURES) if i not in fuse.FUSED}
    rows = []
    for label, columns in subsets.items():
        cells = []
        for name, sample in samples.items():
            odds = sample.claims.best(fuse.left_out(samples, name, columns).odds(sample.table))
            truth = sample.claims.truth
            area = roc_auc_score(truth, odds)
            cells.append(f"{balanced(truth, (odds >= 0).astype(np.int64)):.3f} / {area:.3f}")
        rows.append([label, *cells])
    return markdown(["features", *(title(name) for name in samples)], rows)


def markdown(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table between blank lines, as a page holds it."""
    lines = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n\n" + "\n".join(lines) + "\n\n"


def _kept_and_caught(m: Measured) -> tuple[float, float]:
    """Shares of the supported claims that are called so, and of the others that are not."""
    truth = m.claims.truth == 1
    return float((m.odds[truth] >= 0).mean()), float((m.odds[~truth] < 0).mean())


def _mean_of(n: int) -> str:
    return f"*mean of the {n} sets of others*"


def _interval(found: Interval) -> str:
    estimate, low, high = found
    return f"{estimate:.3f} [{low:.2f}, {high:.2f}]"


def _ratio(part: int, whole: int) -> str:
    return f"{part / whole:.2f} ({part} of {whole})" if whole else "n/a (0)"
