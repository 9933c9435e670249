"""Plan what to write back: the items that a store should have for a day, and those that must be sent."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

import polars as pl

from tasks.core.config import WriteBack
from tasks.core.schemas import CLAIM_RESULTS, CLAIMS, CURRENT_RECIPES, RECIPES, SOURCES, TRACE_SCORES
from tasks.store.lake import Lake, Part
from tasks.store.query import Queries
from tasks.write_back import Item, Key

NAMED = 10  # claims or chunks to name in an explanation
DIGITS = 4  # decimals of a score; LangSmith accepts no more
TEXT_CHARS = 300  # characters of a claim in an explanation
WRITTEN, WITHDRAWN, LEFT_OUT, FAILED = "written", "withdrawn", "left_out", "failed"
CHUNK = "chunk"

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Due:
    """Items to send, and how they differ from what the store has.

    Attributes:
        new: Number of items that the store does not have yet.
        withdrawn: Number of items whose score must be removed.
        same: Number of items that the store already has, which are not sent.
    """

    items: tuple[Item, ...] = ()
    new: int = 0
    withdrawn: int = 0
    same: int = 0

    @property
    def changed(self) -> int:
        """Number of items that the store has with other content, or that failed before."""
        return len(self.items) - self.new - self.withdrawn


def due(items: Sequence[Item], there: Mapping[Key, Row]) -> Due:
    """Determine the items to send.

    Args:
        there: Rows of `write_backs` by key.
    """
    found: list[Item] = []
    new = withdrawn = same = 0
    for item in items:
        row = there.get(item.key)
        if row is None:
            if item.score is not None:
                found.append(item)
                new += 1
        elif _has(row, item):
            same += 1
        else:
            found.append(replace(item, store_id=row["store_id"]))
            withdrawn += item.score is None
    return Due(tuple(found), new, withdrawn, same)


def _has(row: Row, item: Item) -> bool:
    """Whether the store already has the item, or has no place for it."""
    if row["status"] == LEFT_OUT:
        return True
    if item.score is None:
        return bool(row["status"] == WITHDRAWN)
    return bool(row["status"] == WRITTEN and row["content"] == item.content)


def names_of(lake: Lake, place: str) -> set[str]:
    """Prefixes of the names of parts that were read from a place in a store, from the table `sources`."""
    read = ((part.name, part.read(["source"])["source"][0].as_py()) for part in lake.parts(SOURCES))
    return {name for name, window in read if str(window).rpartition(" ")[0] == place}


def planned(
    lake: Lake, queries: Queries, traces: Sequence[Part], settings: WriteBack, recipe: str, day: date, *, chunks: bool
) -> Iterator[list[Item]]:
    """Yield the items that a store should have for a day, part by part.

    Args:
        traces: The day's parts of `traces` that were read from the store.
        recipe: Name of the recipe whose scores are written.
        chunks: Whether the store accepts verdicts on chunks.
    """
    counted = lake.frame(CURRENT_RECIPES, str(day)).filter(pl.col("recipe_name") == recipe)
    for (version,), rows in counted.sort("recipe").group_by("recipe", maintain_order=True):
        stored = lake.find(RECIPES, str(version))
        known = stored.read().to_pylist()[0] if stored else {}
        triad = json.loads(known.get("definition", "{}")).get("triad", {})
        about = {"recipe": recipe, "recipe_version": str(version)}
        for part in traces:
            scores = lake.find(TRACE_SCORES, part.name, str(version), str(day))
            if scores is None:
                continue
            results = lake.find(CLAIM_RESULTS, part.name, str(version), str(day))
            claims = lake.find(CLAIMS, part.name, known.get("extractor_version", ""), str(day)) if known else None
            relations = {"traces": [part], "trace_scores": [scores], "claim_results": [results] if results else [],
                         "claims": [claims] if claims else []}  # fmt: skip
            params = {"apps": rows["app"].to_list(), "texts": settings.explanations == "text"}
            found = queries.run("write_back/traces", relations, params).to_pylist()
            yield [item for row in found for item in _items(row, settings, about, triad, chunks=chunks)]


def _items(row: Row, settings: WriteBack, about: Mapping[str, str], triad: Row, *, chunks: bool) -> Iterator[Item]:
    """The scores of one trace and the verdicts on its chunks."""
    metadata = {**about, "judge_version": row["judge_version"]}
    scores = _scores(row, triad)
    for name in settings.scores:
        if found := scores.get(name):
            score, label, explanation = found
            key = Key(row["trace_id"], settings.prefix + name)
            yield Item(key, score, label, explanation, row["timestamp"], row["environment"], metadata)
    if chunks and settings.chunks:
        for chunk_id, (score, label, explanation) in _chunks(row).items():
            key = Key(row["trace_id"], settings.prefix + CHUNK, chunk_id)
            yield Item(key, score, label, explanation, row["timestamp"], row["environment"], metadata)


def _scores(row: Row, triad: Row) -> dict[str, tuple[float | None, str, str]]:
    """Score, label and explanation of each number of the trace's method. If there is no score, they say why."""
    supported, judged = row["claims_supported"], row["claims_judged"]
    claims = f"{supported} of {judged} judged claims {'is' if supported == 1 else 'are'} supported."
    left = [
        f"{row[c]} {word}" for c, word in (("claims_unjudged", "unjudged"), ("claims_abstained", "abstained")) if row[c]
    ]
    more = [f" Left out: {', '.join(left)}."] if left else []
    lists = (("Partly supported", "partly"), ("Unsupported", "unsupported"), ("Contradicted", "contradicted"))
    named = [f" {head}: {_named(row[c])}." for head, c in (*lists, ("Misused citations", "misused")) if row[c]]
    grounded = (
        "grounded" if supported == judged and not row["misused"] else "partly_grounded" if supported else "ungrounded"
    )
    faithful = "faithful" if supported == judged else "partly_faithful" if supported else "unfaithful"
    used, retrieved = row["chunks_used"], row["chunks_retrieved"]
    unused = row["chunks_unused"] or []
    utilized = "all_used" if used == retrieved else "some_used" if used else "none_used"
    by_claims = row["groundedness_status"]
    found = {
        "groundedness": _scored(by_claims, row["groundedness_score"], grounded, claims + "".join(named + more)),
        "faithfulness": _scored(by_claims, row["faithfulness"], faithful, claims + "".join(more)),
        "utilization": _scored(
            by_claims,
            row["utilization"],
            utilized,
            f"{used} of {retrieved} chunks decide a supported claim."
            + (f" Unused: {_listed(unused)}." if unused else ""),
        ),
        "context_relevance": _scored(
            row["context_relevance_status"],
            row["context_relevance"],
            _relevant(row["context_relevance"], triad.get("context_relevance")),
            f"Relevance of the best chunk to the question. Relevant: {row['chunks_relevant']} of {retrieved} chunks.",
        ),
        "answer_relevance": _scored(
            row["answer_relevance_status"],
            row["answer_relevance"],
            _relevant(row["answer_relevance"], triad.get("answer_relevance")),
            "Relevance of the answer to the question.",
        ),
    }
    if (status := row["citation_status"]) is not None:
        true, segments = row["segments_true"], row["segments_judged"]
        label = "all_true" if true == segments else "some_true" if true else "none_true"
        text = f"{true} of {segments} judged segments are true." + "".join(named[:3] + more)
        found["citation_groundedness"] = _scored(status, row["citation_groundedness"], label, text)
    return found


