"""What the benchmarks share: spreads, ratios and timing."""

import pytest

from bench.common import Metered, ratios, spread


def test_a_spread_is_the_median_between_least_and_most():
    assert spread([3.0, 1000.0, 2.0]) == "3 [2, 1,000]"
    assert spread([0.251, 0.249], 2) == "0.25"  # they print the same
    assert spread([]) == "n/a"


def test_ratios_are_computed_inside_a_round():
    def a_round(ours, scores, claims):
        return {"nightly": {"wall": ours}, "gate": {"wall": 1}, "scores": {"wall": scores}, "claims": {"wall": claims}}

    # The machine is twice as slow in the second round, and the third has an outlier.
    rounds = [a_round(6, 1, 2), a_round(12, 2, 4), a_round(9, 1, 2)]
    assert ratios(rounds, "wall", "nightly", "scores") == [6, 6, 9]
    assert ratios(rounds, "wall", "nightly", "scores", "claims") == [2, 2, 3]
    assert ratios(rounds, "wall", "nightly", "claims", without="gate") == [2.5, 2.75, 4]


def test_rounds_without_the_other_number_are_left_out():
    rounds = [{"a": {"x": 2.0}, "b": {"x": 0.0}}, {"a": {"x": 2.0}, "b": {}}, {"a": {"x": 2.0}, "b": {"x": 1.0}}]
    assert ratios(rounds, "x", "a", "b") == [2.0]


def test_only_named_methods_are_timed():
    class Judge:
        version = "v"

        def judge(self, requests):
            return sum(range(requests))

        def describe(self):
            return {}

    judge = Metered(Judge(), "judge")
    assert (judge.version, judge.describe(), judge.meter.wall) == ("v", {}, 0)
    assert judge.judge(1000) == pytest.approx(499_500)
    assert judge.meter.wall > 0
    every = Metered(Judge())
    every.describe()
    assert every.meter.take()["wall"] > 0
    assert every.meter.wall == 0
