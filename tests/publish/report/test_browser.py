"""The pages in a real browser, from disk. Screenshots go to $LEADLINE_SCREENSHOTS, if that is set."""

import os
import re
from pathlib import Path

import pytest
from kit.report_nights import by_hand, more
from kit.report_rows import NIGHT, RECIPE, nightly
from playwright.sync_api import expect, sync_playwright

from tasks.publish.report.site import build
from tasks.publish.report.text import slug

CHROMIUM = Path("/usr/bin/chromium")
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(not CHROMIUM.exists(), reason=f"{CHROMIUM} is not installed"),
]


@pytest.fixture(scope="module")
def night(tmp_path_factory) -> Path:
    rows = by_hand()
    more(rows, 6)
    for score in rows.tables["trace_scores"]:  # a question is the same for all
        score["question_id"] = score["trace_id"][-1]
    nightly(rows, nights=14)
    return build(rows.reader(), tmp_path_factory.mktemp("site"), NIGHT, RECIPE, 100)


@pytest.fixture(scope="module")
def browser():
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=str(CHROMIUM), args=["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
        )
        yield browser
        browser.close()


@pytest.fixture
def shots(tmp_path) -> Path:
    folder = Path(os.environ.get("LEADLINE_SCREENSHOTS") or tmp_path)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def test_from_a_misuse_to_the_chunk_that_it_cites(browser, night, shots):
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto(night.as_uri())
    assert page.evaluate("getComputedStyle(document.body).marginTop") == "0px", "the style sheet is not applied"
    page.screenshot(path=shots / "night.png", full_page=True)
    link = page.locator(f"#misuses a.chunk-link[href*='{slug('kinds')}']").last
    fragment = link.get_attribute("href").partition("#")[2]
    link.click()
    page.wait_for_url("**/traces/*")
    chunk = page.locator(f"#{fragment}")
    expect(chunk).to_be_in_viewport(ratio=0.9)
    assert chunk.evaluate("e => e.matches(':target')")
    page.screenshot(path=shots / "trace.png", full_page=True)
    assert complaints == []


def explorer(browser, night, filters: str = "", **context):
    """The explorer's page, once it shows what it found; anything that a browser complains of fails the test."""
    page = browser.new_context(**context).new_page()
    page.on("console", lambda message: pytest.fail(message.text))
    page.on("pageerror", lambda error: pytest.fail(str(error)))
    page.on("dialog", lambda dialog: pytest.fail(f"a script of a trace ran: {dialog.message}"))
    page.goto(f"{night.with_name('explorer.html').as_uri()}#{filters}")
    if context.get("java_script_enabled", True):
        expect(page.locator("#found")).to_have_text(re.compile("trace"))
    return page


def test_the_address_keeps_the_filters(browser, night):
    page = explorer(browser, night)
    everything = page.locator("#found").inner_text()
    page.get_by_label("Has a claim").select_option("contradicted")
    page.get_by_label("Search").fill("KETTLE pays")
    expect(page.locator("#found")).to_have_text(re.compile(r"^1 of "))
    address = page.url
    assert address.endswith("#q=KETTLE+pays&label=contradicted")
    shared = explorer(browser, night, address.partition("#")[2])
    expect(shared.locator("#rows tr")).to_have_count(1)
    expect(shared.locator("#rows th a")).to_have_text("How long may I return a kettle, and who pays?")
    assert shared.get_by_label("Search").input_value() == "KETTLE pays"
    shared.get_by_role("button", name="Clear the filters").click()
    expect(shared.locator("#found")).to_have_text(everything)
    assert shared.url.endswith("#")
    page.locator("#rows th a").click()
    page.wait_for_url("**/traces/*")


def test_a_score_range_counts_what_it_leaves(browser, night):
    page = explorer(browser, night, "from=0&to=0&sort=high")
    shown = page.locator("#rows td[data-label=Groundedness]").all_inner_texts()
    assert shown
    assert set(shown) == {"0.0"}  # and what has no score is left out
    chosen = page.get_by_label("Diagnosis").locator("option").all_inner_texts()
    assert sum(int(re.search(r"\((\d+)\)", text)[1]) for text in chosen[1:]) == len(shown)


