"""What a judge has to have shown before it may be promoted."""

from pathlib import Path

import pytest
from kit.suite_kit import Corruption, Knowing, line, write_suite

from tasks.analysis.metaeval.metaeval import measure
from tasks.analysis.metaeval.requirements import check, shown, suite_of
from tasks.analysis.metaeval.suite import Suite, read
from tasks.core.config import Promotion, load_nightly
from tasks.core.errors import ConfigError, UsageError
from tasks.core.grades import Grade
from tasks.store.lake import Lake

JUDGE, CONFIG = Path("judges/x.yaml"), Path("configs/nightly.yaml")
VERSION = "00000000000000aa"


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path / "lake")


@pytest.fixture
def suite(tmp_path: Path) -> Suite:
    return read(
        write_suite(tmp_path / "s" / "tea.jsonl", [line(f"Tea is hot, say {n} people [1].") for n in range(10)])
    )


def required(tmp_path: Path, **rates: float) -> Promotion:
    return Promotion(suite=tmp_path / "s", pass_rates=rates)


def unfaithful(n: int, name: str, grade: Grade) -> Grade:
    """Of ten cases, two lack faithfulness: 8 of 10 of that grade, 58 of 60 overall."""
    return Grade("scored", 0) if name == "faithfulness" and n < 2 else grade


def run(
    lake: Lake, suite: Suite, corrupt: Corruption = unfaithful, judge: str | None = None, version: str = VERSION
) -> None:
    measure(lake, "x", Knowing(suite, corrupt, judge=judge, version=version), suite)


def test_nothing_is_required_by_default(lake: Lake, tmp_path: Path) -> None:
    assert check(Promotion(suite=tmp_path / "nowhere"), lake, JUDGE, VERSION, CONFIG) is None


def test_a_judge_that_reaches_the_rates_may(lake: Lake, suite: Suite, tmp_path: Path) -> None:
    run(lake, suite)
    settings = required(tmp_path, overall=0.9, faithfulness=0.8)
    assert check(settings, lake, JUDGE, VERSION, CONFIG) == pytest.approx(58 / 60)


def test_one_that_does_not_is_refused_with_rate_interval_and_requirement(
    lake: Lake, suite: Suite, tmp_path: Path
) -> None:
    run(lake, suite)
    with pytest.raises(UsageError) as error:
        check(required(tmp_path, overall=0.9, faithfulness=0.85, usefulness=1), lake, JUDGE, VERSION, CONFIG)
    message = str(error.value)
    assert "judges/x.yaml is below what promotion.pass_rates of configs/nightly.yaml requires" in message
    assert "faithfulness 0.800 [0.474, 0.947], required 0.85" in message  # Wilson's of 8 in 10 at n = 9
    assert "overall" not in message
    assert "usefulness" not in message


def test_one_without_results_is_refused_with_the_command(lake: Lake, suite: Suite, tmp_path: Path) -> None:
    command = f"leadline metaeval --judge judges/x.yaml --suite {tmp_path / 's'}"
    run(lake, suite, version="00000000000000ff")
    with pytest.raises(UsageError, match="has no results there") as error:
        check(required(tmp_path, overall=0.1), lake, JUDGE, VERSION, CONFIG)
    assert f"Run `{command}` first" in str(error.value)
    write_suite(tmp_path / "s" / "more.jsonl", [line("Tea.")])  # what was shown was shown on another suite
    with pytest.raises(UsageError, match="has no results there"):
        check(required(tmp_path, overall=0.1), lake, JUDGE, "00000000000000ff", CONFIG)


def test_results_of_cases_that_have_moved_are_no_results(lake: Lake, suite: Suite, tmp_path: Path) -> None:
    """An empty line above shifts them all; asking again is told, and costs nothing, since cases are known by content."""
    run(lake, suite)
    file = tmp_path / "s" / "tea.jsonl"
    file.write_text("\n" + file.read_text())
    with pytest.raises(UsageError, match="has no results there"):
        check(required(tmp_path, overall=0.1), lake, JUDGE, VERSION, CONFIG)
    moved = read(tmp_path / "s")
    again = Knowing(moved, unfaithful)
    measure(lake, "x", again, moved)
    assert again.asked == []
    assert check(required(tmp_path, overall=0.1), lake, JUDGE, VERSION, CONFIG) == pytest.approx(58 / 60)


def test_unjudged_conditions_count_as_not_passed(lake: Lake, suite: Suite, tmp_path: Path) -> None:
    run(
        lake,
        suite,
        lambda n, name, grade: Grade("failed", failure="outage") if name == "usefulness" and n < 3 else grade,
    )
    assert check(required(tmp_path, usefulness=0.7), lake, JUDGE, VERSION, CONFIG) == pytest.approx(57 / 60)
    with pytest.raises(UsageError, match=r"usefulness 0\.700.*3 unjudged conditions count as not passed"):
        check(required(tmp_path, usefulness=0.75), lake, JUDGE, VERSION, CONFIG)


def test_results_of_a_grader_count_for_the_judge_that_it_asks(lake: Lake, suite: Suite, tmp_path: Path) -> None:
    inner = "00000000000000bb"
    run(lake, suite, judge=inner)
    assert check(required(tmp_path, overall=0.9), lake, JUDGE, inner, CONFIG) == pytest.approx(58 / 60)
    run(lake, suite, lambda n, name, grade: Grade("na"), judge=inner, version="00000000000000cc")  # the last one counts
    with pytest.raises(UsageError, match="is below"):
        check(required(tmp_path, overall=0.9), lake, JUDGE, inner, CONFIG)
    assert set(shown(lake, suite)) == {VERSION, inner, "00000000000000cc"}


def test_the_suite_is_the_one_of_the_config_or_the_one_that_comes_along(tmp_path: Path, suite: Suite) -> None:
    text = "lake: l\nwarehouse: w\nreport: {dir: r}\nsources: [s.yaml]\nrecipe: {judge: j.yaml}\n"
    config = tmp_path / "nightly.yaml"
    config.write_text(text + "promotion: {suite: s, pass_rates: {overall: 0.55}}\n")
    found = load_nightly(config).promotion
    assert found.suite == (tmp_path / "s").resolve()  # relative to the config
    assert suite_of(found).version == suite.version
    assert len(suite_of(Promotion()).cases) == 144
    for wrong in ("{pass_rates: {faithfullness: 0.5}}", "{pass_rates: {overall: 1.5}}", "{rates: {}}"):
        config.write_text(f"{text}promotion: {wrong}\n")
        with pytest.raises(ConfigError, match="promotion"):
            load_nightly(config)
