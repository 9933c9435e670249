"""How well trained models tell entailment by themselves, without fusion, on everything that people labeled.

The model reads the three sentences nearest to each claim, where a small model reads best.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from bench.accuracy.agreement import Row, judged
from bench.accuracy.labeled import Claims
from tasks.engines.classifier import ClassifierConfig
from tasks.judges.nli import Config, Nli
from tasks.text.nearest import nearest


def cut(claims: Claims) -> Claims:
    """The claims, each chunk cut to the sentences nearest to its claim."""
    requests = [replace(r, premise=nearest(r.premise, r.hypothesis)) for r in claims.requests]
    return replace(claims, requests=requests)


def evaluate(model: Path, sets: Mapping[str, Claims], max_tokens: int = 320) -> dict[str, Row]:
    """Agreement with people per set, of the label that a model of this folder gives at probability one half."""
    judge = Nli(Config(classifier=ClassifierConfig(model=str(model.resolve()), max_tokens=max_tokens)))
    rows = {name: judged(claims, judge)[0] for name, claims in sets.items()}
    judge.close()
    return rows
