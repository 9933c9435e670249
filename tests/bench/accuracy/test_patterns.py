"""The cases that the failure patterns are measured on, and the figures that the page gives of them."""

from collections import Counter

from kit.root import ROOT

from bench.accuracy.patterns import cases, table
from tasks.patterns import DETECTORS

README = ROOT / "bench" / "README.md"


def test_every_text_pattern_has_a_dozen_cases_and_a_dozen_near_misses_in_two_halves() -> None:
    counted = Counter((c["pattern"], c["half"], c["shows"]) for c in cases())
    patterns = set(DETECTORS) - {"citation_drift", "dangling_citation"}
    assert {p for p, _, _ in counted} == patterns
    assert set(counted.values()) == {6}
    assert len(counted) == len(patterns) * 2 * 2


def test_no_claim_is_in_both_halves_with_the_same_chunks() -> None:
    seen = [(c["claim"], tuple(c["chunks"])) for c in cases()]
    assert len(set(seen)) == len(seen)


def test_the_page_says_what_the_detectors_do() -> None:
    assert table(cases()) in README.read_text(encoding="utf-8")
