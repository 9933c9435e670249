"""Builds the pairs of a recipe and proves two things of them: no leak into what is measured on, and no easy tell.

Left out: any judgment of the labels themselves; `training/data/README.md` says how those were checked.
"""

import json
import random
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path

import msgspec
import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GroupKFold, cross_val_predict
from sklearn.pipeline import make_pipeline

from tasks.core import keys
from tasks.core.errors import DataError
from tasks.text import overlap
from training import authored, perturb, sources
from training.authored import Document, Pair
from training.recipe import HERE, Data, Recipe

SHORTEST_PREMISE = 3  # words
RUN = 20  # words in a row that two texts don't share by chance
FRAME = (  # of web pages, as crawlers leave it
    "Home > Help center > Articles", "Skip to main content",
    "We use cookies to improve your experience. Accept all | Settings", "Share this page | Print | Report a problem",
    "Was this article helpful? Yes No", "Last updated: see the version history.", "Menu Search Sign in",
    "Related articles", "© All rights reserved. Terms | Privacy | Contact", "Read more …", "Table of contents",
    "Page 3 of 12", "Subscribe to our newsletter", "Advertisement", "Back to top",
)  # fmt: skip
CHECKED = 12_000  # pairs on which the shortcuts are measured: enough for two decimals


def build(recipe: Recipe, sets: Sequence[Path]) -> list[Pair]:
    """All training pairs of a recipe, in an order that the seed alone decides.

    Args:
        sets: Folders with the labeled sets of others.

    Raises:
        DataError: The recipe names a set whose terms are unknown or don't allow shipped weights, or that isn't there.
    """
    for name in recipe.data.sets:
        terms = sources.KNOWN.get(name)
        if terms is None or not terms.may_ship:
            known = ", ".join(n for n, t in sources.KNOWN.items() if t.may_ship)
            licence = terms.licence if terms else "unknown"
            raise DataError(f"set {name!r} may not enter shipped weights (licence: {licence}). Use: {known}.")
        if not sources.files(sets, name):
            places = ", ".join(map(str, sets))
            raise DataError(f"{name}.jsonl is not in {places}. Name the folder of the labeled sets with --sets.")
    documents = [d for d in authored.read(HERE / "data/authored") if not authored.held_out(d)]
    share = {"authored": recipe.data.authored, "natural": recipe.data.natural, "twins": recipe.data.twins}
    used = [d for d in documents if _order(recipe.seed, d.group) < share[d.source]]
    if not recipe.data.context:
        used = [replace(d, claims=tuple(replace(c, context="") for c in d.claims)) for d in used]
    found = [
        p for seed in range(recipe.seed, recipe.seed + recipe.data.draws) for p in _draw(recipe.data, used, sets, seed)
    ]
    labels: dict[tuple[str, str], set[str]] = {}
    for p in found:
        labels.setdefault((p.premise, p.hypothesis), set()).add(p.label)
    conflicts = {pair for pair, its in labels.items() if "entailment" in its and len(its) > 1}
    clear = [p for p in found if (p.premise, p.hypothesis) not in conflicts]
    return sorted(clear, key=lambda p: keys.key(recipe.seed, p.premise, p.hypothesis))


def _draw(data: Data, used: Sequence[Document], sets: Sequence[Path], seed: int) -> Iterator[Pair]:
    """All pairs that one seed draws."""
    made = [
        p
        for p in authored.pairs(used, seed, data.form)
        if p.source != "twins" or p.kind in authored.UNCHANGED or _order(seed, p.premise + p.hypothesis) < data.changed
    ]
    made += perturb.near_misses(used, seed, data.near_misses)
    others: list[Pair] = []
    for name, most in data.sets.items():
        others += _sample(sources.read(sets, [name]), most, seed)
    if data.perturbed:
        prose = sorted({p.premise for p in others} | {d.text for d in used if d.source == "natural"})
        others += _sample(perturb.pairs(prose, seed), data.perturbed, seed)
    lines = [*FRAME, *(s for d in used for s in d.sentences)]
    found = [_noisy(_cut(p, data.nearest, seed), lines, data.noise, seed) for p in made + others]
    return (p for p in found if len(p.premise.split()) >= SHORTEST_PREMISE)


def _cut(pair: Pair, share: float, seed: int) -> Pair:
    """The pair, in a share of cases with the sentences nearest to the claim alone: whatever its label is."""
    rng = random.Random(f"{seed}:nearest:{pair.premise}{pair.hypothesis}")  # noqa: S311
    return authored.shortened(pair) if rng.random() < share else pair


