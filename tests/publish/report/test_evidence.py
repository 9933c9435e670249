"""Failure patterns in the report: evidence on the trace page, marked and escaped, and counts on the night page."""

from pathlib import Path

from kit.html_tree import Node, parse
from kit.report_rows import EXTRACTOR, JUDGE, NIGHT, RECIPE, SCORER, Rows, chunk, nightly, trace

from tasks.core.keys import claim_id
from tasks.publish.report.site import build
from tasks.publish.report.text import slug

ANSWER = "It has <b>17</b> rooms [9]. It is old."
SOURCE = "A house & <i>garden</i>. It is new."


def night() -> Rows:
    rows = Rows()
    rows.add("judges", judge_version=JUDGE, name="nli", kind="nli", definition="{}")
    rows.add(
        "recipes", recipe=RECIPE, name="claims", judge_version=JUDGE, extractor_version=EXTRACTOR,
        scorer_versions=[SCORER], definition="{}",
    )  # fmt: skip
    return rows


def site(out: Path) -> Path:
    rows = night()
    trace(
        rows, "t", answer=ANSWER, chunks=[chunk("c<1>", SOURCE)],
        claims=[
            {"text": "It has <b>17</b> rooms [9].", "label": "unsupported", "patterns": ["ghost_number", "reverse_direction"]},
            {"text": "It is old.", "label": "unsupported"},
        ],
    )  # fmt: skip
    nightly(rows)
    rows.tables["nightly_groundedness"][0] |= {"claims_supported": 8, "claims_to_check": 2, "to_check_share": 0.25, "to_check_share_low": 0.125, "to_check_share_high": 0.5}  # fmt: skip
    rows.add("nightly_trust", recipe=RECIPE, date=NIGHT, judge_version=JUDGE, app="<i>support", n_to_check=3, n_to_check_wrong=2, to_check_wrong_share=0.67)  # fmt: skip
    ident = {"recipe": RECIPE, "date": NIGHT, "claim_id": claim_id("t", EXTRACTOR, 0), "trace_id": "t"}
    rows.add("claim_patterns", **ident, pattern="ghost_number", answer_spans=[{"start": 10, "end": 12}])
    place = {"chunk_id": "c<1>", "start": 0, "end": 24}
    rows.add(
        "claim_patterns",
        **ident,
        pattern="reverse_direction",
        answer_spans=[{"start": 3, "end": 6}],
        chunk_spans=[place],
    )
    group = {"recipe": RECIPE, "date": NIGHT, "app": "support", "generator": "meridian-8b", "judge_version": JUDGE}
    rows.add(
        "nightly_patterns", **group, pattern="ghost_number", n=1, n_not_judged=3, claims_judged=2,
        share=0.5, share_low=0.0945, share_high=0.9055,
    )  # fmt: skip
    rows.add("nightly_patterns", **group, pattern="stitched_facts", n=0, claims_judged=2, share=0.0, share_low=0.0, share_high=0.6576)  # fmt: skip
    build(rows.reader(), out, NIGHT, RECIPE, 10)
    return out / NIGHT.isoformat()


def test_evidence_stands_with_its_claim_marked_and_escaped(tmp_path: Path) -> None:
    page = parse(site(tmp_path) / "traces" / f"{slug('t')}.html")
    ghost, reverse = page.all("div", "evidence")
    assert ghost.one("span", "pattern").words() == "ghost number"
    assert [b.text() for b in ghost.all("b")] == ["17"]
    assert "It has <b>17</b> rooms [9]." in ghost.text()
    assert ghost.all("blockquote") == []
    assert [b.text() for b in reverse.all("b")] == ["has"]
    quote: Node = reverse.one("blockquote")
    assert quote.words() == "A house & <i>garden</i>. …"
    assert quote.all("i") == []
    assert reverse.one("a").attrs["href"] == "#chunk-0"


def test_the_night_page_counts_each_pattern_that_was_looked_for(tmp_path: Path) -> None:
    section = next(s for s in parse(site(tmp_path) / "index.html").all("section") if s.attrs.get("id") == "patterns")
    head = [th.words() for th in section.one("table").all("th")][:3]
    assert head == ["Generator", "ghost number", "stitched facts"]
    texts = [td.words().replace("\u202f", " ") for td in section.one("table").all("td")]
    assert texts[0].startswith("1")
    assert "50.0% [9.4, 90.5]" in texts[0] or "50.0% [9.5, 90.5]" in texts[0]
    assert "and 3 not judged" in texts[0]
    assert texts[1].startswith("0")
    assert texts[2] == "2 25.0% [12.5, 50.0] of supported"
    assert section.one("table").all("td")[2].one("a").attrs["href"].startswith("explorer.html#label=to_check")
    labels = section.all("p", "note")[-1].words()
    assert labels.startswith("<i>support: Of the claims")
    assert "2 of 3 with a pattern (0.67)" in labels


def test_a_night_on_which_none_were_looked_for_says_so(tmp_path: Path) -> None:
    rows = night()
    trace(rows, "t", answer="It is.", chunks=[chunk("c", "It is.")], claims=[{"text": "It is.", "label": "supported"}])
    nightly(rows)
    build(rows.reader(), tmp_path, NIGHT, RECIPE, 10)
    text = (tmp_path / NIGHT.isoformat() / "index.html").read_text(encoding="utf-8")
    assert "No patterns were looked for on this night." in text
