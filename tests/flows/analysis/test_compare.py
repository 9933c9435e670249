"""`leadline compare` on nights whose labels are known by construction."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from conftest import Command, Ended
from kit.two_judges import BEYOND_LABELS, NASTY, NEW, OLD, SECOND, STAGES, C, S, U, judge, night, traces, two_days
from kit.worlds import FIRST, World, make_world, write

from tasks.analysis import noise
from tasks.judging.grades import grade_answers
from tasks.publish import publish
from tasks.run.build import build_context


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return two_days(tmp_path_factory.mktemp("compare"))


@pytest.fixture
def command(command: Command, world: World) -> Command:
    def run(*args: object) -> Ended:
        where = () if "--config" in args else ("--config", world.config)
        return command("compare", *args, *where)

    return run


def found(command: Command, *args: object) -> dict[str, Any]:
    code, out, err = command(*args, "--format", "json")
    assert (code, err) == (0, "")
    result: dict[str, Any] = json.loads(out)
    return result


def estimate(result: Mapping[str, Any], number: str) -> dict[str, Any]:
    (of,) = (g["estimate"] for g in result["estimates"] if g["number"] == number)
    return dict(of)


def test_two_judges_on_the_same_claims(command: Command) -> None:
    """Old and new on day one: 6 stay supported, 2 become contradicted, 2 become supported, 2 stay unsupported.

    Both support 8 of 12 (66.7), so that no mean moves; κ = (8/12 − 1/2) / (1/2) = 1/3, since by chance
    (8·8 + 0·2 + 4·2) / 144 = 1/2 would be equal.
    """
    result = found(command, "judge:old", "judge:new")
    labels = result["labels"]
    at = {o: i for i, o in enumerate(labels["outcomes"])}
    cells = {(a, b): labels["matrix"][at[a]][at[b]] for a in (S, C, U) for b in (S, C, U)}
    assert {k: v for k, v in cells.items() if v} == {(S, S): 6, (S, C): 2, (U, S): 2, (U, U): 2}
    assert sum(map(sum, labels["matrix"])) == 12
    agreement = labels["agreement"]
    assert (agreement["n"], labels["flipped"]) == (12, 4)
    assert agreement["kappa"]["value"] == pytest.approx(1 / 3)
    assert agreement["balanced"]["value"] == pytest.approx((12 / 16 + 0 + 4 / 6) / 3)
    main = result["main"]
    assert (result["pairing"], result["number"], main["n_a"], main["questions"]) == ("traces", "groundedness", 12, 6)
    assert (main["a"], main["b"], main["difference"]) == pytest.approx((200 / 3, 200 / 3, 0))
    assert main["low"] < 0 < main["high"]
    assert result["left_out"] == [0, 6]  # day two is judged by the new one alone
    by = {g["name"]: g["estimate"]["difference"] for g in (*result["by_app"], *result["by_generator"])}
    # help has the even claims: 6 falls and 8 rises; small has all that moved
    assert by == pytest.approx({"docs": 0, "help": 0, "large": 0, "small": 0})
    assert {g[1] for g in labels["groups"]} == {"docs", "help", "large", "small"}
    assert [(c["arm"].split()[0], c["verdicts"]) for c in result["cost"]] == [("old", 12), ("new", 12)]
    assert all(c["tokens_in"] == 0 and c["seconds"] is not None for c in result["cost"])
    (noise,) = result["signal"]
    assert (noise["source"], noise["spread"], noise["ratio"]) == ("judge", None, None)
    assert "leadline noise -c " in noise["note"]


def test_flips_come_with_both_explanations(command: Command) -> None:
    """Contradictions with 0.95 against support with 0.9 are the surest; of support against none, one side has 0.8."""
    flips = found(command, "judge:old", "judge:new", "--flips", 3)["flips"]
    assert [(f["label_a"], f["label_b"]) for f in flips] == [(S, C), (S, C), (U, S)]
    (nasty,) = (f for f in flips if f["trace_id"] == "t1-6")
    assert nasty["text"] == NASTY
    assert nasty["explanation_a"] == "old says [red]supported[/red] of 6"
    assert nasty["explanation_b"] == "new says [red]contradicted[/red] of 6"
    assert nasty["deciding_chunk_text_a"] == "Passage 6."
    assert found(command, "judge:old", "judge:new", "--flips", 0)["flips"] == []


def test_a_judge_and_itself(command: Command) -> None:
    result = found(command, "judge:new", "judge:new")
    assert all(g["estimate"]["difference"] == 0 and g["estimate"]["p"] == 1 for g in result["estimates"])
    assert (result["labels"]["agreement"]["kappa"]["value"], result["labels"]["flipped"]) == (1, 0)
    assert result["left_out"] == [0, 0]


def test_filters_narrow_down_both(command: Command) -> None:
    """Of the even claims (help) 0 2 4 6 8 10: the old judge supports 0 2 4 6, the new one 0 2 4 8."""
    result = found(command, "old", "new", "--app", "help", "--from", FIRST, "--to", FIRST, "--number", "faithfulness")
    assert (result["number"], result["main"]["n_a"]) == ("faithfulness", 6)
    assert (result["main"]["a"], result["main"]["b"]) == pytest.approx((4 / 6, 4 / 6))
    assert (result["labels"]["flipped"], result["by_app"]) == (2, [])


def test_generators_are_paired_where_they_answered_the_same_questions(command: Command) -> None:
    """Day one asks each of the six questions of both: large has claims 0–5, all supported by the old judge, and small
    has 6–11, of which it supports 6 and 7. So the questions change by 0, 0, −100, −100, −100, −100: −66.7.
    """
    result = found(command, "generator:large", "generator:small", "--recipe", "claims", "--to", FIRST)
    assert (result["pairing"], result["main"]["questions"]) == ("questions", 6)
    assert result["baseline"]["judge_name"] == "new"  # the latest night's
    hashed = found(command, "judge:old", "judge:new")["baseline"]["recipe"]
    old = found(command, "large", "small", "--recipe", hashed)["main"]
    assert (old["a"], old["b"], old["difference"]) == pytest.approx((100, 100 / 3, -200 / 3))
    # exchanged in all 2⁴ ways: none or all of the four changes, 2 of 16
    assert old["p"] == pytest.approx(2 / 16)
    assert found(command, "v1", "v2", "--recipe", hashed)["main"] == old  # v1 is large, v2 is small


def test_generators_without_common_questions_are_two_samples(command: Command) -> None:
    """On day two claims 6–11 ask the questions 0–5 once each: large three of them, small the other three."""
    result = found(command, "large", "small", "--from", SECOND)
    assert (result["pairing"], result["main"]["n_a"], result["main"]["n_b"]) == ("none", 3, 3)
    assert any(note.startswith("Not paired, since none of the questions") for note in result["notes"])
    # the new judge says C C S of 6–8, and S U U of 9–11
    assert (result["main"]["a"], result["main"]["b"]) == pytest.approx((100 / 3, 100 / 3))


def test_the_change_between_days_is_the_products_and_the_judges(command: Command) -> None:
    """Day one by the old judge: 66.7. Day two by the new one: of 6–11, 8 and 9 are supported: 33.3. Total −33.3.

    The new judge gives day one 66.7 as well: it shifts nothing there, and all of it is the product's.
    """
    result = found(command, f"dates:{FIRST}", f"dates:{SECOND}")
    assert (result["baseline"]["judge_name"], result["candidate"]["judge_name"]) == ("old", "new")
    whole = result["drift"][0]
    assert (whole["place"], whole["share"], whole["name"]) == ("before", 1.0, "")
    parts = [whole[p]["difference"] for p in ("total", "product", "judge")]
    assert parts == pytest.approx([-100 / 3, -100 / 3, 0])
    for drift in result["drift"]:
        total, product, by_judge = (drift[p]["difference"] for p in ("total", "product", "judge"))
        assert total == pytest.approx(product + by_judge)
    assert whole["total"] == result["main"]
    assert {s["name"] for s in result["drift"]} == {"", "docs", "help", "large", "small"}


def test_days_under_one_recipe_have_no_drift(command: Command) -> None:
    hashed = found(command, "judge:old", "judge:new")["candidate"]["recipe"]
    result = found(command, f"dates:{FIRST}", f"dates:{SECOND}..{SECOND}", "--recipe", hashed)
    assert result["drift"] == []
    assert any("the whole change is the product's" in note for note in result["notes"])


def test_without_an_overlap_it_says_what_is_missing(command: Command, tmp_path: Path) -> None:
    """Where each day has a judge of its own, nothing tells the two apart but a backfill."""
    other = make_world(tmp_path)
    judge(other.out / "old.yaml", OLD, 1)
    judge(other.out / "new.yaml", NEW, 2)
    write(tmp_path / "logs" / "a.jsonl", traces(FIRST, 0))
    night(other, "old", FIRST, FIRST)
    write(tmp_path / "logs" / "b.jsonl", traces(SECOND, 6, 6))
    night(other, "new", SECOND, SECOND)
    result = found(command, f"dates:{FIRST}", f"dates:{SECOND}", "--config", other.config)
    assert result["drift"] == []
    (note,) = (n for n in result["notes"] if "no overlap" in n)
    run = f"leadline backfill -c {other.config}"
    assert f"{run} --judge new --from {FIRST} --to {FIRST}" in note
    code, _, err = command("old", "new", "--config", other.config)
    assert (code, "have no scored trace in common" in err, "leadline backfill" in err) == (2, True, True)


def test_it_prints_tables_and_texts_as_they_are(command: Command) -> None:
    code, out, _ = command("old", "new", "--flips", 4)
    assert code == 0
    assert NASTY in out
    assert "new says [red]contradicted[/red] of 6" in out
    for title in ("Numbers", "Groundedness by app", "Claims: label by A", "Agreement on claims", "Cost of judging"):
        assert title in out
    assert ("Claims that flipped" in out, "4 of 4, the ones" in out) == (True, True)
    code, out, _ = command(f"dates:{FIRST}", f"dates:{SECOND}")
    assert (code, "Drift attribution" in out, "Cost of an answer" in out) == (0, True, True)


def test_the_page_stands_alone_and_escapes_texts(command: Command, tmp_path: Path) -> None:
    for i, arms in enumerate((("old", "new"), ("large", "small"), (f"dates:{FIRST}", f"dates:{SECOND}"))):
        page = tmp_path / f"{i}.html"
        assert command(*arms, "--format", "html", "-o", page)[0] == 0
        html = page.read_text(encoding="utf-8")
        assert "<script>" not in html
        assert 'rel="stylesheet"' not in html
        assert [p.name for p in tmp_path.iterdir()].count(f"{i}.html") == 1
    first = (tmp_path / "0.html").read_text(encoding="utf-8")
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in first
    assert "new says [red]contradicted[/red] of 6" in first
    code, _, err = command("old", "new", "-o", tmp_path / "0.html" / "in-a-file.html")
    assert (code, "0.html is not a folder." in err) == (2, True)


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("judge:odl", "judge:new"), "judge:odl: no such judge has scores. Did you mean 'old'."),
        (("nwe", "new"), "nwe: no judge, recipe, generator or prompt version of this name has scores."),
        (("judge:old", "generator:large"), "judge:old is a judge and generator:large is a generator"),
        (("recipe:claims", "recipe:claims"), "recipe:claims has 2 versions: "),
        (("generator:large", "generator:smal"), "generator:smal: no such generator has scores. Did you mean 'small'."),
        (("old", "new", "--recipe", "x"), "--recipe x: no such recipe. Known recipes: claims."),
        (("old", "new", "--number", "speed"), "--number speed: not available in both arms. They have groundedness, "),
        (("old", "new", "--from", SECOND), "judge:old: has no scores in these days and this app."),
        (("old", "new", "--from", SECOND, "--to", FIRST), f"--from {SECOND} is after --to {FIRST}. Swap them."),
        (("dates:2026-13-01", "dates:2026-11-01"), "dates:2026-13-01: is not a range of days."),
        (("dates:2026-11-02..2026-11-01", "dates:2026-11-01"), "2026-11-02 is after 2026-11-01. Swap them."),
        (("dates:2025-01-01", "dates:2026-11-01"), "dates:2025-01-01: these days have no scores."),
        ((f"dates:{FIRST}", f"dates:{SECOND}", "--from", FIRST), "here the arms are the days. Leave them out."),
    ],
)  # fmt: skip
def test_mistakes(command: Command, args: Sequence[object], message: str) -> None:
    code, out, err = command(*args)
    assert (code, out) == (2, "")
    assert message in err


def test_a_word_that_could_be_two_things(tmp_path: Path, command: Command) -> None:
    """A judge and a generator of one name: the command asks which."""
    world = make_world(tmp_path)
    judge(world.out / "large.yaml", OLD, 1)
    write(tmp_path / "logs" / "a.jsonl", traces(FIRST, 0))
    night(world, "large", FIRST, FIRST)
    code, _, err = command("large", "small", "--config", world.config)
    assert (code, "large could be judge:large or generator:large. Give it with its kind." in err) == (2, True)
    assert found(command, "generator:large", "small", "--config", world.config)["pairing"] == "questions"


def test_grades_are_compared_like_other_numbers(tmp_path: Path, command: Command) -> None:
    """On the same traces grader b gives completeness 3 where a gives 5, and faithfulness 0 where a gives 1.

    Six questions of two traces each all move alike: the p-value of 2^6 exchanges is 2/64. b calls answer relevancy N/A,
    so it has no difference. Neither has usefulness, which is N/A under both.
    """
    world = make_world(tmp_path)
    judge(world.out / "new.yaml", NEW, 2)
    write(tmp_path / "logs" / "a.jsonl", traces(FIRST, 0))
    grades = {
        "a": {"answer_relevancy": 5, "completeness": 5, "faithfulness": 1, "usefulness": None},
        "b": {"answer_relevancy": None, "completeness": 3, "faithfulness": 0, "usefulness": None},
    }
    config = yaml.safe_load(world.config.read_text())
    for name, given in grades.items():
        (world.out / f"grader-{name}.yaml").write_text(yaml.safe_dump({"kind": "constant", "grades": given}))
        grader = {"grader": f"out/grader-{name}.yaml"}
        path = world.config.with_name(f"{name}.yaml")
        recipe = {**config["recipe"], "judge": "out/new.yaml", "name": name, "grades": grader}
        path.write_text(yaml.safe_dump({**config, "recipe": recipe}))
        ctx = build_context(path, FIRST, FIRST)
        for stage in (*STAGES, grade_answers):
            if stage not in BEYOND_LABELS:
                stage(ctx)
    publish.publish_warehouse(ctx)
    where = ("--config", world.config)
    result = found(command, "recipe:a", "recipe:b", "--number", "grade_completeness", *where)
    changes = {g["number"]: g["estimate"]["difference"] for g in result["estimates"]}
    assert changes == {"groundedness": 0, "faithfulness": 0, "utilization": 0, "grade_completeness": -2,
                       "grade_faithfulness": -1, "grade_positive_acceptance": -1}  # fmt: skip
    main = result["main"]
    assert (main["a"], main["b"], main["n_a"], main["questions"]) == (5, 3, 12, 6)
    assert -4 <= main["low"] < -2 < main["high"] <= 4
    assert main["p"] == pytest.approx(2 / 64)
    assert [g["estimate"]["difference"] for g in result["by_generator"]] == [-2, -2]
    assert result["signal"][0]["note"] == "The noise of a grader is not measured"
    generators = found(command, "large", "small", "--recipe", "b", *where)
    assert estimate(generators, "grade_completeness")["difference"] == 0
    assert (
        "Grade completeness by generator"
        in command("recipe:a", "recipe:b", "--number", "grade_completeness", *where)[1]
    )


def test_a_judge_that_repeats_itself_has_no_noise_to_divide_by(tmp_path: Path, command: Command) -> None:
    world = make_world(tmp_path)
    judge(world.out / "one.yaml", OLD, 1)
    write(tmp_path / "logs" / "a.jsonl", traces(FIRST, 0))
    night(world, "one", FIRST, FIRST)
    ctx = build_context(world.config.with_name("one.yaml"), FIRST, FIRST)
    noise.measure(ctx, ctx.judges, 12)
    publish.load_warehouse(ctx)
    publish.publish_warehouse(ctx)
    by_judge, by_repeats = found(command, "large", "small", "--config", world.config)["signal"]
    assert (by_judge["spread"], by_judge["ratio"]) == (0, None)
    assert (
        by_judge["note"]
        == "one: 12 requests judged again: it repeats itself exactly, so that any difference is one of labels"
    )
    assert (by_repeats["spread"], by_repeats["ratio"]) == (None, None)  # no generator was asked a question twice
    _, out, _ = command("large", "small", "--config", world.config)
    assert "Signal to noise, the same requests judged again: identical runs do not differ." in out
