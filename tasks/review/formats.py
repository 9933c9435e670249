"""Write claims to label as files that people fill in: JSON lines, CSV, and tasks and config for Label Studio.

`files.py` reads each of them. Left out: the page (`tasks/publish/report/labeling.py`).
"""

import csv
import io
import json
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any
from xml.sax.saxutils import quoteattr

from tasks.core.labeling import OF_CLAIMS, Task
from tasks.review.files import GUARD, IDS, guard
from tasks.review.lines import CONTEXT

CELL = 32_767  # largest number of characters per cell in a spreadsheet
CUT = " … (truncated: a cell can hold no more)"
FILLED_IN = ("label", "misused", "comment", "reviewer", "reviewed_at")
SHOWN = ("claim", "question", "answer", "cited_chunks", "other_chunks", "date", "app", "generator", "span")


def json_lines(tasks: Iterable[Task]) -> str:
    """One JSON line per task, with its context."""
    return "".join(json.dumps({**t.line(), CONTEXT: t.context}, ensure_ascii=False) + "\n" for t in tasks)


def as_csv(tasks: Sequence[Task]) -> str:
    """One row per task: cells to fill in, cells to read, and the claim's ids.

    A byte order mark makes Excel read the file as UTF-8. Spreadsheets interpret no cell as a formula and no id as a
    number.
    """
    judged = ("judge",) if any("judge" in t.context for t in tasks) else ()
    graded = any(t.grade for t in tasks)
    shown = (*(("values",) if graded else ()), *SHOWN, *judged)
    filled_in = (*(("value",) if graded else ()), *FILLED_IN)
    named = (*IDS, *(("grade",) if graded else ()))
    out = io.StringIO(newline="")
    writer = csv.writer(out)
    writer.writerow([*filled_in, *(f"{CONTEXT}.{name}" for name in shown), *named, "sampling", "adjudicated"])
    for t in tasks:
        line, seen = t.line(), _seen(t)
        writer.writerow([
            *(guard(line.get(name) or "") for name in filled_in),
            *(_cell(seen[name]) for name in shown),
            *(_named(name, line.get(name)) for name in named),
            line["sampling"],
            "true" if t.adjudicated else "",
        ])  # fmt: skip
    return "\ufeff" + out.getvalue()


def label_studio(tasks: Iterable[Task]) -> str:
    """Tasks to import into a project of Label Studio with `labeling_config`."""
    return json.dumps([{"data": _data(t)} for t in tasks], ensure_ascii=False, indent=1) + "\n"


def labeling_config(*, show_judge: bool = False) -> str:
    """The labeling interface of a project of Label Studio: <https://labelstud.io/tags/>.

    Args:
        show_judge: Whether the tasks contain the judge's result.
    """
    judge = '  <Header value="Result of the judge"/>\n  <Text name="judge" value="$judge" valueType="text"/>\n'
    labels = "\n".join(
        f'    <Choice value={quoteattr(name.replace("_", " ") + ": " + meaning)} alias="{name}" hotkey="{key}"/>'
        for key, (name, meaning) in enumerate(OF_CLAIMS.items(), 1)
    )
    return f"""<View>
  <Header value="Question"/>
  <Text name="question" value="$question" valueType="text"/>
  <Header value="Claim: is it in the chunks?"/>
  <Text name="claim" value="$claim" valueType="text"/>
  <Choices name="label" toName="claim" choice="single-radio" required="true" requiredMessage="Choose a label.">
{labels}
  </Choices>
  <Header value="If it cites chunks: does any cited one support it, at least in part?"/>
  <Choices name="misused" toName="claim" choice="single-radio" showInline="true">
    <Choice value="yes, or it cites none" alias="not_misused" hotkey="y"/>
    <Choice value="no: misused" alias="misused" hotkey="n"/>
  </Choices>
  <TextArea name="comment" toName="claim" placeholder="Comment" rows="2" maxSubmissions="1"/>
  <Header value="Answer"/>
  <HyperText name="answer" value="$answer_html" valueType="text"/>
  <Header value="Chunks"/>
  <HyperText name="chunks" value="$chunks_html" valueType="text"/>
{judge if show_judge else ""}</View>
"""


def _seen(task: Task) -> dict[str, str]:
    """Format the context as texts."""
    texts = ("claim", "values", "question", "answer", "date", "app", "generator")
    seen = {name: str(task.context.get(name) or "") for name in texts}
    for name, cited in (("cited_chunks", True), ("other_chunks", False)):
        seen[name] = "\n\n".join(_chunk(c) for c in task.context["chunks"] if c["cited"] is cited)
    span = "characters {} to {}".format(*task.context["span"]) if task.grade is None else ""
    return {**seen, "span": span, "judge": _judged(task)}


def _named(name: str, value: str | None) -> str:
    """The cell of an id, which is always guarded, or of the name of a grade."""
    return "" if value is None else GUARD + value if name in IDS else value


def _judged(task: Task) -> str:
    """The judge's result as JSON; empty if it is not shown."""
    return json.dumps(task.context["judge"], ensure_ascii=False) if "judge" in task.context else ""


def _chunk(chunk: dict[str, Any]) -> str:
    head = " ".join(filter(None, (f"[{chunk['chunk_id']}]", chunk["title"])))
    return f"{head}\n{chunk['text']}"


def _cell(text: str) -> str:
    safe = guard(text.replace("\0", "\ufffd"))
    return safe if len(safe) <= CELL else safe[: CELL - len(CUT)] + CUT


def _data(task: Task) -> dict[str, Any]:
    context = task.context
    before, claim, after = map(escape, task.pieces)
    chunks = "".join(
        f'<div style="white-space: pre-wrap; margin: 1em 0; padding-left: .8em; border-left: 4px solid '
        f'{"#c24a08" if c["cited"] else "#ccc"}"><b>{escape(_head(c))}</b>\n{escape(c["text"])}</div>'
        for c in context["chunks"]
    )
    return {
        "trace_id": task.trace_id,
        "claim_id": task.claim_id,
        "sampling": task.sampling,
        "adjudicated": task.adjudicated,
        "claim": context["claim"],
        "question": context["question"],
        "answer_html": f'<div style="white-space: pre-wrap">{before}<mark>{claim}</mark>{after}</div>',
        "chunks_html": chunks,
        **{name: context[name] for name in ("date", "app", "generator")},
        **({"judge": _judged(task)} if "judge" in context else {}),
    }


def _head(chunk: dict[str, Any]) -> str:
    return " ".join(filter(None, ("Cited:" if chunk["cited"] else "", f"[{chunk['chunk_id']}]", chunk["title"])))
