"""`leadline agreement`, and the comparison of two judges against people, on labels and grades known by construction.

People label day one: 0 to 5, 8 and 9 are supported, 6, 7 and 10 are not; 11 they were shown because a judge called it
misused. Ann has said all of it, bob some. On day two the two disagree about claim 6.
"""

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import duckdb
import pytest
import yaml
from conftest import Command, Ended
from kit.html_tree import parse
from kit.root import ROOT
from kit.two_judges import BEYOND_LABELS, SECOND, S, U, claim, two_days
from kit.worlds import FIRST, World, write
from scipy import stats
from sklearn.metrics import cohen_kappa_score

from tasks.core.config import load_nightly
from tasks.core.schemas import GRADES, JUDGES
from tasks.publish import publish
from tasks.publish.report.text import slug
from tasks.review.load import import_reviews
from tasks.run.build import build_context
from tasks.store.lake import from_rows

PEOPLE = [S, S, S, S, S, S, U, U, S, S, U, U]
NA, UNPARSABLE = "na", "unparsable"
STRICT = [1, 2, 3, 4, 5, 1, 2, 3, 4, 5, NA, NA]  # completeness of the traces of day one
KIND = [1, 2, 3, 4, 4, 1, 2, 3, 4, UNPARSABLE, 1, NA]
SUITE = ROOT / "data" / "judge_suite" / "train"
GRADERS = ROOT / "configs" / "graders"


@pytest.fixture
def command(command: Command, world: World) -> Command:
    def run(*args: object) -> Ended:
        where = () if "--config" in args else ("--config", world.config)
        return command(*args, *where)

    return run


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    """Both judges, people, and two graders that have graded day one."""
    root = tmp_path_factory.mktemp("agreement")
    world = two_days(root, without=BEYOND_LABELS)
    lines = [review(FIRST, i, PEOPLE[i], "ann", "misused" if i == 11 else "random") for i in range(12)]
    lines += [review(FIRST, i, PEOPLE[i], "bob") for i in (0, 6, 10)]
    lines += [review(SECOND, 6, S, "ann"), review(SECOND, 6, U, "bob")]
    lines += [{"trace_id": f"t1-{i}", "grade": "completeness", "value": v, "reviewer": "ann"} for i, v in ((0, 1), (1, 3), (2, 4), (10, None))]  # fmt: skip
    lines += [{"trace_id": "t1-3", "grade": "completeness", "value": 1, "reviewer": "cat", "sampling": "misused"}]
    file = root / "labels.jsonl"
    write(file, lines)
    graded(world, "strict", STRICT)
    graded(world, "kind", KIND)
    ctx = build_context(world.config.with_name("new.yaml"), FIRST, FIRST)
    import_reviews(ctx, file)
    publish.publish_warehouse(ctx)
    return world


def review(day: object, i: int, label: str, who: str, sampling: str = "random") -> dict[str, Any]:
    number = 1 if day == FIRST else 2
    return {"trace_id": f"t{number}-{i}", "span": [0, len(claim(i))], "label": label, "reviewer": who, "sampling": sampling}  # fmt: skip


def graded(world: World, name: str, grades: Sequence[int | str]) -> None:
    """What a grader leaves in the lake."""
    ctx = build_context(world.config.with_name("new.yaml"), FIRST, FIRST)
    rows = [
        {"grader_version": name * 2, "date": FIRST, "trace_id": f"t1-{i}", "extractor_version": ctx.extractor.version, "grade": "completeness", "status": g if isinstance(g, str) else "scored",
         "value": None if isinstance(g, str) else g, "tokens_in": 0, "tokens_cached": 0, "tokens_out": 0, "engine": "none"}
        for i, g in enumerate(grades)
    ]  # fmt: skip
    ctx.lake.write(GRADES, "part", from_rows(rows, GRADES), name * 2, str(FIRST))
    row = {"judge_version": name * 2, "name": name, "kind": "constant", "definition": "{}"}
    ctx.lake.write(JUDGES, name, from_rows([row], JUDGES))


def found(command: Command, *args: object) -> dict[str, Any]:
    code, out, err = command("agreement", *args, "--format", "json")
    assert (code, err) == (0, "")
    result: dict[str, Any] = json.loads(out)
    return result


