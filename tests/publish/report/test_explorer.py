"""What the explorer's page and its data files hold; `test_browser.py` shows what a browser makes of them."""

import base64
import hashlib
import json
import re
from pathlib import Path
from typing import Any

import pytest
from kit.html_tree import parse
from kit.report_nights import HOSTILE, RETURNS, by_hand
from kit.report_rows import NIGHT, RECIPE, Rows, nightly, trace

from tasks.publish.report.explorer import CHARACTERS, MOST_VALUES
from tasks.publish.report.site import build
from tasks.publish.report.text import slug


def explorer(rows: Rows, out: Path, pages: int = 100, **limits: int) -> Path:
    """The night's folder."""
    return build(rows.reader(), out, NIGHT, RECIPE, pages, **limits).parent


def called(path: Path) -> list[Any]:
    """What a data file calls its function with."""
    text = path.read_text(encoding="utf-8")
    assert text.startswith("leadline(")
    assert text.endswith(");\n")
    return json.loads(f"[{text[len('leadline(') : -3]}]")


def listed(folder: Path) -> dict[str, Any]:
    name, data = called(folder / "explorer" / "rows.js")
    assert name == "rows"
    return data


def values(data: dict[str, Any], facet: str) -> dict[str, list[str]]:
    """By trace, what it has of a property."""
    (found,) = [f for f in data["facets"] if f["name"] == facet]
    sets = [[found["values"][place] for place in places] for places in found["sets"]]
    return {i: sets[code] for i, code in zip(data["ids"], found["codes"], strict=True)}


def redact(rows: Rows, trace_id: str) -> None:
    """What `leadline forget` leaves of a trace."""
    (row,) = [t for t in rows.tables["traces"] if t["trace_id"] == trace_id]
    row |= {"question": "", "answer": "", "tags": [], "text_redacted_at": row["timestamp"]}


def test_texts_are_data_and_can_not_end_a_script(tmp_path):
    rows = by_hand()
    folder = explorer(rows, tmp_path)
    files = sorted((folder / "explorer").iterdir())
    assert [f.name for f in files] == ["rows.js", "texts-0.js"]
    for file in files:
        assert not re.search("[<>&\u2028\u2029]", file.read_text(encoding="utf-8"))
    shard, texts = called(folder / "explorer" / "texts-0.js")
    assert shard == 0
    traces = {t["trace_id"]: t for t in rows.tables["traces"]}
    data = listed(folder)
    assert HOSTILE in data["ids"]
    for trace_id, (question, answer, tags) in zip(data["ids"], texts, strict=True):
        assert (question, answer) == (traces[trace_id]["question"], traces[trace_id]["answer"])
        assert tags == "channel: web"


def test_the_page_runs_its_own_script_only(tmp_path):
    tree = parse(explorer(by_hand(), tmp_path) / "explorer.html")
    (script,) = tree.all("script")
    assert not script.attrs
    digest = base64.b64encode(hashlib.sha256(script.text().encode()).digest()).decode()
    (policy,) = [m.attrs["content"] for m in tree.all("meta") if m.attrs.get("http-equiv")]
    assert f"script-src 'sha256-{digest}' 'strict-dynamic';" in policy
    assert "default-src 'none';" in policy
    assert not [a for n in tree.walk() for a in n.attrs if a.startswith("on")]
    assert "alert(" not in script.text()


def test_a_trace_has_its_properties(tmp_path):
    data = listed(explorer(by_hand(), tmp_path))
    # By hand: `kinds` has each label, and a claim that the judge abstains on, for its language.
    assert values(data, "label")["kinds"] == [
        "supported", "partially_supported", "unsupported", "contradicted", "misused", "to_check", "unjudged",
        "abstained",
    ]  # fmt: skip
    assert values(data, "pattern")["kinds"] == ["citation_drift", "dangling_citation"]
    assert values(data, "language")["kinds"] == ["de", "en"]
    assert values(data, "diagnosis")["silent"] == ["none"]
    assert values(data, "tag")["kinds"] == ["channel: web"]
    assert values(data, "prompt")["kinds"] == ["v4"]
    assert data["score"][data["ids"].index("bare")] is None
    status = data["statuses"]["status"]
    assert status["sets"][status["codes"][data["ids"].index("lost")]] == ["unjudged"]


