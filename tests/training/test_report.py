"""The tables of the embedded judge: each number by hand on a few claims, on sets that the fusion has not seen, and the command."""

import json
import re
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from kit.root import ROOT

from bench import marks
from bench.accuracy import agreement, labeled
from bench.accuracy.labeled import Claims
from tasks.judges.nli import FEATURES
from tasks.judges.similarity import FEATURES as PLAIN
from training import chart, fuse, report
from training.__main__ import main


def claims(labels, **more):
    n = len(labels)
    return Claims(list(labels), [str(i) for i in range(n)], [], np.arange(n), Counter(), **more)


def measured(labels, odds, contradiction=None, **more):
    """The judge's log-odds of a few claims."""
    odds = np.array(odds, dtype=float)
    other = np.full(len(odds), -1.0) if contradiction is None else np.array(contradiction, dtype=float)
    even = dict.fromkeys(("balanced_accuracy", "kappa", "auc"), (0.5, 0.5, 0.5))
    return report.Measured(claims(labels, **more), odds, other, even)


def rows(table):
    """The cells of a Markdown table, by the first of each row."""
    cells = [[c.strip() for c in line.strip("|").split("|")] for line in table.strip().splitlines()]
    return {first: rest for first, *rest in (cells[0], *cells[2:])}


# Calibration and abstaining -------------------------------------------------------------------------------------------


def test_claims_are_counted_in_tenths_of_p_supported():
    p, truth = np.array([0.05, 0.15, 0.19, 0.95, 1.0]), np.array([0, 0, 1, 1, 1])
    found = report.reliability(p, truth)
    assert [b.n for b in found] == [1, 2, 2]  # below 0.1; 0.1 to 0.2; from 0.9 on, 1 included
    assert [b.p for b in found] == pytest.approx([0.05, 0.17, 0.975])
    assert [b.supported for b in found] == [0, 0.5, 1]
    # (1 * 0.05 + 2 * 0.33 + 2 * 0.025) / 5
    assert report.ece(found) == pytest.approx(0.152)


@pytest.mark.parametrize(("p", "truth", "expected"), [([0.75] * 4, [1, 1, 1, 0], 0.0), ([1.0, 0.0], [0, 1], 1.0)])
def test_calibration_at_its_ends(p, truth, expected):
    assert report.ece(report.reliability(np.array(p), np.array(truth))) == expected


def test_who_answers_less_answers_what_it_is_surest_of():
    # Log-odds of 3, -2, 1 and -0.5: the first is right, the second wrong, the third right, the fourth wrong.
    m = measured(["supported", "supported", "supported", "supported"], [3, -2, 1, -0.5])
    assert m.wrong.tolist() == [False, True, False, True]
    found = [report.risk_at(m.doubt, m.wrong, share) for share in (1, 0.75, 0.5, 0.25)]
    assert found == pytest.approx([2 / 4, 1 / 3, 1 / 2, 0])


def test_of_equally_sure_claims_any_is_left_out():
    m = measured(["supported", "unsupported", "unsupported"], [1, 1, -1])
    # One of three is wrong, whichever go first.
    assert [report.risk_at(m.doubt, m.wrong, share) for share in (1, 2 / 3, 1 / 3)] == pytest.approx([1 / 3] * 3)


def test_one_claim_at_least_is_answered():
    m = measured(["supported", "unsupported"], [1, 2])
    assert report.risk_at(m.doubt, m.wrong, 0.01) == 1


def test_the_table_of_confidence():
    labels = ["supported"] * 3 + ["unsupported", "partially_supported"]
    # Kept: two of three. Caught: one of two. Wrong are the third and the fifth.
    table = rows(report._confidence({"expertqa": measured(labels, [4, 3, -1, -2, 0.5])}))
    columns = table["set"]
    found = dict(zip(columns, table["ExpertQA"], strict=True))
    assert (found["supported kept"], found["others caught"]) == ("0.67", "0.50")
    assert (found["wrong at 100%"], found["wrong at 80%"], found["wrong at 60%"]) == ("0.40", "0.25", "0.00")
    assert found["AURC"] == "0.13"  # mean of 0, 0, 0, 1/4, 2/5
    assert table["*mean of the 1 sets of others*"] == table["ExpertQA"]