def _scored(status: str, score: float | None, label: str, text: str) -> tuple[float | None, str, str]:
    """Return score, label and explanation. Without a score, the status is the label."""
    if status == "scored" and score is not None:
        return round(score, DIGITS), label, text
    label = "n/a" if status in ("na", "scored") else status
    return None, label, f"There is no score: {label}."


def _relevant(score: float | None, least: float | None) -> str:
    return "relevant" if least is None or (score is not None and score >= least) else "irrelevant"


def _chunks(row: Row) -> dict[str, tuple[float | None, str, str]]:
    """The verdict on each chunk: 1 if it decides a supported claim, else 0."""
    unused = row["chunks_unused"]
    if row["groundedness_status"] != "scored" or unused is None:
        return dict.fromkeys(row["chunk_ids"], _scored(row["groundedness_status"], None, "", ""))
    found: dict[str, tuple[float | None, str, str]] = {}
    for chunk_id in row["chunk_ids"]:
        decided = [claim for claim in row["decided"] if chunk_id in claim["chunk_ids"]]
        by = {label: [c["claim_id"] for c in decided if c["label"] == label] for label in ("supported", "contradicted")}
        text = " ".join(
            f"{verb} {len(by[label])} {'claim' if len(by[label]) == 1 else 'claims'}: {_listed(by[label])}."
            for verb, label in (("Supports", "supported"), ("Contradicts", "contradicted"))
            if by[label]
        )
        if chunk_id not in unused:
            found[chunk_id] = 1.0, "used", text or "Decides a supported claim."
        elif by["contradicted"]:
            found[chunk_id] = 0.0, "contradicts", text
        else:
            found[chunk_id] = 0.0, "unused", "Decides no supported claim."
    return found


def _named(claims: Sequence[Row]) -> str:
    """List claims by id, with their texts if available."""
    words = [f'{c["claim_id"]} "{_short(c["text"])}"' if c["text"] else c["claim_id"] for c in claims]
    return _listed(words)


def _listed(words: Sequence[str]) -> str:
    more = f" and {len(words) - NAMED} more" if len(words) > NAMED else ""
    return ", ".join(words[:NAMED]) + more


def _short(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= TEXT_CHARS else flat[:TEXT_CHARS] + "…"