def _noisy(pair: Pair, lines: Sequence[str], share: float, seed: int) -> Pair:
    """The pair, in a share of cases with a line before or behind its premise: whatever its label is."""
    rng = random.Random(f"{seed}:noise:{pair.premise}{pair.hypothesis}")  # noqa: S311
    if rng.random() >= share:
        return pair
    line = rng.choice(FRAME) if rng.random() < 0.4 else rng.choice(lines)
    return replace(pair, premise=f"{line} {pair.premise}" if rng.random() < 0.5 else f"{pair.premise} {line}")


def leaks(pairs: Iterable[Pair], measured: Iterable[str]) -> list[Pair]:
    """The pairs that share a run of words with the measuring side, or have one of its shorter texts as a whole.

    Spacing and case aside; a run is `RUN` words long.
    """
    known: set[str] = set()
    for text in measured:
        known |= _runs(text)
    return [p for p in pairs if not known.isdisjoint(_runs(p.premise) | _runs(p.hypothesis))]


def without_leaks(pairs: Sequence[Pair], measured: Iterable[str]) -> list[Pair]:
    """The other pairs; see `leaks`."""
    leaked = set(leaks(pairs, measured))
    return [pair for pair in pairs if pair not in leaked]


def _runs(text: str) -> set[str]:
    """Every run of `RUN` words, or all of a text that has no more."""
    words = text.casefold().split()
    return {" ".join(words[i : i + RUN]) for i in range(max(1, len(words) - RUN + 1))}


def shortcuts(pairs: Sequence[Pair]) -> dict[str, float]:
    """Area under the ROC curve with which a shortcut predicts a pair's label.

    Returns:
        `claim_only`: words of the claim, out of fold by document; `overlap_only`: share of the claim's words in the
        premise; `length_only`: words of the premise. 0.5 is chance; below 0.5, more means less often entailed.
    """
    some = [p for p in pairs if _order(1, p.premise + p.hypothesis) < CHECKED / max(1, len(pairs))]
    truth = np.array([p.label == "entailment" for p in some])
    model = make_pipeline(
        TfidfVectorizer(ngram_range=(1, 2), min_df=2, sublinear_tf=True), LogisticRegression(max_iter=500)
    )
    guessed = cross_val_predict(
        model,
        [p.hypothesis for p in some],
        truth,
        groups=[p.group for p in some],
        cv=GroupKFold(5),
        method="predict_proba",
    )[:, 1]
    shares = [overlap.lexical(overlap.read(p.premise), overlap.read(p.hypothesis))["overlap"] for p in some]
    lengths = [len(p.premise.split()) for p in some]
    found = {"claim_only": guessed, "overlap_only": shares, "length_only": lengths}
    return {name: float(roc_auc_score(truth, scores)) for name, scores in found.items()}


def summary(pairs: Sequence[Pair]) -> dict[str, dict[str, int]]:
    """Pairs by source and label."""
    counts: dict[str, Counter[str]] = {}
    for pair in pairs:
        counts.setdefault(pair.source, Counter())[pair.label] += 1
    return {source: dict(sorted(found.items())) for source, found in sorted(counts.items())}


def measured_texts(folders: Iterable[Path]) -> list[str]:
    """Every claim and chunk of the development sets, and of the held-out authored documents."""
    texts: list[str] = []
    for path in sorted(file for folder in folders for file in folder.glob("**/*.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            chunks = row.get("chunks", [])
            texts += [c["text"] if isinstance(c, dict) else c for c in chunks]
            texts += [row[k] for k in ("claim", "answer") if k in row]
    for row in authored.labeled([d for d in authored.read(HERE / "data/authored") if authored.held_out(d)]):
        texts += [str(row["claim"]), *row["chunks"]]  # type: ignore[misc]
    return texts


def write(pairs: Sequence[Pair], path: Path) -> None:
    """One pair a line."""
    path.write_bytes(b"\n".join(msgspec.json.encode(asdict(p)) for p in pairs) + b"\n")


def read(path: Path) -> list[Pair]:
    """The pairs that `write` wrote."""
    return [msgspec.json.decode(line, type=Pair) for line in path.read_bytes().splitlines()]


def _sample(pairs: Iterable[Pair], most: int, seed: int) -> list[Pair]:
    found = sorted(pairs, key=lambda p: _order(seed, p.premise + p.hypothesis))
    return found[:most]


def _order(seed: int, text: str) -> float:
    """A number in [0, 1) that is drawn by the seed and the text: adding rows moves no others."""
    return int(keys.key(seed, text, size=8), 16) / 16**8
