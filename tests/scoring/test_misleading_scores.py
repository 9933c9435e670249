"""Answers whose scores once misled, through the real stages: the label decides, citations are read together, and so on.

A judge that knows the words it looks for stands in for a model; what should come out follows from
docs/methods.md#trace to 7.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from kit.stage_kit import Watched, context, log, put, rows, trace

from tasks.claims.extract import extract_claims
from tasks.core.schemas import CLAIM_RESULTS, NIGHTLY_GROUNDEDNESS, NIGHTLY_SLICES, QUARANTINE, TRACE_SCORES
from tasks.core.types import Request, Verdict
from tasks.ingest.ingest import ingest
from tasks.judging.pairs import plan_pairs
from tasks.judging.relevance import score_relevance
from tasks.judging.verdicts import judge_joint_pairs, judge_pairs
from tasks.run.context import Context
from tasks.scoring.nightly import aggregate_nights
from tasks.scoring.score import score_traces


class Knows(Watched):
    """Supports what it is asked where the premise has all words of one of these lists."""

    def __init__(self, *enough: Sequence[str], **more: Any) -> None:
        def rule(request: Request) -> str:
            return "supported" if any(all(w in request.premise for w in words) for words in enough) else "unsupported"

        super().__init__(rule, **more)


def scored(ctx: Context, *traces: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The first claim's result and the first trace's scores."""
    if traces:
        put(ctx, *traces)
    extract_claims(ctx)
    plan_pairs(ctx)
    for member in ctx.judges:
        judge_pairs(ctx, stage=member.stage)
        judge_joint_pairs(ctx, stage=member.stage)
    score_relevance(ctx)
    score_traces(ctx)
    aggregate_nights(ctx)
    return next(iter(rows(ctx, CLAIM_RESULTS)), {}), rows(ctx, TRACE_SCORES)[0]


BACKUP = "The backup runs at night and the archive is kept for ninety days in Oslo [1][2]."
NIGHT, OSLO = "Our backup runs every night at two o'clock.", "Retention in Oslo is ninety days."


def test_an_unsupported_claim_stops_the_answer_however_probable_its_support_is(tmp_path: Path) -> None:
    """This judge supports from 0.73 on. Half of the price for 40 users is not what the third claim says."""
    answer = (
        "Schools pay half of the Business price [ID: 58]. Business costs €4 per user and month, billed yearly [ID: 58]. "
        "For 40 users that is €80 a month, or €960 a year [ID: 58]."
    )

    def lenient(request: Request) -> Verdict:
        sure = "€80" not in request.hypothesis
        return Verdict("", "supported" if sure else "unsupported", p_supported=0.9 if sure else 0.6, p_contradicted=0.0)

    chunks = {"58": "Business costs €4 per user and month, billed yearly. Schools pay half of the Business price."}
    _, scores = scored(context(tmp_path, judge=Watched(lenient)), trace("hd-1101-005", answer, chunks))
    assert (scores["claims_unsupported"], scores["weakest_support"], scores["waterfall"]) == (1, None, "faithfulness")


@pytest.mark.parametrize("third", [{}, {"3": "The backup runs at night; Oslo keeps the archive for ninety days."}])
def test_what_is_cited_together_supports_a_claim_beside_an_uncited_chunk_that_restates_it(
    tmp_path: Path, third: dict[str, str]
) -> None:
    judge = Knows(["every night", "Retention in Oslo"], ["Oslo keeps the archive"])
    claim, scores = scored(context(tmp_path, judge=judge), trace("t", BACKUP, {"1": NIGHT, "2": OSLO, **third}))
    assert (claim["label"], claim["misused"], claim["patterns"]) == ("supported", False, [])
    assert claim["citation_recall"] == 1.0
    assert scores["groundedness_score"] == 100.0


def test_both_ends_of_a_long_chunk_are_read_together(tmp_path: Path) -> None:
    filler = " ".join(f"Paragraph {i} is about something else entirely." for i in range(60))  # three windows and more
    judge = Knows(["every night", "Retention in Oslo"])
    claim, _ = scored(context(tmp_path, judge=judge), trace("t", BACKUP, {"1": f"{NIGHT} {filler} {OSLO}"}))
    assert (claim["label"], claim["misused"]) == ("supported", False)


def test_three_chunks_are_read_together(tmp_path: Path) -> None:
    judge = Knows(["every night", "Retention in Oslo", "archive"])
    chunks = {"1": NIGHT, "2": OSLO, "3": "It is the archive that is kept."}
    claim, _ = scored(context(tmp_path, judge=judge), trace("t", BACKUP, chunks))
    # The two chunks that it cites are not enough.
    assert (claim["label"], claim["misused"], claim["citation_recall"]) == ("supported", True, 0.0)