def test_a_judge_and_people(command: Command) -> None:
    """Eleven claims drawn at random. Both support 0–5, people alone 8 and 9, the old judge alone 6 and 7, nobody 10: 7 of
    11 are equal, (8·8 + 3·3) / 121 = 73/121 by chance: κ = (77 − 73) / (121 − 73) = 1/12. Of people's supported ones the
    judge has 6 of 8, of the others 1 of 3.
    """
    claims = found(command, "judge:old", "people")["claims"]
    labels = claims["whole"]["labels"]
    assert (labels["n"], labels["share"]["value"]) == (11, pytest.approx(7 / 11))
    assert labels["kappa"]["value"] == pytest.approx(1 / 12)
    assert claims["whole"]["supported"]["accuracy"]["value"] == pytest.approx((6 / 8 + 1 / 3) / 2)
    assert labels["kappa"]["low"] < 1 / 12 < labels["kappa"]["high"]
    at = {o: i for i, o in enumerate(claims["outcomes"])}
    cells = {(a, b): claims["matrix"][at[a]][at[b]] for a in (S, U) for b in (S, U)}
    assert cells == {(S, S): 6, (S, U): 2, (U, S): 2, (U, U): 1}
    assert [(e["label"], e["n_a"], e["n_b"], e["both"]) for e in claims["by_label"]] == [(S, 8, 8, 6), (U, 3, 3, 1)]
    assert (claims["picked"], {a["name"] for a in claims["by_app"]}) == (1, {"docs", "help"})
    # All are two steps apart, and people are as sure as the judge: 0.9 where it supports, less where it does not.
    worst = [w["trace_id"] for w in claims["disagreements"]]
    assert ({*worst[:2]}, {*worst[2:]}) == ({"t1-6", "t1-7"}, {"t1-8", "t1-9"})


def test_the_order_of_the_sides_says_which_is_the_truth(command: Command) -> None:
    """The new judge has the same supported ones as people, and calls 6 and 7 contradicted, 10 unsupported. With people as
    the truth: of supported 8 of 8, of unsupported 1 of 3. The other way round people have no contradicted one: 8/8, 0/2,
    1/1.
    """
    there = found(command, "new", "people", "--to", FIRST, "--from", FIRST)["claims"]["whole"]
    back = found(command, "people", "new", "--date", FIRST)["claims"]["whole"]
    assert there["labels"]["accuracy"]["value"] == pytest.approx((1 + 1 / 3) / 2)
    assert back["labels"]["accuracy"]["value"] == pytest.approx((1 + 0 + 1) / 3)
    assert there["supported"]["accuracy"]["value"] == back["supported"]["accuracy"]["value"] == 1


def test_what_people_do_not_agree_on_is_apart(command: Command) -> None:
    """On day two as many say one thing of claim 6 as another: it is in the matrix, and in no number."""
    claims = found(command, "new", "people")["claims"]
    tied = claims["outcomes"].index("tied")
    assert claims["whole"]["labels"]["n"] == 11
    assert sum(row[tied] for row in claims["matrix"]) == 1


def test_one_reviewer_and_another(command: Command) -> None:
    """Both have said 0, 6 and 10 of day one alike, and 6 of day two differently."""
    claims = found(command, "reviewer:ann", "reviewer:bob")["claims"]
    assert (claims["whole"]["labels"]["n"], claims["whole"]["labels"]["share"]["value"]) == (4, 0.75)
    assert [w["trace_id"] for w in claims["disagreements"]] == ["t2-6"]


def test_two_judges_as_compare_has_them(command: Command) -> None:
    ours = found(command, "old", "new")["claims"]["whole"]["labels"]
    code, out, _ = command("compare", "old", "new", "--format", "json")
    assert code == 0
    assert ours == json.loads(out)["labels"]["agreement"]


def test_two_graders(command: Command) -> None:
    """Nine answers have a grade by both, eight of them the same. Of eleven it is known whether the grade applies: nine to
    both, one (t1-10) to the second alone, one to neither: κ = (10/11 − 92/121) / (1 − 92/121) = 18/29.
    """
    grades = found(command, "strict", "grader:kind")["grades"]
    (of,) = grades["by_grade"]
    pairs = [(a, b) for a, b in zip(STRICT, KIND, strict=True) if isinstance(a, int) and isinstance(b, int)]
    first, second = zip(*pairs, strict=True)
    assert (of["grade"], of["whole"]["graded"]["n"]) == ("completeness", 9)
    assert of["whole"]["graded"]["share"]["value"] == pytest.approx(8 / 9)
    assert of["whole"]["weighted"]["value"] == pytest.approx(cohen_kappa_score(first, second, weights="quadratic"))
    assert of["whole"]["rank"]["value"] == pytest.approx(stats.spearmanr(first, second).statistic)
    assert (of["whole"]["n_applies"], of["whole"]["applies"]["value"]) == (11, pytest.approx(18 / 29))
    at = {o: i for i, o in enumerate(of["outcomes"])}
    assert (of["matrix"][at["5"]][at[UNPARSABLE]], of["matrix"][at[NA]][at["1"]], of["matrix"][at["5"]][at["4"]]) == (
        1,
        1,
        1,
    )
    assert [(w["item"], w["outcome_a"], w["value_b"]) for w in grades["disagreements"]] == [
        ("t1-10", NA, 1),
        ("t1-4", "scored", 4),
    ]


