"""Failure patterns of claims. Each module is one detector: a pure function without a model.

Method: docs/methods.md#failure-patterns.

To add one, write a module with `RULES` and `detect`, and add its name to `DETECTORS`.
"""

from collections.abc import Iterable, Mapping, Sequence

from tasks.patterns import (
    citation_drift,
    dangling_citation,
    generalized_particular,
    ghost_number,
    reverse_direction,
    stitched_facts,
)
from tasks.patterns._base import Chunk, Claim, Detector, Found, Place

__all__ = ["DETECTORS", "Chunk", "Claim", "Detector", "Found", "Place", "find", "rules"]

_MODULES = {
    "citation_drift": citation_drift,
    "dangling_citation": dangling_citation,
    "ghost_number": ghost_number,
    "stitched_facts": stitched_facts,
    "generalized_particular": generalized_particular,
    "reverse_direction": reverse_direction,
}
DETECTORS: Mapping[str, Detector] = {name: module.detect for name, module in _MODULES.items()}


def find(names: Iterable[str], claim: Claim, chunks: Sequence[Chunk]) -> dict[str, Found]:
    """The findings of these patterns in a claim, in the order of `DETECTORS`.

    Args:
        chunks: All chunks of the claim's trace.
    """
    wanted = set(names)
    found = {name: detect(claim, chunks) for name, detect in DETECTORS.items() if name in wanted}
    return {name: one for name, one in found.items() if one is not None}


def rules(names: Iterable[str]) -> dict[str, int]:
    """Version of each detector's rules, for the recipe's hash."""
    return {name: _MODULES[name].RULES for name in sorted(names)}