def test_one_row_for_each_question(browser, night):
    page = explorer(browser, night, "q=handbook&group=1")
    one = page.locator("#rows tr", has=page.get_by_text("to this question")).first
    before = page.locator("#rows tr").count()
    button = one.get_by_role("button", name=re.compile("to this question"))
    more = int(button.inner_text().split()[0])
    button.click()
    expect(page.locator("#rows tr")).to_have_count(before + more)
    button.click()
    expect(page.locator("#rows tr")).to_have_count(before)


def test_nothing_found_says_so(browser, night):
    page = explorer(browser, night, "generator=nobody")
    expect(page.locator("#found")).to_have_text("No trace matches. Clear the filters to see all.")
    assert not page.locator("#results").is_visible()


def test_an_answer_without_a_page_is_read_in_the_list(browser, night, tmp_path):
    few = build(by_hand().reader(), tmp_path, NIGHT, RECIPE, 1)
    page = explorer(browser, few, "q=bare")
    expect(page.locator("#rows th small")).to_contain_text("no page")
    page.get_by_role("button", name="Answer").click()
    answers = [t["answer"] for t in by_hand().tables["traces"] if t["trace_id"] == "bare"]
    assert page.locator(".answer-text").all_inner_texts() == answers


def test_a_file_that_is_missing_is_named(browser, tmp_path):
    few = build(by_hand().reader(), tmp_path, NIGHT, RECIPE, 1)
    few.with_name("explorer").joinpath("rows.js").unlink()
    page = browser.new_page()
    page.goto(few.with_name("explorer.html").as_uri())
    expect(page.locator("#found")).to_contain_text("explorer/rows.js can't be read")


def test_without_scripts_the_pages_are_listed(browser, night):
    page = explorer(browser, night, java_script_enabled=False)
    assert page.locator("noscript a").count() == len(list((night.parent / "traces").iterdir()))
    assert not page.locator("#filters").is_visible()


def test_from_a_claim_in_the_answer_to_its_row(browser, night):
    page = browser.new_page(viewport={"width": 1280, "height": 500})
    page.goto((night.parent / "traces" / f"{slug('kinds')}.html").as_uri())
    page.locator("#mark-4 a").click()
    expect(page.locator("#claim-4")).to_be_in_viewport(ratio=0.9)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_shows_everything_without_sideways_scrolling(browser, night, shots, scheme):
    context = browser.new_context(viewport={"width": 360, "height": 780}, color_scheme=scheme)
    page = context.new_page()
    for name, path in [
        ("index", night.parent.parent / "index.html"),
        ("night", night),
        ("explorer", night.with_name("explorer.html")),
        ("trace", night.parent / "traces" / f"{slug('kinds')}.html"),
    ]:
        page.goto(path.as_uri())
        page.screenshot(path=shots / f"{name}-phone-{scheme}.png", full_page=True)
        assert page.evaluate("document.documentElement.scrollWidth") <= 360, name
    context.close()


def luminance(rgb: list[float]) -> float:
    """WCAG 2 relative luminance of an sRGB color of 0..255."""
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in (v / 255 for v in rgb[:3])]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_words_stand_out_from_what_they_stand_on(browser, night, scheme):
    """WCAG 2 AA: a contrast of 4.5 for text."""
    context = browser.new_context(color_scheme=scheme)
    page = context.new_page()
    page.goto(night.as_uri())
    paint = """([fore, back]) => {
      const c = document.createElement('canvas').getContext('2d'), s = getComputedStyle(document.documentElement);
      return [fore, back].map(v => { c.fillStyle = s.getPropertyValue(v); c.fillRect(0, 0, 1, 1);
        return [...c.getImageData(0, 0, 1, 1).data]; }); }"""
    names = ["supported", "partially_supported", "unsupported", "contradicted", "misused", "none"]
    pairs = [(f"--w-{n}", f"--t-{n}") for n in names] + [("--ink", f"--t-{n}") for n in names]
    for fore, back in [
        *pairs,
        ("--soft", "--paper"),
        ("--link", "--paper"),
        ("--soft", "--target"),
        ("--ink", "--target"),
    ]:
        light, dark = sorted(map(luminance, page.evaluate(paint, [fore, back])), reverse=True)
        assert (light + 0.05) / (dark + 0.05) >= 4.5, f"{fore} on {back}"
    context.close()
