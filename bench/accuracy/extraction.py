"""Compare claims, kinds and citations of the extractor `sentences` with 440 answers that were cut by hand.

    python -m bench.accuracy.extraction [--answers tests/extractors/answers] [--from N] [--to N] [--misses STYLE]

N is the number of an answer within its style. The README of the answers shows when they were written.

A part counts as found if its span equals the one marked by hand, apart from markup and punctuation at its edges. Claims
are spans of kind `claim`. Kinds are spans of other kinds, compared with their kind. Citations are pairs of a claim and
a chunk, or of a claim and a dangling reference.
"""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console

from bench import common
from bench.accuracy.labeled import Floats, Ints, read_jsonl
from bench.common import ROOT
from tasks.core.types import Answer, Chunk, ClaimDraft
from tasks.extractors import load

ANSWERS = ROOT / "tests/extractors/answers"
# Markup and punctuation at the edge of a part. A sign that fills a table's cell is kept.
EDGE = r"(?:<[^<>]*>|[^\w✓✔✗✘❌✅☑]|_)+"
LEFT, RIGHT = re.compile(rf"^{EDGE}"), re.compile(rf"{EDGE}$")


class Part(NamedTuple):
    """One part of an answer: its span without markup at its edges, its kind and its citations."""

    start: int
    end: int
    kind: str
    cites: frozenset[str]


def part(answer: str, start: int, end: int, kind: str, cites: Iterable[str]) -> Part:
    text = answer[start:end]
    left, right = LEFT.search(text), RIGHT.search(text)
    start, end = start + (left.end() if left else 0), end - (len(right[0]) if right else 0)
    return Part(start, max(start, end), kind, frozenset(cites))


def marked(row: dict[str, Any]) -> list[Part]:
    """Parts of an answer as marked by hand."""
    at, found = 0, []
    for one in row["parts"]:
        at = row["answer"].index(one["text"], at)
        end = at + len(one["text"])
        found.append(part(row["answer"], at, end, one["kind"], [*one.get("cites", ()), *one.get("dangling", ())]))
        at = end
    return found


def cut(row: dict[str, Any], drafts: Sequence[ClaimDraft]) -> list[Part]:
    """Parts of an answer as cut by the extractor."""
    return [part(row["answer"], d.start, d.end, d.kind, [*d.cited_chunk_ids, *d.dangling]) for d in drafts]


def compared(ours: Sequence[Part], theirs: Sequence[Part]) -> Ints:
    """(3, 3) counts: claims, kinds and citations that are in both, in ours, and in theirs."""

    def claims(parts: Sequence[Part]) -> set[Any]:
        return {(p.start, p.end) for p in parts if p.kind == "claim"}

    def others(parts: Sequence[Part]) -> set[Any]:
        return {(p.start, p.end, p.kind) for p in parts if p.kind not in {"claim", "reasoning"}}

    def citations(parts: Sequence[Part]) -> set[Any]:
        return {(p.start, p.end, name) for p in parts if p.kind == "claim" for name in p.cites}

    counts = []
    for of in (claims, others, citations):
        a, b = of(ours), of(theirs)
        counts.append((len(a & b), len(a), len(b)))
    return np.array(counts)


def rates(counts: Ints) -> Floats:
    """(3, 2) precision and recall of claims, kinds and citations; 1 if there is nothing to find."""
    right, totals = counts[:, :1], counts[:, 1:]
    return np.where(totals > 0, right / np.maximum(totals, 1), 1.0)


def read(folder: Path) -> dict[str, list[dict[str, Any]]]:
    """Read the answers by style."""
    return {path.stem: read_jsonl(path) for path in sorted(folder.glob("*.jsonl"))}


def extract(rows: Sequence[dict[str, Any]]) -> list[list[Part]]:
    """Cut each answer with the extractor's default settings."""
    extractor = load({"kind": "sentences"}, "bench")
    answers = [Answer(r["question"], r["answer"], tuple(Chunk(text="", **c) for c in r["chunks"])) for r in rows]
    return [cut(row, found.claims) for row, found in zip(rows, extractor.extract_many(answers), strict=True)]


def misses(rows: Sequence[dict[str, Any]], found: Sequence[list[Part]], console: Console) -> None:
    """Print the differences from the parts cut by hand, answer by answer."""
    for row, ours in zip(rows, found, strict=True):
        theirs = marked(row)
        if set(ours) == set(theirs):
            continue
        console.print(f"\n[bold]{row['id']}[/] {json.dumps(row['answer'], ensure_ascii=False)}", highlight=False)
        for sign, parts, others in (("-", theirs, ours), ("+", ours, theirs)):
            for p in parts:
                if p not in others and p.kind != "reasoning":
                    line = f"{sign} {p.kind:9} {json.dumps(row['answer'][p.start : p.end], ensure_ascii=False)}"
                    console.print(f"{line} {sorted(p.cites)}", highlight=False, markup=False, soft_wrap=True)


def _cells(counts: Ints) -> Iterator[str]:
    return (f"{precision:.3f} / {recall:.3f}" for precision, recall in rates(counts))


def main() -> None:
    parser = common.parser(__doc__)
    parser.add_argument("--answers", type=Path, default=ANSWERS)
    parser.add_argument("--misses", nargs="*", metavar="STYLE", help="print what was cut otherwise in these styles")
    parser.add_argument("--from", dest="first", type=int, default=1, help="first answer of each style, from 1")
    parser.add_argument("--to", dest="last", type=int, default=None, help="last answer of each style")
    args = parser.parse_args()
    console = Console(width=120)
    title = "Precision / recall of what the extractor cuts, against cuts by hand"
    table = common.table(title, ("style", "answers", "claims", "kinds", "citations"))
    total, size = np.zeros((3, 3), dtype=np.int64), 0
    for style, rows in read(args.answers).items():
        rows = rows[args.first - 1 : args.last]  # noqa: PLW2901
        found = extract(rows)
        counts = sum(compared(ours, marked(row)) for row, ours in zip(rows, found, strict=True))
        table.add_row(style, str(len(rows)), *_cells(counts))
        total += counts
        size += len(rows)
        if args.misses is not None and (style in args.misses or not args.misses):
            misses(rows, found, console)
    table.add_section()
    table.add_row("all", str(size), *_cells(total))
    console.print(table)


if __name__ == "__main__":
    main()
