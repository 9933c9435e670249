"""Nights of made-up rows: one that has every kind of result once, and a plausible crowd beside it."""

import random
from datetime import UTC, datetime, timedelta

from kit.report_rows import EXTRACTOR, JUDGE, NIGHT, RECIPE, SCORER, Rows, chunk, pair, trace

HOSTILE = "h/../<b>'\"&?# \u202eid"
RETURNS = chunk("ret-1", "Unused goods may be returned within 30 days of delivery. The customer pays for the return parcel unless the goods are faulty.", "Returns")  # fmt: skip
WARRANTY = chunk("war-2", "Before the table of exclusions: see the annex. Kettles carry a warranty of two years from the day of purchase. Descaling is not covered.", "Warranty", 2)  # fmt: skip
SHIPPING = chunk("ship-3", "Parcels within the country arrive in two to four working days. Islands take up to nine.", "Shipping", 3)  # fmt: skip
DRIFT_WINDOW = (WARRANTY["text"].index("Kettles"), WARRANTY["text"].index(" Descaling"))


def by_hand() -> Rows:
    """Traces `kinds`, `bare`, `silent`, `lost` and a hostile one, each with something that the others lack."""
    rows = Rows()
    rows.add("judges", judge_version=JUDGE, name="nli-minilm", kind="nli", definition="{}")
    rows.add(
        "recipes", recipe=RECIPE, name="claims", judge_version=JUDGE, extractor_version=EXTRACTOR,
        scorer_versions=[SCORER],
        definition='{"triad": {"context_relevance": 0.35, "groundedness": 50.0, "answer_relevance": 0.45}}',
    )  # fmt: skip
    trace(
        rows,
        "kinds",
        question="How long may I return a kettle, and who pays?",
        answer=(
            "You have **30 days** to return it [1].\n\n- The warranty is two years from purchase [1].\n"
            "- Parcels arrive within a day [3], and staff are friendly.\n- Islands take nine days, free of charge [3].\n\n"
            "Refunds are quick [9]. They may be slow."
        ),
        chunks=[RETURNS, WARRANTY, SHIPPING],
        unused=["war-2"],
        claims=[
            {"text": "You have **30 days** to return it", "label": "supported", "misused": False, "cites": ["ret-1"], "deciding": ["ret-1"], "pairs": [pair("ret-1", "supported", 0.97), pair("war-2", "unsupported", 0.04), pair("ship-3", "unsupported", 0.01)]},
            {"text": "The warranty is two years from purchase", "label": "supported", "misused": True, "cites": ["ret-1"], "deciding": ["war-2"], "patterns": ["citation_drift"], "confidence": 0.93, "pairs": [pair("ret-1", "unsupported", 0.05), pair("war-2", "unsupported", 0.02, window=(0, DRIFT_WINDOW[0])), pair("war-2", "supported", 0.95, window=DRIFT_WINDOW)]},
            {"text": "Parcels arrive within a day", "label": "contradicted", "misused": True, "cites": ["ship-3"], "deciding": ["ship-3"], "confidence": 0.88, "pairs": [pair("ship-3", "contradicted", 0.02, against=0.94, explanation="The source says two to four working days.")]},
            {"text": "staff are friendly", "label": "unsupported", "deciding": ["ret-1"], "pairs": [pair("ret-1", "unsupported", 0.08)]},
            {"text": "Islands take nine days, free of charge", "label": "partially_supported", "misused": False, "cites": ["ship-3"], "deciding": ["ship-3"], "pairs": [pair("ship-3", "partially_supported", 0.55)]},
            {"text": "Refunds are quick", "status": "unjudged", "dangling": ["[9]"], "patterns": ["dangling_citation"], "pairs": [pair("ret-1", None, None, failure="unparsable"), pair("war-2", None, None)]},
            {"text": "They may be slow", "status": "abstained", "unread": True, "language": "de", "context": "Refunds:", "pairs": [pair("ret-1", "abstained", None)]},
        ],
    )  # fmt: skip
    trace(
        rows, "bare", question="What is a kettle?", answer="A kettle boils water.", chunks=[], context=None,
        diagnosis=None, claims=[{"text": "A kettle boils water.", "status": "na"}],
    )  # fmt: skip
    trace(
        rows, "silent", question="May I?", answer="Sorry, I don't know.", chunks=[RETURNS],
        claims=[{"text": "Sorry, I don't know.", "kind": "refusal"}],
        diagnosis=None, relevance=None,
    )  # fmt: skip
    trace(
        rows, "lost", question="When?", answer="Soon.", chunks=[SHIPPING], diagnosis=None, generator="atlas-70b",
        claims=[{"text": "Soon.", "status": "unjudged", "pairs": [pair("ship-3", None, None, failure="truncated")]}],
    )  # fmt: skip
    hostile = "<script>alert(1)</script> </mark></div>\r\n& \"quoted\" 'text'\n\n  \u202eevil \u05e9\u05dc\u05d5\u05dd \u4f60\u597d\u3002 {{ 7 * 7 }} \U0001f600 end\0"
    trace(
        rows,
        HOSTILE,
        question="</title><script>alert('q')</script> \u05de\u05d4 \u05d6\u05d4?",
        app="<i>app</i>",
        generator="gen</script><script>alert(2)</script>",
        answer=hostile,
        chunks=[chunk("<c id='1'>", "<img src=http://evil.example/x.png onerror=alert(3)> " + hostile, "<title>")],
        claims=[
            {"text": "<script>alert(1)</script>", "label": "unsupported", "misused": True, "cites": ["<c id='1'>"], "dangling": ["<b>9</b>"], "deciding": ["<c id='1'>"], "patterns": ["dangling_citation"], "pairs": [pair("<c id='1'>", "unsupported", 0.1, explanation="<svg onload=alert(4)>")]},
            {"text": "</mark></div>\r\n& \"quoted\" 'text'", "label": "supported", "cites": [], "deciding": ["<c id='1'>"], "pairs": [pair("<c id='1'>", "supported", 0.9)]},
            {"text": "\u4f60\u597d\u3002 {{ 7 * 7 }} \U0001f600 end\0", "label": "contradicted", "deciding": ["<c id='1'>"], "pairs": [pair("<c id='1'>", "contradicted", 0.1)]},
        ],
    )  # fmt: skip
    for reason, stage, n in [("missing_field", "parse", 2), ("duplicate", "duplicate", 1)]:
        for line in range(n):
            rows.add(
                "quarantine",
                source="a.jsonl",
                line=line,
                date=NIGHT,
                stage=stage,
                reason=reason,
                detail="why",
                raw="secret",
            )
    rows.add("quarantine", source="a.jsonl", date=NIGHT - timedelta(1), stage="gate", reason="too_old", raw="secret")
    rows.add(
        "runs", run_id="r1", flow="nightly", status="completed", from_date=NIGHT, to_date=NIGHT, recipe=RECIPE,
        judge_version=JUDGE, started_at=datetime(2026, 11, 20, 2, 0, tzinfo=UTC),
        ended_at=datetime(2026, 11, 20, 2, 3, 20, tzinfo=UTC), traces_ingested=5, rows_quarantined=3,
        verdicts_computed=1234, tokens_in=98765, tokens_out=0,
        stages=[{"stage": "ingest", "seconds": 1.5, "computed": 5, "reused": 0},
                {"stage": "verdicts", "seconds": 180.0, "computed": 1234, "reused": 77}],
    )  # fmt: skip
    return rows


