"""The whole report over a small night that has one of everything."""

import re
from datetime import date, timedelta
from pathlib import Path
from urllib.parse import parse_qs, unquote, urldefrag

import pytest
from kit.html_tree import Node, parse
from kit.report_nights import DRIFT_WINDOW, HOSTILE, RETURNS, SHIPPING, WARRANTY, by_hand, more
from kit.report_rows import JUDGE, NIGHT, RECIPE, DuckReader, Rows, nightly, pack, trace

from tasks.core.errors import LeadlineError
from tasks.publish.report.site import build
from tasks.publish.report.text import slug


@pytest.fixture(scope="module")
def rows() -> Rows:
    rows = by_hand()
    nightly(rows, nights=3)
    return rows


@pytest.fixture(scope="module")
def site(rows, tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("site")
    assert build(rows.reader(), out, NIGHT, RECIPE, 100) == out / "2026-11-19" / "index.html"
    return out


@pytest.fixture(scope="module")
def night(site) -> Node:
    return parse(site / "2026-11-19" / "index.html")


def page(site: Path, trace_id: str) -> Node:
    return parse(site / "2026-11-19" / "traces" / f"{slug(trace_id)}.html")


def cells(table: Node) -> list[list[str]]:
    return [[c.words() for c in r.children if isinstance(c, Node)] for r in table.all("tr")]


def plain(text: str) -> str:
    """Without the thin spaces between numbers."""
    return text.replace("\u202f", "").replace("\u00a0", " ")


# Safety


def test_every_answer_is_shown_character_by_character(site, rows):
    for t in rows.tables["traces"]:
        shown = page(site, t["trace_id"]).one("div", "answer").text()
        assert shown == t["answer"].replace("\0", "\ufffd")


def test_claims_are_marked_exactly(site, rows):
    for t in rows.tables["traces"]:
        marks = page(site, t["trace_id"]).one("div", "answer").all("mark")
        claims = [c for c in rows.tables["claims"] if c["trace_id"] == t["trace_id"] and c["kind"] == "claim"]
        assert [(m.attrs["id"], m.text()) for m in marks] == [
            (f"mark-{c['ordinal']}", t["answer"][c["span_start"] : c["span_end"]].replace("\0", "\ufffd"))
            for c in claims
        ]


def static(site: Path) -> list[Path]:
    """The pages without a script; see `test_explorer.py` for the one that has one."""
    return [path for path in site.rglob("*.html") if path.name != "explorer.html"]


def test_no_text_of_a_trace_becomes_markup(site):
    for path in static(site):
        for node in parse(path).walk():
            assert node.tag not in {"script", "img", "iframe", "object", "embed", "form", "i", "base"} or (
                node.tag == "i" and not node.children and set(node.attrs) == {"style"}  # the gauge's band
            )
            assert not [a for a in node.attrs if a.startswith("on")]
    hostile = page(site, HOSTILE)
    assert hostile.one("p", "question-text").text().startswith("</title><script>alert('q')</script>")
    assert "{{ 7 * 7 }}" in hostile.one("div", "answer").text()
    assert "<img src=http://evil.example/x.png" in hostile.one(id_="chunk-0").text()


def test_nothing_is_loaded_from_elsewhere(site):
    for path in site.rglob("*.html"):
        tree = parse(path)
        (policy,) = [m.attrs["content"] for m in tree.all("meta") if m.attrs.get("http-equiv")]
        assert policy.startswith("default-src 'none';")
        assert ("script-src 'none'" in policy) == (path in static(site))
        for node in tree.walk():
            assert "src" not in node.attrs
            assert "url(" not in node.attrs.get("style", "")
        for href in tree.references():
            assert href == "data:," or not re.match(r"[a-z]+:|//", href), f"{path.name}: {href}"
    css = (site / "style.css").read_text()
    assert "url(" not in css
    assert "@import" not in css


def test_texts_in_either_direction_are_kept_apart(site):
    hostile = page(site, HOSTILE)
    for node in (hostile.one("p", "question-text"), hostile.one("div", "answer"), *hostile.all("div", "plain")):
        assert node.attrs["dir"] == "auto"


# Links


def test_every_link_leads_somewhere(site):
    trees = {p.resolve(): parse(p) for p in site.rglob("*.html")}
    assert len(trees) == 3 + 5
    for path, tree in trees.items():
        assert len(tree.ids()) == len(set(tree.ids())), f"{path.name} has an id twice"
        for href in tree.references():
            if href == "data:,":
                continue
            file, fragment = urldefrag(href)
            if file.endswith("explorer.html"):
                fragment = ""  # filters
            target = (path.parent / unquote(file)).resolve() if file else path
            assert target.is_file(), f"{path.name}: {href}"
            if fragment:
                assert fragment in trees[target].ids(), f"{path.name}: {href}"


def test_every_section_is_named_by_a_heading_of_its_page(site):
    for path in site.rglob("*.html"):
        tree = parse(path)
        for node in tree.walk():
            if node.tag in {"section", "aside"}:
                assert node.attrs.keys() & {"aria-label", "aria-labelledby"}, f"{path.name}: {node.attrs}"
            named = node.attrs.get("aria-labelledby")
            assert named is None or named in tree.ids(), f"{path.name}: {node.tag} {node.attrs}"


def test_traces_are_chained_in_the_order_of_the_list(site):
    explorer = parse(site / "2026-11-19" / "explorer.html")
    listed = explorer.one("noscript").links()
    assert len(listed) == 5
    seen = ["traces/" + Path(listed[0]).name]
    while nexts := [
        n.attrs["href"] for n in parse(site / "2026-11-19" / seen[-1]).all("a") if n.attrs.get("rel") == "next"
    ]:
        seen.append("traces/" + nexts[0])
    assert seen == listed


# The night


def test_the_head_says_what_ran(night):
    lede = plain(night.one("p", "lede").words())
    assert "5 answers scored under recipe claims" in lede
    assert "judged by nli-minilm" in lede
    for part in (
        "lasted 3 min 20 s. It took in",
        "computed 1234 verdicts",
        "had 77 already",
        "read 98765",
        "refused 3 rows",
    ):
        assert part in lede


def test_headline_numbers_carry_interval_and_what_was_left_out(tmp_path):
    rows = by_hand()
    ident = {"recipe": RECIPE, "date": NIGHT, "app": "support", "generator": "g", "judge_version": "j", "n": 9}
    rows.add(
        "nightly_groundedness", **ident, n_scored=5, n_na=2, n_unjudged=1, n_abstained=1, groundedness_mean=61.26,
        groundedness_low=50.0, groundedness_high=72.5, faithfulness_mean=0.5, claims_total=12, claims_judged=8,
        claims_misused=2, claims_unjudged=3, citations_dangling=4, misused_share=0.25, misused_share_low=0.0714,
        misused_share_high=0.5912,
    )  # fmt: skip
    rows.add("nightly_utilization", **ident, n_scored=0, n_na=9)
    build(rows.reader(), tmp_path, NIGHT, RECIPE, 0)
    table = parse(tmp_path / "2026-11-19" / "index.html").one("table", "headline")
    head, row = cells(table)
    got = dict(zip(head, map(plain, row), strict=True))
    assert got["Groundedness"] == "61.3 [50.0, 72.5] n=5, 2 n/a, 1 unjudged, 1 abstained"
    assert got["Faithfulness"] == "0.50 no interval n=5, 2 n/a, 1 unjudged, 1 abstained"
    assert got["Utilization"] == "n/a n=0, 9 n/a"  # nothing scored: no number, and certainly no 0
    assert got["Answer relevance"] == "n/a"
    assert (
        got["Claims misused"] == "25.0% [7.1, 59.1] 2 of 8 judged, 1 n/a, 3 unjudged"
    )  # 12 - 8 - 3 were not applicable


def test_citations_and_slices_have_their_numbers(tmp_path):
    rows = by_hand()
    ident = {"recipe": RECIPE, "date": NIGHT, "app": "support", "generator": "g", "judge_version": "j"}
    rows.add(
        "nightly_groundedness", **ident, n=9, claims_total=12, claims_judged=8, claims_supported=4, claims_misused=2,
        claims_abstained=3, claims_unread=3, citations_dangling=4, misused_share=0.25, misused_share_low=0.0714,
        misused_share_high=0.5912, claims_to_check=1, citation_recall_mean=0.5, citation_recall_low=0.25,
        citation_recall_high=0.75, n_no_answer=1, n_refusal=2,
    )  # fmt: skip
    german = {"slice": "language", "value": "de", "n": 2, "claims": 3, "claims_total": 12, "share": 0.25, "share_low": 0.1, "share_high": 0.5}  # fmt: skip
    english = {"value": "en", "n": 7, "n_scored": 7, "claims": 9, "share": 0.75, "claims_judged": 8, "claims_supported": 4, "score_mean": 61.26, "score_low": 50.0, "score_high": 70.0}  # fmt: skip
    rows.add("nightly_slices", **ident, **german, claims_unread=3)
    rows.add("nightly_slices", **ident, **german | english)
    rows.add("nightly_slices", **ident, **german | english | {"slice": "tags.<b>topic", "value": "<i>returns & co"})
    rows.add("nightly_slices", **ident, **german | {"slice": "tags.<b>topic", "value": None})
    build(rows.reader(), tmp_path, NIGHT, RECIPE, 0)
    page = parse(tmp_path / "2026-11-19" / "index.html")
    tables = {t.one("caption").words(): cells(t) for t in page.all("table") if t.all("caption")}
    _, row = tables["Citations by generator and app"]
    assert list(map(plain, row))[1:] == ["0.50 [0.25, 0.75]", "n/a", "25.0% [7.1, 59.1] 2 of 8 judged", "4"]
    _, *found = tables["Language by generator, support"]
    assert [list(map(plain, row)) for row in found] == [
        ["en", "g", "61.3 [50.0, 70.0] n=7", "7", "9 75.0% [10.0, 50.0]", "50% 4 of 8 judged", "0", "0"],
        ["de", "g", "n/a n=0", "2", "3 25.0% [10.0, 50.0]", "n/a 0 of 0 judged", "0", "3"],
    ]
    _, *found = tables["Tag <b>topic by generator, support"]
    assert [row[0] for row in found] == ["<i>returns & co", "the rarer values"]
    (link,) = [h for h in page.links() if "tag=" in h]
    filters = {"tag": ["<b>topic: <i>returns & co"], "app": ["support"], "generator": ["g"]}
    assert parse_qs(link.removeprefix("explorer.html#")) == filters
    assert "1 is empty and 2 only say that there is no answer" in page.one(id_="refused").text()


def test_trend_keeps_judge_versions_apart(tmp_path):
    rows = by_hand()
    name = rows.tables["recipes"][0]["name"]
    for back, judge, recipe in [(0, "new", RECIPE), (1, "new", RECIPE), (2, "old", "before"), (3, "old", "before")]:
        night = {"recipe": recipe, "date": NIGHT - timedelta(back), "app": "a", "judge_version": judge}
        rows.add("nightly_groundedness", **night, generator="g", n=2, n_scored=2, groundedness_mean=50.0 + back)
        rows.add("current_recipes", **night, recipe_name=name)
    # backfilled: the new judge's line goes on, the mark stays where it began to count
    past = {"recipe": RECIPE, "date": NIGHT - timedelta(2), "app": "a", "judge_version": "new"}
    rows.add("nightly_groundedness", **past, generator="g", n=2, n_scored=2, groundedness_mean=60.0)
    # another recipe that counts for nothing here
    rows.add("nightly_groundedness", **{**past, "recipe": "other"}, generator="g", n=2, n_scored=2)
    build(rows.reader(), tmp_path, NIGHT, RECIPE, 0)
    trend = parse(tmp_path / "2026-11-19" / "index.html").one(id_="trend")
    assert [li.words() for li in trend.one("ul", "legend").all("li")] == ["g (judge new)", "g (judge old)"]
    (plot,) = trend.all("div", "plot")
    assert plot.attrs["aria-label"].endswith("g (judge new): 60.0 to 50.0 over 3 nights; g (judge old): 53.0 to 52.0 over 2 nights")  # fmt: skip
    assert "From 2026-11-18 on, judge new counts" in trend.words()


def test_trend_names_judges_as_people_do(tmp_path):
    """Two versions are both called llm, and so have them beside; the third judge has a name of its own."""
    rows = by_hand()
    name = rows.tables["recipes"][0]["name"]
    for back, judge, recipe, called in [(0, "v1", RECIPE, "llm"), (1, "v2", "b", "llm"), (2, "v3", "c", "nli")]:
        night = {"recipe": recipe, "date": NIGHT - timedelta(back), "app": "a", "judge_version": judge}
        rows.add("nightly_groundedness", **night, generator="g", n=2, n_scored=2, groundedness_mean=50.0)
        rows.add("current_recipes", **night, recipe_name=name)
        rows.add("judges", judge_version=judge, name=called, kind="llm", definition="{}")
    build(rows.reader(), tmp_path, NIGHT, RECIPE, 0)
    trend = parse(tmp_path / "2026-11-19" / "index.html").one(id_="trend")
    assert [li.words() for li in trend.one("ul", "legend").all("li")] == ["g (judge llm v1)", "g (judge llm v2)", "g (judge nli)"]  # fmt: skip
    assert "From 2026-11-18 on, judge llm v2 counts" in trend.words()


def test_trend_goes_on_under_another_name(tmp_path):
    """Nights of an earlier judge under the old name; then the judge was changed, and later the recipe renamed."""
    rows = by_hand()
    name = rows.tables["recipes"][0]["name"]
    for back, judge, recipe, of in [
        (0, "new", RECIPE, name), (1, "new", RECIPE, "old name"), (2, "old", "before", "old name"),
        (2, "else", "foreign", "another name"),
    ]:  # fmt: skip
        night = {"recipe": recipe, "date": NIGHT - timedelta(back), "app": "a", "judge_version": judge}
        rows.add("nightly_groundedness", **night, generator="g", n=2, n_scored=2, groundedness_mean=50.0 + back)
        rows.add("current_recipes", **night, recipe_name=of)
    # a night that was run again after it: the recipe counts for it under both names
    rows.add(
        "current_recipes", recipe=RECIPE, date=NIGHT - timedelta(1), app="a", judge_version="new", recipe_name=name
    )
    build(rows.reader(), tmp_path, NIGHT, RECIPE, 0)
    trend = parse(tmp_path / "2026-11-19" / "index.html").one(id_="trend")
    (plot,) = trend.all("div", "plot")
    assert plot.attrs["aria-label"].endswith("g (judge new): 51.0 to 50.0 over 2 nights; g (judge old): 52.0")
    assert "From 2026-11-18 on, judge new counts" in trend.words()


def test_trend_stops_at_the_night(tmp_path):
    rows = by_hand()
    for ahead in (0, 1):
        rows.add(
            "nightly_groundedness", recipe=RECIPE, date=NIGHT + timedelta(ahead), app="a", generator="g",
            judge_version="j", n=1, n_scored=1, groundedness_mean=10.0,
        )  # fmt: skip
    build(rows.reader(), tmp_path, NIGHT, RECIPE, 0)
    assert "2026-11-20" not in parse(tmp_path / "2026-11-19" / "index.html").one(id_="trend").text()


def test_a_misuse_shows_claim_cited_chunk_and_where_the_support_is(site, night):
    (case,) = [c for c in night.all("article", "case") if "warranty is two years" in c.text()]
    there = f"traces/{slug('kinds')}.html"
    assert case.links()[0] == f"{there}#claim-1"
    quotes = [b.words() for b in case.all("blockquote")]
    heads = [p.words() for p in case.all("p", "source-head")]
    assert heads[0].startswith("It cites ret-1")
    assert "unsupported" in heads[0]
    assert quotes[0].startswith("Unused goods may be returned within 30 days")
    assert heads[1].startswith("Its support is in war-2")
    assert quotes[1] == "… Kettles carry a warranty of two years from the day of purchase. …"
    assert [h for h in case.links() if "#chunk" in h] == [f"{there}#chunk-0", f"{there}#chunk-1"]
    assert "citation drift" in case.text()


def test_one_representative_misuse_per_trace_the_surest_first(night):
    cases = [c.one("h3").words() for c in night.all("article", "case")]
    assert cases == ["<script>alert(1)</script>", "The warranty is two years from purchase"]  # .93 beats .88


def test_refused_rows_are_counted_and_named_and_their_texts_not_shown(site, night):
    refused = night.one(id_="refused")
    reasons, places = refused.all("table")
    assert cells(reasons)[1:] == [["missing_field", "parse", "2"], ["duplicate", "duplicate", "1"]]
    # By source and line, then by stage; the row of the night before is not this one's.
    assert cells(places)[1:] == [
        ["a.jsonl", "0", "duplicate", "why"], ["a.jsonl", "0", "missing_field", "why"], ["a.jsonl", "1", "missing_field", "why"],
    ]  # fmt: skip
    assert "3 rows of this night were refused." in refused.text()
    assert "2 citations" in refused.text()  # [9] and <b>9</b>
    assert not [p for p in site.rglob("*.html") if "secret" in p.read_text()]


def test_worst_traces_come_first(night):
    lowest, misused = night.one(id_="worst").all("table")
    assert [r[0] for r in cells(lowest)[1:]] == [  # both at 0; the one with more misuses first; nothing unscored
        "How long may I return a kettle, and who pays?",
        "</title><script>alert('q')</script> מה זה?",
    ]
    assert len(cells(misused)) == 3


def test_triad_counts(night):
    table = night.one(id_="layers").one("table")
    rows_ = [[plain(c) for c in r] for r in cells(table)]
    at = next(i for i, r in enumerate(rows_) if r[0] == "meridian-8b support")
    # healthy, declined, prompt, generator, retrieval, none
    assert [re.match(r"\d+", c)[0] for c in rows_[at + 1]] == ["0", "0", "0", "1", "0", "2"]
    assert "1 generator and 2 without a diagnosis" in table.all("div", "stack")[2].attrs["aria-label"]


# A trace


def test_every_kind_of_verdict_is_shown_by_name(site):
    bodies = page(site, "kinds").one("table", "claims").all("tbody")
    verdicts = [b.all("td")[1].words().split()[0] for b in bodies if b.attrs.get("id", "").startswith("claim-")]
    assert verdicts == ["supported", "supported", "contradicted", "unsupported", "partly", "unjudged", "abstained"]
    assert "misused" in bodies[0].text() + page(site, "kinds").one(id_="claim-1").text()
    assert "to check" in page(site, "kinds").one(id_="claim-1").text()  # supported, and a pattern was found
    last = page(site, "kinds").one(id_="claim-6").text()
    assert "the judge does not read de" in last
    assert "Refunds: They may be slow" in last  # with what it is read with


def test_misuse_and_label_differ_in_the_answer_by_more_than_color(site):
    classes = [m.attrs["class"] for m in page(site, "kinds").one("div", "answer").all("mark")]
    assert classes[:3] == ["v-supported", "v-supported is-misused", "v-contradicted is-misused"]
    css = (site / "style.css").read_text()
    styles = re.findall(r"--line: (solid|dashed|dotted|wavy|double)", css)
    assert {"solid", "dashed", "dotted", "wavy", "double"} == set(styles)


def test_pairs_that_failed_or_have_no_verdict_are_distinct(site):
    pairs = page(site, "kinds").one(id_="claim-5").one("table", "pairs")
    assert sorted(r[2] for r in cells(pairs)[1:]) == ["unjudged no verdict", "unjudged unparsable"]
    assert [r[3:] for r in cells(pairs)[1:]] == [["n/a", "n/a"]] * 2


def test_a_repaired_verdict_replaces_the_failure(rows, tmp_path):
    fixed = by_hand()
    (lost,) = [v for v in fixed.tables["verdicts"] if v["failure"] == "truncated"]
    fixed.add("verdicts", **{**lost, "label": "supported", "failure": None, "p_supported": 0.8})
    build(fixed.reader(), tmp_path, NIGHT, RECIPE, 10)
    (pair,) = cells(page(tmp_path, "lost").one("table", "pairs"))[1:]
    assert pair[2:4] == ["supported", "0.80"]


def test_the_deciding_window_is_marked_and_whole_chunks_are_not(site):
    tree = page(site, "kinds")
    (window,) = tree.all("span", "window")
    assert window.text() == WARRANTY["text"][slice(*DRIFT_WINDOW)]
    assert window in list(tree.one(id_="chunk-1").walk())
    assert tree.one(id_="chunk-1").one("div", "plain").text() == WARRANTY["text"]


def test_a_pack_shows_which_passages_decided_and_why(tmp_path):
    rows = by_hand()
    reasons = "<b>Passage 3</b> says so; passage 1 does too."
    trace(
        rows, "packed", answer="Parcels take four days [1].", chunks=[RETURNS, WARRANTY, SHIPPING],
        claims=[{
            "text": "Parcels take four days", "label": "supported", "misused": False, "cites": ["ret-1"],
            "deciding": ["ret-1", "ship-3"],
            "pairs": [pack(["ret-1", "war-2", "ship-3"], "supported", 0.9, named=[3, 1], explanation=reasons)],
        }],
    )  # fmt: skip
    build(rows.reader(), tmp_path, NIGHT, RECIPE, 100)
    tree = page(tmp_path, "packed")
    claim = tree.one(id_="claim-0")
    assert [why.text() for why in claim.all("p", "why")] == [reasons] * 2  # beside the claim, and with the pair
    assert not claim.all("b")  # nobody's markup
    assert [q.words() for q in claim.all("blockquote")] == [RETURNS["text"], SHIPPING["text"]]
    cites, decided = (claim.all("td")[i].words() for i in (2, 3))
    assert cites == "ret-1 supported"  # named by the pack, though never shown by itself
    assert decided == "ret-1 ship-3"
    (pair,) = cells(claim.one("table", "pairs"))[1:]
    assert re.findall(r"(\S+) \d+–\d+(, decides)?", pair[0]) == [
        ("ret-1", ", decides"), ("war-2", ""), ("ship-3", ", decides"),
    ]  # fmt: skip
    assert pair[1] == "pack"
    assert "decides claim 1" in tree.one(id_="chunk-2").one("ul", "meta").words()
    assert "decides" not in tree.one(id_="chunk-1").one("ul", "meta").words()


def test_a_cited_chunk_that_was_seen_among_others_only_has_no_label_of_its_own(tmp_path):
    rows = by_hand()
    trace(
        rows, "packed", answer="Parcels fly [1].", chunks=[RETURNS, WARRANTY],
        claims=[{
            "text": "Parcels fly", "label": "unsupported", "misused": True, "cites": ["ret-1"], "deciding": ["ret-1", "war-2"],
            "pairs": [pack(["ret-1", "war-2"], "unsupported", 0.1, named=[])],
        }],
    )  # fmt: skip
    build(rows.reader(), tmp_path, NIGHT, RECIPE, 100)
    assert page(tmp_path, "packed").one(id_="claim-0").all("td")[2].words() == "ret-1"
    night_page = parse(tmp_path / "2026-11-19" / "index.html")
    assert [h for c in night_page.all("article", "case") for p in c.all("p", "source-head") if (h := p.words()) == "It cites ret-1 Returns"]  # fmt: skip


def test_pairs_of_each_judge_of_a_cascade_are_shown_and_the_deciding_ones_count(tmp_path):
    rows = by_hand()
    (recipe,) = rows.tables["recipes"]
    recipe["judge_versions"] = [JUDGE, "expensive"]
    (claim,) = [c for c in rows.tables["claims"] if c["trace_id"] == "lost"]
    (result,) = [r for r in rows.tables["claim_results"] if r["trace_id"] == "lost"]
    result |= {"status": "judged", "label": "supported", "stage": 2, "stage_asked": 2, "deciding_chunk_ids": ["ship-3"]}
    evidence = [{"chunk_id": "ship-3", "start": 0, "end": 7}]
    rows.add(
        "pairs", recipe=RECIPE, claim_id=claim["claim_id"], trace_id="lost", stage=2, pair_kind="single", evidence=evidence,
        request_key="again", cited=False,
    )  # fmt: skip
    expensive = {"request_key": "again", "label": "supported", "explanation": "Yes."}
    rows.add("verdicts", judge_version="expensive", **expensive)
    rows.add("verdicts", judge_version=JUDGE, **{**expensive, "explanation": "No."})  # of another judge
    build(rows.reader(), tmp_path, NIGHT, RECIPE, 100)
    shown = page(tmp_path, "lost").one(id_="claim-0")
    assert [r[1] for r in cells(shown.one("table", "pairs"))[1:]] == ["single", "single, judge 2"]
    assert {why.words() for why in shown.all("p", "why")} == {"Yes."}


def test_chunks_link_back_to_their_claims(site):
    tree = page(site, "kinds")
    assert tree.one(id_="chunk-0").links() == ["#claim-0", "#claim-3", "#claim-0", "#claim-1"]
    assert "unused" in tree.one(id_="chunk-1").one("ul", "meta").words()
    assert tree.one(id_="claim-1").links() == ["#mark-1", "#chunk-0", "#chunk-1", "#chunk-1", "#chunk-0", "#chunk-1"]


def test_the_three_questions_stop_at_the_layer_that_failed(site):
    items = [li.words() for li in page(site, "kinds").one("ol", "triad").all("li")]
    assert [re.search(r"\? (.*?) [\d.]", i)[1] for i in items] == ["yes", "no", "not reached"]
    assert items[0].endswith("0.71 yes from 0.35")


def test_what_does_not_apply_is_never_zero(site):
    bare = page(site, "bare")
    scores = {d.one("dt").words(): d.one("dd").words() for d in bare.one("dl", "scores").all("div")}
    assert scores["Groundedness"] == scores["Faithfulness"] == scores["Utilization"] == "n/a"
    assert scores["Chunks used"] == "n/a of 0"
    assert "Nothing was retrieved" in bare.one(id_="chunks").text()
    assert bare.one(id_="claim-0").all("span", "badge")[0].words() == "n/a"
    silent = page(site, "silent")
    assert "only says that there is none" in silent.one(id_="claims").text()
    assert [plain(c) for c in cells(silent.one(id_="claims").one("table"))[1]] == [
        "1",
        "refusal",
        "Sorry, I don't know.",
    ]
    lost = page(site, "lost")
    scores = {d.one("dt").words(): d.one("dd").words() for d in lost.one("dl", "scores").all("div")}
    assert scores["Groundedness"] == "unjudged"


# Building


def test_apps_and_generators_take_turns_for_pages(rows, tmp_path):
    build(rows.reader(), tmp_path, NIGHT, RECIPE, 3)
    pages = {p.stem for p in (tmp_path / "2026-11-19" / "traces").iterdir()}
    assert pages == {slug(HOSTILE), slug("kinds"), slug("lost")}
    assert "; 3 of them have a page" in parse(tmp_path / "2026-11-19" / "index.html").one(id_="traces").words()


def test_no_pages_no_links(rows, tmp_path):
    index = build(rows.reader(), tmp_path, NIGHT, RECIPE, 0)
    assert not [h for h in parse(index).links() if h.startswith("traces/")]
    assert not list(tmp_path.rglob("traces/*"))


def test_an_empty_night_has_a_page(rows, tmp_path):
    index = build(rows.reader(), tmp_path, date(2020, 1, 1), RECIPE, 10)
    assert "No trace of this night is scored" in parse(index).text()
    assert "No run over this night is on record" in parse(index).words()


def test_the_list_of_nights_grows_the_latest_first(rows, tmp_path):
    for night_ in (NIGHT, NIGHT - timedelta(1)):
        build(rows.reader(), tmp_path, night_, RECIPE, 1)
    links = [h for h in parse(tmp_path / "index.html").links() if h.endswith("index.html")]
    assert links == ["2026-11-19/index.html", "2026-11-18/index.html"]


def test_a_rerun_replaces_the_night_and_leaves_nothing_behind(rows, tmp_path):
    build(rows.reader(), tmp_path, NIGHT, RECIPE, 100)
    (tmp_path / ".2026-11-19.dead.new").mkdir()  # a run was killed
    build(rows.reader(), tmp_path, NIGHT, RECIPE, 1)
    assert len(list((tmp_path / "2026-11-19" / "traces").iterdir())) == 1
    assert sorted(p.name for p in tmp_path.iterdir()) == ["2026-11-19", "index.html", "style.css"]


def test_a_night_that_a_killed_run_had_moved_aside_is_put_back(rows, tmp_path):
    build(rows.reader(), tmp_path, NIGHT, RECIPE, 100)
    (tmp_path / "2026-11-19").rename(tmp_path / ".2026-11-19.dead.old")
    with pytest.raises(ConnectionError):
        build(Flaky(rows), tmp_path, NIGHT, RECIPE, 100)
    assert (tmp_path / "2026-11-19" / "index.html").is_file()


class Flaky(DuckReader):
    """Fails in the middle of the trace pages."""

    def __init__(self, rows: Rows) -> None:
        super().__init__(rows.tables)

    def rows(self, sql, params):
        if "FROM pairs" in sql:
            raise ConnectionError("lost")
        return super().rows(sql, params)


def test_a_build_that_fails_leaves_the_last_one_standing(rows, tmp_path):
    build(rows.reader(), tmp_path, NIGHT, RECIPE, 100)
    before = {p: p.read_bytes() for p in tmp_path.rglob("*.html")}
    with pytest.raises(ConnectionError):
        build(Flaky(rows), tmp_path, NIGHT, RECIPE, 100)
    assert {p: p.read_bytes() for p in tmp_path.rglob("*.html")} == before
    assert not [p for p in tmp_path.iterdir() if p.name.startswith(".")]


def test_an_unknown_recipe_is_named(rows, tmp_path):
    with pytest.raises(LeadlineError, match="'nope' is not in the table `recipes`"):
        build(rows.reader(), tmp_path, NIGHT, "nope", 1)


def test_a_place_that_can_not_be_written_is_named(rows, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(LeadlineError, match=r"file.*can't be written"):
        build(rows.reader(), tmp_path / "file" / "site", NIGHT, RECIPE, 1)


def test_queries_do_not_grow_with_the_traces(tmp_path):
    def queries(each: int) -> int:
        rows = by_hand()
        more(rows, each)
        nightly(rows)
        reader = rows.reader()
        build(reader, tmp_path, NIGHT, RECIPE, 60)
        return reader.queries

    assert queries(2) == queries(8)