def test_sets_that_were_written_here_are_no_part_of_the_mean():
    one, other = measured(["supported", "unsupported"], [1, -1]), measured(["supported", "unsupported"], [-1, 1])
    table = rows(report._confidence({"hagrid": one, "twins": other}))
    assert table["*mean of the 1 sets of others*"] == table["HAGRID"] != table["twins"]


# The other labels -----------------------------------------------------------------------------------------------------


def test_contradicted_counts_where_the_claim_is_not_supported():
    labels = ["contradicted", "contradicted", "contradicted", "unsupported", "partially_supported", "supported"]
    odds, contradiction = [-3, -3, 1, -3, -1, 2], [1, -1, 1, 0.5, -2, 3]
    found = rows(report._labels({"wice": measured(labels, odds, contradiction)}))["WiCE"]
    # Called: the first and the fourth. Supported claims are never called so, whatever the model says.
    assert found[:2] == ["0.50 (1 of 2)", "0.33 (1 of 3)"]
    # Of 3 x 2 pairs of a contradicted and another claim that is not supported, 1 > 0.5, 1 > -2 (twice) and -1 > -2.
    assert found[2] == "0.83"
    # The partial claim's odds of -1 against -3, -3, 1 and -3.
    assert found[3:] == ["1", "0.75"]


def test_sets_without_such_labels_are_left_out():
    sets = {
        "one": measured(["supported", "unsupported"], [1, -1]),
        "two": measured(["supported", "contradicted"], [1, -1]),
    }
    found = rows(report._labels(sets))
    assert set(found) == {"set", "two"}
    assert found["two"] == ["n/a (0)", "0.00 (0 of 1)", "", "", ""]  # nobody is called so; no others to compare with


# Minimal pairs --------------------------------------------------------------------------------------------------------


PAIRS = [  # label, log-odds, kind, pair
    ("supported", 1.0, "x", "a"),
    ("contradicted", -1.0, "date", "a"),
    ("unsupported", 2.0, "date", "b"),
    ("supported", 1.0, "x", "b"),
    ("supported", -1.0, "name", "c"),
    ("unsupported", -1.0, "name", "c"),
    ("supported", 5.0, "name", "left alone"),
    ("supported", 5.0, "name", ""),
    ("unsupported", -5.0, "name", ""),
]


def twins():
    labels, odds, kinds, pairs = (list(column) for column in zip(*PAIRS, strict=True))
    return measured(labels, odds, kinds=kinds, pairs=pairs)


def test_twins_are_compared_with_each_other():
    m = twins()
    found = report.twins(m.claims, m.odds)
    # Kinds are those of the wrong twin. Dates: both right and in order; then only the right one found, in the wrong order.
    assert found["date"] == report.Twins(n=2, ordered=0.5, accuracy=0.75, both=0.5)
    # A tie is half in order; the wrong one is refused, the right one not found.
    assert found["name"] == report.Twins(n=1, ordered=0.5, accuracy=0.5, both=0.0)
    assert list(found) == ["date", "name"]
    whole = report.together(found.values())
    assert (whole.n, whole.ordered, whole.accuracy) == (3, 0.5, pytest.approx(2 / 3))
    assert whole.both == pytest.approx(1 / 3)


def test_kinds_with_few_pairs_share_a_row(monkeypatch):
    monkeypatch.setattr(report, "FEWEST_PAIRS", 2)
    found = rows(report._kinds({"natural": measured(["supported", "unsupported"], [1, -1]), "twins": twins()}))
    assert found["date"] == ["2", "0.75", "0.50", "0.50"]
    assert found["1 more kinds, together"][0] == "1"
    assert found["all"] == ["3", "0.67", "0.50", "0.33"]