def test_a_grader_and_people(command: Command) -> None:
    """Ann gave 1, 3, 4 to what the grader gave 1, 2, 3, and N/A where it did: the ranks are the same."""
    (of,) = found(command, "strict", "people")["grades"]["by_grade"]
    assert (of["whole"]["graded"]["n"], of["whole"]["rank"]["value"], of["whole"]["applies"]["value"]) == (3, 1, 1)
    assert found(command, "strict", "reviewer:ann")["grades"]["by_grade"][0]["whole"] == of["whole"]


def test_what_was_picked_for_review_is_told_and_in_no_number(command: Command) -> None:
    """All that cat has graded is one answer that was picked."""
    grades = found(command, "strict", "reviewer:cat")["grades"]
    assert (grades["by_grade"], grades["picked"], [w["item"] for w in grades["disagreements"]]) == ([], 1, ["t1-3"])
    code, out, _ = command("agreement", "strict", "reviewer:cat")
    assert (code, "Nothing that both have rated enters the numbers." in out, "their labels: 1 grade." in out) == (0, True, True)  # fmt: skip


def test_two_graders_on_a_suite(command: Command, tmp_path: Path) -> None:
    """Drawn grades against full marks: a constant grader agrees by chance alone."""
    graders = [arg for name in ("constant", "random") for arg in ("--judge", GRADERS / f"{name}.yaml")]
    assert command("metaeval", *graders, "--suite", SUITE)[0] == 0
    page = tmp_path / "page.html"
    result = found(command, "constant", "random", "--suite", SUITE)
    assert command("agreement", "constant", "random", "--suite", SUITE, "--format", "html", "-o", page)[0] == 0
    by = {g["grade"]: g for g in result["grades"]["by_grade"]}
    assert len(by) == 6
    assert result["claims"] is None
    usefulness = by["usefulness"]["whole"]  # of which the one is always N/A
    assert (usefulness["graded"]["n"], usefulness["n_applies"], usefulness["applies"]["value"]) == (0, 16, 0)
    assert by["faithfulness"]["whole"]["rank"]["value"] is None
    assert "judge_suite/train" in page.read_text()
    code, _, err = command("agreement", "constant", "people", "--suite", "train")
    assert (code, "people give no grades to a suite's cases" in err) == (2, True)
    code, _, err = command("agreement", "constant", "random")
    assert (code, "constant: has graded no trace, only cases of a suite. Ask with --suite judge_suite/train." in err) == (2, True)  # fmt: skip


def test_compare_holds_two_judges_against_people(command: Command, tmp_path: Path) -> None:
    """The old judge as above. The new one: balanced accuracy 1; 9 of 11 labels are people's, (8·8 + 1·3) / 121 by chance:
    κ = (99 − 67) / (121 − 67) = 16/27. Six questions.
    """
    page = tmp_path / "page.html"
    code, out, _ = command("compare", "old", "new", "--format", "json")
    assert code == command("compare", "old", "new", "--format", "html", "-o", page)[0] == 0
    people = json.loads(out)["people"]
    assert (people["n"], people["questions"], people["picked"]) == (11, 6, 1)
    accuracy, kappa = people["accuracy"], people["kappa"]
    assert (accuracy["a"]["value"], accuracy["b"]["value"]) == (pytest.approx((6 / 8 + 1 / 3) / 2), 1)
    assert (kappa["a"]["value"], kappa["b"]["value"]) == (pytest.approx(1 / 12), pytest.approx(16 / 27))
    for gain in (accuracy, kappa):
        assert gain["difference"]["value"] == pytest.approx(gain["b"]["value"] - gain["a"]["value"])
        assert gain["difference"]["low"] < gain["difference"]["value"] < gain["difference"]["high"]
        assert 0 < gain["p"] <= 1
    assert "On 11 claims of 6 questions" in page.read_text()
    _, out, _ = command("compare", "old", "new")
    assert "On 11 claims of 6 questions; left out, since picked for their labels: 1" in out