def test_equal_questions_have_one_code_and_removed_ones_none(tmp_path):
    rows = by_hand()
    for score, question in zip(rows.tables["trace_scores"], ["q", "r", "q", None, "q"], strict=True):
        score["question_id"] = question
    data = listed(explorer(rows, tmp_path))
    ids = [s["trace_id"] for s in rows.tables["trace_scores"]]
    codes = [data["question"][data["ids"].index(i)] for i in ids]
    assert codes[0] == codes[2] == codes[4] != codes[1]
    assert codes[3] is None
    assert all(c is None or isinstance(c, int) for c in codes)  # no hash leaves the lake


@pytest.mark.parametrize(
    ("reviews", "state"),
    [
        ([], "not_reviewed"),
        ([{"claim": 0, "label": "supported"}], "partly_reviewed"),
        ([{"claim": 0, "label": "supported"}, {"claim": 1, "label": "supported"}], "reviewed"),
        ([{"claim": 0, "label": "supported"}, {"claim": 0, "label": "unsupported", "reviewer": "b"}], "disputed"),
        ([{"label": "wrong"}], "reviewed"),  # the answer as a whole
    ],
)
def test_how_far_people_have_read_it(tmp_path, reviews, state):
    rows = by_hand()
    both = [{"text": t, "label": "supported"} for t in ("Tea is hot", "Tea is wet")]
    trace(rows, "two", answer="Tea is hot. Tea is wet.", chunks=[RETURNS], claims=both)
    ids = [c["claim_id"] for c in rows.tables["claims"] if c["trace_id"] == "two"]
    for n, review in enumerate(reviews):
        claim = ids[review["claim"]] if "claim" in review else None
        own = {"label": review["label"], "reviewer": review.get("reviewer", "a")}
        rows.add("reviews", review_id=str(n), date=NIGHT, trace_id="two", claim_id=claim, **own)
    data = listed(explorer(rows, tmp_path))
    assert values(data, "review")["two"] == [state]
    assert values(data, "review")["kinds"] == ["not_reviewed"]


def test_pages_are_those_of_the_first_traces(tmp_path):
    folder = explorer(by_hand(), tmp_path, pages=3)
    data = listed(folder)
    assert data["pages"] == [slug(i) for i in data["ids"][:3]]
    assert {p.stem for p in (folder / "traces").iterdir()} == set(data["pages"])
    lede = parse(folder / "explorer.html").one("p", "lede").words()
    assert lede.startswith("All 5 traces of the night. 3 have a page of their own")


def test_what_is_left_out_is_said(tmp_path):
    folder = explorer(by_hand(), tmp_path, pages=1, max_explorer_traces=2)
    assert len(listed(folder)["ids"]) == 2
    rows = by_hand()
    nightly(rows)
    folder = explorer(rows, tmp_path / "more", pages=1, max_explorer_traces=2)
    lede = parse(folder / "explorer.html").one("p", "lede").words()
    assert lede.startswith("The worst 2 of the night's 5 traces")


def test_a_removed_text_is_listed_last_and_without_text(tmp_path):
    rows = by_hand()
    redact(rows, "kinds")
    folder = explorer(rows, tmp_path)
    data = listed(folder)
    assert data["ids"][-1] == "kinds"  # one can still find it by its id
    assert data["texts"] == 4 == len(data["pages"])
    _, texts = called(folder / "explorer" / "texts-0.js")
    assert texts[-1] == ["", "", ""]
    assert "30 days" not in (folder / "explorer" / "texts-0.js").read_text()


def test_rare_values_and_long_texts_are_cut(tmp_path):
    rows = by_hand()
    for t in rows.tables["traces"]:
        t["tags"] = [(f"user {n}", t["trace_id"]) for n in range(MOST_VALUES)]
        t["tags"].append(("channel", "web"))
    question = "a" * CHARACTERS + "b"
    rows.tables["traces"][0]["question"] = question
    folder = explorer(rows, tmp_path)
    (tags,) = [f for f in listed(folder)["facets"] if f["name"] == "tag"]
    assert len(tags["values"]) == MOST_VALUES
    assert "channel: web" in tags["values"]  # the most frequent one
    assert tags["left"] == 5 * MOST_VALUES + 1 - MOST_VALUES
    _, texts = called(folder / "explorer" / "texts-0.js")
    cut = [q for q, _, _ in texts if q.startswith("aaa")]
    assert cut == ["a" * CHARACTERS + "…"]


def test_a_night_without_traces_has_an_explorer(tmp_path):
    rows = by_hand()
    for name in ("traces", "trace_scores"):
        rows.tables[name].clear()
    assert listed(explorer(rows, tmp_path))["ids"] == []
