"""The page on which people label claims, in a real browser and from disk: keys, marks, what it keeps and what it gives."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect, sync_playwright

from tasks.core.labeling import Task
from tasks.publish.report.labeling import page as labeling_page
from tasks.review.files import entries
from tasks.review.lines import Line

CHROMIUM = Path("/usr/bin/chromium")
browsing = [
    pytest.mark.browser,
    pytest.mark.skipif(not CHROMIUM.exists(), reason=f"{CHROMIUM} is not installed"),
]
BAD = '</script><script>document.title = "taken"</script><img src=x onerror="document.title = 1">'
ANSWER = f"🙂 Tea is hot [a].\r\nAnd {BAD}"  # the claim's span counts characters, of which 🙂 is one


def task(claim_id: str, *, cites: bool = True, **changes: Any) -> Task:
    chunks = [
        {"chunk_id": "b", "title": None, "text": "Another.", "cited": False},
        {"chunk_id": "a", "title": "On tea", "text": f"Tea boils. {BAD}", "cited": cites},
    ]
    context = {
        "date": "2026-11-01", "app": "shop", "generator": "g", "claim": "Tea is hot", "span": [2, 12], "question": "Is it?",
        "answer": ANSWER, "chunks": chunks,
    }  # fmt: skip
    return Task("t1", claim_id, "random", adjudicated=changes.pop("adjudicated", False), reviewer=None, context={**context, **changes})  # fmt: skip


TASKS = [task("c1"), task("c2", cites=False), task("c3"), task("c4", adjudicated=True)]


def test_no_text_of_a_trace_can_end_the_script() -> None:
    html = labeling_page(TASKS)
    assert BAD not in html
    (data,) = re.findall(r'<script type="application/json" id="tasks">(.*?)</script>', html, re.DOTALL)
    assert json.loads(data)["tasks"][0]["claim"] == "Tea is hot"
    assert next(iter(json.loads(data)["answers"].values()))["answer"] == ANSWER
    assert not re.search(r"https?://", html.replace(data, ""))  # nothing is fetched from anywhere


def test_what_the_judge_says_is_not_in_it_unless_asked_for() -> None:
    assert '"judge":null' in labeling_page(TASKS)
    assert "p_supported" in labeling_page([task("c", judge={"label": "supported", "p_supported": 0.5})])


@pytest.fixture(scope="module")
def browser():
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(
            executable_path=str(CHROMIUM), args=["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
        )
        yield found
        found.close()


@pytest.fixture
def sheet(tmp_path: Path) -> Path:
    path = tmp_path / "labels.html"
    path.write_text(labeling_page(TASKS), encoding="utf-8", newline="")
    return path


class TestInABrowser:
    """What a person does."""

    pytestmark = browsing

    def opened(self, context, sheet: Path, complaints: list[str]) -> Page:
        page = context.new_page()
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(sheet.as_uri())
        return page

    def test_from_keys_to_the_lines_that_the_import_reads(self, browser, sheet: Path, tmp_path: Path) -> None:
        complaints: list[str] = []
        context = browser.new_context(accept_downloads=True)
        page = self.opened(context, sheet, complaints)
        expect(page.locator("#progress")).to_have_text("Claim 1 of 4; 0 labeled, 4 open.")
        expect(page.locator("#answer mark")).to_have_text("Tea is hot")
        assert page.locator("#answer").evaluate("e => e.textContent") == ANSWER
        expect(page.locator("#chunks .passage").first).to_contain_text("Cited: [a] On tea")
        page.keyboard.press("1")  # supported; it cites, so that misuse has to be said
        expect(page.locator("#misuse")).to_be_visible()
        page.keyboard.press("y")
        expect(page.locator("#progress")).to_have_text("Claim 2 of 4; 1 labeled, 3 open.")
        page.get_by_role("button", name="contradicted").click()  # it cites nothing, and that is all
        expect(page.locator("#progress")).to_contain_text("Claim 3 of 4; 2 labeled")
        page.keyboard.press("3")  # unsupported: so no cited chunk supports it either
        expect(page.locator("#about")).to_contain_text("your label decides")
        expect(page.locator("#labels [data-label=not_a_claim]")).to_contain_text(
            "states nothing that a source could support"
        )
        page.locator("#comment").fill('a "greeting" 5')  # nor are digits in a comment
        expect(page.locator("#progress")).to_contain_text("Claim 4 of 4; 3 labeled")
        page.locator("#comment").blur()
        page.keyboard.press("6")
        expect(page.locator("#misuse")).to_be_hidden()
        expect(page.locator("#progress")).to_contain_text("4 labeled")
        page.keyboard.press("ArrowLeft")
        expect(page.locator("#comment")).to_have_value("")
        expect(page.locator("#labels [data-label=unsupported]")).to_have_attribute("aria-pressed", "true")
        page.locator("#download").click()
        expect(page.locator("#notice")).to_contain_text("Give your name first")
        page.locator("#reviewer").fill("ann 1")  # digits in a name are no labels
        with page.expect_download() as download:
            page.locator("#download").click()
        path = tmp_path / "down.jsonl"
        download.value.save_as(path)
        assert download.value.suggested_filename == "labels-ann-1.jsonl"
        found = [e.content for e in entries(path.read_bytes(), path)]
        assert all(isinstance(x, Line) for x in found)
        lines = [(x.trace_id, x.claim_id, x.label, x.misused, x.reviewer, x.sampling, x.adjudicated, x.comment) for x in found if isinstance(x, Line)]  # fmt: skip
        assert lines == [
            ("t1", "c1", "supported", False, "ann 1", "random", None, None),
            ("t1", "c2", "contradicted", False, "ann 1", "random", None, None),
            ("t1", "c3", "unsupported", True, "ann 1", "random", None, None),
            ("t1", "c4", "not_a_claim", None, "ann 1", "random", True, 'a "greeting" 5'),
        ]
        assert all(isinstance(x, Line) and x.reviewed_at for x in found)
        assert page.title() == "Claims to label"
        assert complaints == []
        context.close()

    def test_labels_are_kept_until_they_are_forgotten(self, browser, sheet: Path) -> None:
        complaints: list[str] = []
        context = browser.new_context()
        page = self.opened(context, sheet, complaints)
        page.keyboard.down("3")
        page.keyboard.down("3")  # held down: it labels one claim, and not those that follow
        page.keyboard.up("3")
        expect(page.locator("#progress")).to_have_text("Claim 2 of 4; 1 labeled, 3 open.")
        page.reload()
        expect(page.locator("#progress")).to_have_text("Claim 2 of 4; 1 labeled, 3 open.")
        page.on("dialog", lambda dialog: dialog.accept())
        page.locator("#reset").click()
        expect(page.locator("#progress")).to_contain_text("0 labeled, 4 open.")
        page.reload()
        expect(page.locator("#progress")).to_contain_text("0 labeled, 4 open.")
        assert complaints == []
        context.close()

    def test_a_phone_shows_everything_without_sideways_scrolling(self, browser, sheet: Path) -> None:
        context = browser.new_context(viewport={"width": 360, "height": 780})
        page = self.opened(context, sheet, [])
        assert page.evaluate("document.documentElement.scrollWidth") <= 360
        context.close()

    def test_nothing_to_label(self, browser, tmp_path: Path) -> None:
        path = tmp_path / "none.html"
        path.write_text(labeling_page([]), encoding="utf-8")
        context = browser.new_context()
        page = self.opened(context, path, [])
        expect(page.locator("#progress")).to_have_text("There is nothing to label.")
        context.close()