def test_it_prints_tables_and_writes_a_page(command: Command, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    options = ("agreement", "old", "people", "--worst", 2)
    code, _, err = command(*options, "--format", "html", "--output", page)
    assert (code, f"written  {page}" in err) == (0, True)
    code, out, _ = command(*options)
    assert code == 0
    for message in (
        "Of 11 claims that both labeled, 64% have the same label",
        "Each label against the rest",
        "by their labels: 1 claim.",
    ):
        assert message in out
    assert out.count("t1-") == 2
    html = page.read_text()
    assert "<script>" not in html
    assert "Each label against the rest" in html
    assert "<a href" not in html  # the report has no page of these traces
    code, out, _ = command("agreement", "strict", "kind")
    assert (code, "Completeness: of 9 answers that both graded, 89% have the same grade" in out) == (0, True)


@pytest.mark.parametrize(
    ("args", "shown"), [(("agreement", "old", "new"), "t1-6"), (("agreement", "strict", "kind"), "t1-4"), (("compare", "old", "new"), "t1-6")]
)  # fmt: skip
def test_a_page_links_traces_to_their_pages_in_the_report(
    command: Command, world: World, tmp_path: Path, args: tuple[str, ...], shown: str
) -> None:
    """The report has a page of one of the traces that the raters disagree on; the page stands elsewhere."""
    target = load_nightly(world.config).report.dir / str(FIRST) / "traces" / f"{slug(shown)}.html"
    target.parent.mkdir(parents=True)
    target.touch()
    page = tmp_path / "my pages" / "page.html"
    page.parent.mkdir()
    try:
        assert command(*args, "--format", "html", "-o", page)[0] == 0
        (link,) = parse(page).all("a")
        assert (page.parent / unquote(link.attrs["href"])).resolve() == target.resolve()
        assert link.words() == shown
    finally:
        shutil.rmtree(target.parent)


@pytest.mark.parametrize(
    ("args", "code", "message"),
    [
        (("odl", "people"), 2, "odl: no such judge or grader has labels or grades here. Did you mean 'old'."),
        (("reviewer:an", "people"), 2, "reviewer:an: no labels of this reviewer were imported. Did you mean 'ann'."),
        (("old", "people", "--recipe", "x"), 2, "--recipe x: no such recipe. Known recipes: claims."),
        (("old", "people", "--from", SECOND, "--to", FIRST), 2, f"--from {SECOND} is after --to {FIRST}. Swap them."),
        (("old", "people", "--date", FIRST, "--to", FIRST), 2, "--date and --from/--to exclude each other."),
        (("old", "new", "--suite", "x", "--app", "docs"), 2, "--suite: its cases have no recipe, app or day."),
        (("old", "people", "--from", SECOND), 3, "old: no label or grade in these days and this app."),
        (("judge:old", "grader:kind"), 3, "have no labeled claim and no graded answer in common."),
        (("new", "people", "--app", "nobody"), 3, "no label or grade in these days and this app."),
        (("new", "reviewer:bob", "--app", "docs"), 3, "Import people's labels or grades of what the other rater has"),
    ],
)  # fmt: skip
def test_mistakes(command: Command, args: Sequence[object], code: int, message: str) -> None:
    found, out, err = command("agreement", *args)
    assert (found, out) == (code, "")
    assert message in err


def test_a_warehouse_of_an_earlier_version(command: Command, world: World, tmp_path: Path) -> None:
    """It has neither the tables of suites nor those of today's grades; `sql` still tells what its user got wrong."""
    config = yaml.safe_load(world.config.read_text())
    old = tmp_path / "old.yaml"
    old.write_text(yaml.safe_dump(config | {"warehouse": str(tmp_path / "old.duckdb")}))
    shutil.copy(world.warehouse, tmp_path / "old.duckdb")
    with duckdb.connect(str(tmp_path / "old.duckdb")) as connection:
        connection.execute("DROP TABLE metaeval; DROP VIEW reviewed_claims")
    message = f"{tmp_path / 'old.duckdb'}: another version of Leadline has published it"
    for args in (("agreement", "old", "people"), ("compare", "judge:old", "judge:new")):
        code, out, err = command(*args, "--config", old)
        assert (code, out, message in err, f"Run `leadline rebuild -c {old}` first." in err) == (2, "", True, True)