def test_the_pairs_of_authored_documents_are_their_twins():
    """The shipped documents: each supported claim with a twin is one pair, by its own name."""
    found = labeled.default_sets()["twins"]
    named = Counter(name for name in found.pairs if name)
    assert set(named.values()) == {2}
    whole = report.twins(found, np.zeros(len(found.labels)))
    assert sum(t.n for t in whole.values()) == len(named) > 400


# All together ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def few_draws(monkeypatch):
    """For what is not about intervals: they take nearly all the time."""
    monkeypatch.setattr(agreement, "DRAWS", 20)


def planted(count, seed, feature="windows", sign=1.0):
    """A set in which one feature has the label: of the judge, and cosine of the baseline."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 2, count)
    judge, plain = rng.normal(size=(count, len(FEATURES))) * 0.1, rng.normal(size=(count, len(PLAIN))) * 0.1
    judge[:, FEATURES.index(feature)] += sign * (2 * truth - 1)
    plain[:, 0] += 0.3 + sign * truth
    # Half of the claims are twins, so that every table has rows.
    pairs = [""] * count
    right, wrong = np.flatnonzero(truth == 1)[: count // 4], np.flatnonzero(truth == 0)[: count // 4]
    for i, (a, b) in enumerate(zip(right, wrong, strict=False)):
        pairs[a] = pairs[b] = str(i)
    labels = np.where(truth == 1, "supported", np.where(rng.random(count) < 0.5, "contradicted", "partially_supported"))
    made = claims(labels.tolist(), kinds=["date"] * count, pairs=pairs)
    return fuse.Sample(made, judge), fuse.Sample(made, plain)


def read(**sets):
    return report.Read({n: judge for n, (judge, _) in sets.items()}, {n: plain for n, (_, plain) in sets.items()})


def test_a_set_is_measured_by_what_was_fitted_to_the_others(few_draws):
    alike = read(one=planted(150, 1), two=planted(150, 2), three=planted(150, 3))
    found = report.measure(alike)["one"]
    assert found.row["balanced_accuracy"][0] > 0.95
    odds = fuse.left_out(alike.judge, "one", fuse.FUSED).odds(alike.judge["one"].table)
    assert found.odds.tolist() == odds.tolist()
    rest = report.others(alike, "one")
    assert rest["windows alone"]["auc"][0] > 0.95
    assert abs(rest["nearest alone"]["auc"][0] - 0.5) < 0.15  # nothing there: a standard deviation is below 0.05
    assert rest["cosine"]["balanced_accuracy"][0] > 0.95  # its threshold is found on the others
    # Where the others say the reverse, it is wrong throughout: that it did well would be a leak.
    reverse = read(one=planted(150, 1), two=planted(150, 2, sign=-1.0), three=planted(150, 3, sign=-1.0))
    assert report.measure(reverse)["one"].row["auc"][0] < 0.05
    assert report.others(reverse, "one")["cosine"]["auc"][0] < 0.05


def test_every_figure_of_the_pages_is_one_that_the_command_gives(few_draws):
    names = [*report.TITLES, "gensearch", *sorted(report.OWN_SETS)]
    found = read(**{name: planted(60, i) for i, name in enumerate(names)})
    m = report.measure(found)
    tables, numbers = report.tables(found, m), report.numbers(m)
    assert not set(tables) & set(numbers)  # one would replace the other in the pages
    known = {**tables, **numbers}
    shown = [name for page in report.PAGES for name, _ in marks.shown(page.read_text(encoding="utf-8"), report.SOURCE)]
    assert set(shown) <= set(known)
    assert {name for name in report.CAPTIONS if name not in shown} == set()
    assert set(report.CAPTIONS) == set(tables)


def test_figures_are_written_into_pages(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("It is <!-- figure: judge/wice -->0.1<!-- /figure -->, <!-- figure: claims -->7<!-- /figure -->.")
    report.write({"judge/wice": "0.75"}, [page])
    expected = "It is <!-- figure: judge/wice -->0.75<!-- /figure -->, <!-- figure: claims -->7<!-- /figure -->."
    assert page.read_text() == expected


# The command ----------------------------------------------------------------------------------------------------------


def data(folder: Path, name: str, labels: str) -> str:
    """A file of two claims for each letter: s, and anything else."""
    chunk = "The dam was finished in 1936. It is 221 meters high. A road leads over it."
    texts = {"s": "The dam was finished in 1936.", "u": "The dam was painted green.", "c": "The dam is 90 meters high."}
    names = {"s": "supported", "u": "not_supported", "c": "contradicted"}
    rows = [{"claim": texts[x], "chunks": [f"{chunk} Page {i}."], "label": names[x]} for i, x in enumerate(labels)]
    path = folder / f"{name}.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(path)


@pytest.mark.slow
def test_the_command_prints_the_tables_and_writes_them_with_a_picture(tmp_path, capsys):
    options = ["--data", data(tmp_path, "one", "sucs"), "--data", data(tmp_path, "two", "susu")]
    folders = ["--cache", str(tmp_path / "cache"), "--to", str(tmp_path / "to")]
    with pytest.raises(SystemExit) as ended:
        main(["report", *options, *folders])
    assert not ended.value.code
    printed = capsys.readouterr().out
    assert all(caption in printed for caption in report.CAPTIONS.values())
    found = re.findall(r"^\| (one|two) \| 4 \| ", printed, re.MULTILINE)
    assert found == ["one", "two"]
    assert (tmp_path / "to" / "judge.md").read_text(encoding="utf-8").strip() == printed.strip()
    picture = ElementTree.fromstring((tmp_path / "to" / chart.FILE).read_text(encoding="utf-8"))
    texts = [t.text for t in picture.iter("{http://www.w3.org/2000/svg}text")]
    assert texts.count("one") == texts.count("two") == 2  # reliability, coverage and risk
    assert len(list((tmp_path / "cache").iterdir())) == 4  # of two judges on two sets
    before = {p: p.stat().st_mtime_ns for p in (tmp_path / "cache").iterdir()}
    with pytest.raises(SystemExit):
        main(["report", *options, *folders])
    assert capsys.readouterr().out == printed
    assert {p: p.stat().st_mtime_ns for p in (tmp_path / "cache").iterdir()} == before


@pytest.mark.parametrize(
    ("sets", "more", "message"),
    [
        ({"one": "su"}, [], "A set is measured by a fit to others. Name more than one with --data."),
        ({"one": "su", "two": "uc"}, [], "two needs supported and other claims"),
        ({"one": "su", "two": "su"}, ["--write"], "--write puts the figures of all sets into the pages"),
    ],
)
def test_mistakes_are_explained(sets, more, message, tmp_path):
    options = [x for name, labels in sets.items() for x in ("--data", data(tmp_path, name, labels))]
    with pytest.raises(SystemExit, match=re.escape(message)):
        main(["report", *options, *more])


def test_the_picture_is_drawn_of_every_set(few_draws):
    found = read(one=planted(40, 1), two=planted(12, 4), three=planted(40, 3))
    svg = chart.draw(report.measure(found))
    texts = [t.text for t in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")]
    assert {"one", "two", "three", "Reliability", "Coverage and risk"} <= set(texts)
    assert "aria-" not in svg
    assert svg == chart.draw(report.measure(found))


def test_the_picture_of_the_page_is_there():
    page = (ROOT / "bench/README.md").read_text(encoding="utf-8")
    assert f"]({chart.FILE})" in page
    assert (ROOT / "bench" / chart.FILE).is_file()