def test_a_wrong_citation_beside_a_right_one_costs_precision(tmp_path: Path) -> None:
    """Gao et al. 2023: the second is neither needed nor enough alone."""
    judge = Knows(["every night"])
    claim, scores = scored(
        context(tmp_path, judge=judge), trace("t", "The backup runs at night [1][2].", {"1": NIGHT, "2": OSLO})
    )
    assert (claim["misused"], claim["citation_recall"]) == (False, 1.0)
    assert (claim["citations_counted"], claim["citations_precise"]) == (2, 1)
    assert (scores["citation_recall"], scores["citation_precision"]) == (1.0, 0.5)


def test_two_citations_that_are_needed_together_are_both_precise(tmp_path: Path) -> None:
    judge = Knows(["every night", "Retention in Oslo"])
    _, scores = scored(context(tmp_path, judge=judge), trace("t", BACKUP, {"1": NIGHT, "2": OSLO}))
    assert (scores["citation_recall"], scores["citation_precision"]) == (1.0, 1.0)


@pytest.mark.parametrize(("weighs", "score"), [(False, 100.0), (True, 0.0)])
def test_a_claim_whose_only_citation_dangles_has_no_recall_and_is_misused_by_setting(
    tmp_path: Path, weighs: bool, score: float
) -> None:
    ctx = context(tmp_path, judge=Knows(["every night"]), recipe={"scoring": {"dangling_as_misuse": weighs}})
    claim, scores = scored(ctx, trace("t", "The backup runs at night [9].", {"1": NIGHT}))
    assert (claim["label"], claim["citation_recall"], claim["misused"]) == ("supported", 0.0, weighs)
    assert (scores["citations_dangling"], scores["citation_precision"]) == (1, 0.0)
    assert scores["groundedness_score"] == score  # 100 · (1 − 2) / 1, cut at 0


def test_an_empty_answer_is_no_answer_and_stops_no_night(tmp_path: Path) -> None:
    """As an outage logs it: every answer of the night."""
    log(tmp_path, "a.jsonl", [trace(f"t{i}", answer) for i, answer in enumerate(["", " \n", "\u3000"])])
    ctx = context(tmp_path)
    ingest(ctx)
    _, scores = scored(ctx)
    assert rows(ctx, QUARANTINE) == []
    assert (scores["groundedness_status"], scores["groundedness_na"]) == ("na", "no_answer")
    (night,) = rows(ctx, NIGHTLY_GROUNDEDNESS)
    assert (night["n"], night["n_na"], night["n_no_answer"], night["groundedness_mean"]) == (3, 3, 3, None)


JAPANESE = trace("ja", "いいえ、使えません。", {"1": "オフィスは九時に開きます。"}, question="共有リンクは使えますか?")


def test_a_claim_that_the_judge_does_not_read_is_abstained_from_and_never_asked(tmp_path: Path) -> None:
    judge = Watched(languages=("en",))
    ctx = context(tmp_path, judge=judge)
    claim, scores = scored(ctx, JAPANESE)
    assert (claim["status"], claim["label"], claim["language"]) == ("abstained", None, "ja")
    assert claim["abstained_for"] == "language"
    assert judge.asked == []
    assert (scores["groundedness_status"], scores["claims_unread"]) == ("abstained", 1)
    (language,) = [row for row in rows(ctx, NIGHTLY_SLICES) if row["slice"] == "language"]
    assert (language["value"], language["claims"], language["claims_unread"], language["share"]) == ("ja", 1, 1, 1.0)


def test_a_cascade_sends_it_to_a_judge_that_reads_it(tmp_path: Path) -> None:
    reads = Watched(version="fedcba9876543210")
    cascade = [{"band": [0.3, 0.7], "judge": "judge2.yaml", "pairing": {"kind": "per_chunk"}}]
    ctx = context(tmp_path, judge=Watched(languages=("en",)), later=[reads], recipe={"cascade": cascade})
    claim, scores = scored(ctx, JAPANESE)
    assert [r.premise for r in reads.asked] == [JAPANESE["chunks"][0]["text"]]
    assert (claim["status"], claim["label"], claim["stage"], claim["abstained_for"]) == ("judged", "supported", 2, None)
    assert (scores["claims_unread"], scores["groundedness_score"]) == (0, 100.0)