TOPICS = [
    ("Can I change the delivery address after ordering?", "Orders can be changed until they are packed, usually within two hours. After that the carrier's redirect service applies, which costs 3.50 euros.", "Orders"),
    ("Does the grinder fit the older housing?", "The burr set G4 fits housings made since 2019. Older housings need adapter ring A-12, which is sold separately and takes ten minutes to mount.", "Spare parts"),
    ("How do I descale the boiler safely?", "Use citric acid at 40 grams per litre and never vinegar, which attacks the seals. Rinse three times. Leave the lid open until the boiler is dry.", "Care"),
    ("Which voltage does the travel kettle take?", "The travel kettle switches between 110 and 230 volts by itself. The cord is 60 centimetres long. It is not meant for use on ships.", "Data sheet"),
    ("When is the repair café open?", "The repair café opens on the first Saturday of each month from 10 to 14 o'clock. Bring the proof of purchase; registration is not needed.", "Events"),
]  # fmt: skip


def more(rows: Rows, each: int) -> None:
    """A crowd of plausible traces of two apps and three generators."""
    rng = random.Random(3)
    for app, generators in {
        "support": ["meridian-8b", "atlas-70b", "corvid-mini"],
        "handbook": ["meridian-8b", "atlas-70b"],
    }.items():
        for g, generator in enumerate(generators):
            for i in range(each):
                question, text, title = TOPICS[i % len(TOPICS)]
                sentences = [s.strip() + "." for s in text.split(".") if s.strip() and len(s) > 9]
                good, other = (
                    chunk(f"{title.lower()[:3]}-{i}", text, title),
                    chunk(f"oth-{i}", TOPICS[(i + 1) % 5][1], TOPICS[(i + 1) % 5][2], 2),
                )
                claims = []
                for s in sentences:
                    roll = rng.random() + 0.12 * (1 - g)
                    cites = other if 0.72 < roll < 0.8 else good
                    if roll < 0.8:
                        drift = cites is other
                        claims.append(
                            {
                                "text": s,
                                "label": "supported",
                                "misused": drift,
                                "cites": [cites["chunk_id"]],
                                "deciding": [good["chunk_id"]],
                                "patterns": ["citation_drift"] if drift else [],
                                "confidence": rng.uniform(0.7, 0.99),
                                "pairs": [
                                    pair(
                                        good["chunk_id"],
                                        "supported",
                                        0.95,
                                        window=(text.index(s), text.index(s) + len(s)),
                                    ),
                                    pair(other["chunk_id"], "unsupported", 0.04),
                                ],
                            }
                        )
                    else:
                        label = rng.choice(["unsupported", "partially_supported", "contradicted"])
                        claims.append(
                            {
                                "text": s,
                                "label": label,
                                "misused": label != "partially_supported",
                                "cites": [good["chunk_id"]],
                                "deciding": [good["chunk_id"]],
                                "confidence": rng.uniform(0.6, 0.95),
                                "pairs": [
                                    pair(good["chunk_id"], label, 0.2),
                                    pair(other["chunk_id"], "unsupported", 0.03),
                                ],
                            }
                        )
                trace(
                    rows,
                    f"{app}-{generator}-{i:04d}",
                    question=question,
                    answer=" ".join(f"{c['text']} [{1 if c['cites'] == [good['chunk_id']] else 2}]" for c in claims),
                    chunks=[good, other],
                    claims=claims,
                    app=app,
                    generator=generator,
                    diagnosis=rng.choice(["healthy"] * 6 + ["retrieval", "generator", "generator", "prompt"]),
                    context=rng.uniform(0.4, 0.95),
                    relevance=rng.uniform(0.5, 0.95),
                    unused=[other["chunk_id"]],
                )
                score = rows.tables["trace_scores"][-1]
                stops = {"generator": "faithfulness", "prompt": "answer_relevance", "healthy": "sent"}
                stage = stops.get(score["diagnosis"], score["diagnosis"])
                score |= {"waterfall": stage, "waterfall_uncertain": False, "weakest_support": score["faithfulness"]}
