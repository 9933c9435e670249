"""A self-contained page on which people label claims offline (docs/reviews.md).

The page contains texts of traces as JSON and inserts them only as text nodes, so they can't become markup or script.
Left out: the selection of claims (`tasks/review/export.py`).
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
    """Render the page as HTML."""
    script = (pages.TEMPLATES / "labeling.js").read_text(encoding="utf-8")
    style = pages.style() + (pages.TEMPLATES / "labeling.css").read_text(encoding="utf-8")
    return pages.render(
        "labeling",
        tasks=Markup(_data(tasks)),  # noqa: S704 (escaped for a script element)
        script=Markup(script),  # noqa: S704 (our own file)
        style=Markup(style),  # noqa: S704 (our own files)
        digest=Markup(base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()),  # noqa: S704 (base64)
    )


def _data(tasks: Sequence[Task]) -> str:
    """The script's data as JSON that is safe inside a script element. Each answer is included only once."""
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
    # The key under which a browser saves labels is specific to these tasks and this reviewer.
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
