"""A page on which people label claims: one file that needs no other and no network (docs/reviews.md).

Texts of traces travel as JSON inside the page and become text nodes: none of them can become markup or script. Left
out: which claims people label (`tasks/review/export.py`).
"""

import base64
import hashlib
import json
from collections.abc import Sequence

from markupsafe import Markup

from tasks.core import keys
from tasks.core.labeling import OF_CLAIMS, UNDECIDED, Task
from tasks.publish.report import pages


def page(tasks: Sequence[Task]) -> str:
    """The HTML."""
    script = (pages.TEMPLATES / "labeling.js").read_text(encoding="utf-8")
    style = pages.style() + (pages.TEMPLATES / "labeling.css").read_text(encoding="utf-8")
    return pages.render(
        "labeling",
        tasks=Markup(_data(tasks)),  # noqa: S704 (escaped for where it stands)
        script=Markup(script),  # noqa: S704 (our own file)
        style=Markup(style),  # noqa: S704 (our own files)
        digest=Markup(base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()),  # noqa: S704 (base64)
    )


def _data(tasks: Sequence[Task]) -> str:
    """What the script shows, as JSON that can stand in a script element; each answer once."""
    answers: dict[str, dict[str, object]] = {}
    shown = []
    for task in tasks:
        context = task.context
        name = json.dumps([context["date"], task.trace_id])
        chunks = [{k: c[k] for k in ("chunk_id", "title", "text")} for c in context["chunks"]]
        answers[name] = {"question": context["question"], "answer": context["answer"], "chunks": chunks}
        shown.append({
            "trace_id": task.trace_id,
            "claim_id": task.claim_id,
            "sampling": task.sampling,
            "adjudicated": task.adjudicated,
            "answer": name,
            "claim": context["claim"],
            "span": context["span"],
            "cited": [c["chunk_id"] for c in context["chunks"] if c["cited"]],
            "judge": context.get("judge"),
        })  # fmt: skip
    reviewer = next((t.reviewer for t in tasks if t.reviewer), None)
    # What a browser keeps is of these very tasks, and of this reviewer.
    key = "leadline-labels-" + keys.version([reviewer, [[t["claim_id"], t["adjudicated"]] for t in shown]])
    data = {
        "key": key,
        "reviewer": reviewer,
        "labels": OF_CLAIMS,
        "undecided": UNDECIDED,
        "tasks": shown,
        "answers": answers,
    }
    return pages.script_data(data)
