"""A judge's verdicts as examples for a language-model judge (docs/methods.md#judging-the-judges).

Verdicts are found by the judge's version, under all recipes that use the judge.
"""

from collections import ChainMap
from collections.abc import Callable, Mapping, Sequence
from datetime import date

import polars as pl
import pyarrow as pa

from tasks.core.schemas import CLAIM_RESULTS, CLAIMS, PAIRS, RECIPES, REDACTIONS, REVIEWS, TRACES, VERDICTS
from tasks.core.types import Request, Verdict
from tasks.distill.examples import Examples, Row
from tasks.engines.generator import Example, Prompt
from tasks.judges.llm import Llm
from tasks.judging.claims import passages, premise, trace_texts
from tasks.store.lake import Part, empty


class Verdicts(Examples[Llm]):
    """The examples of one judge. A verdict can be an example for every form of the student's prompts."""

    provenance = ("trace_id", "claim_id", "recipe", "request_key", "question_id", "label", "confidence")

    def _verdicts(self) -> pa.Table:
        rows = [row for part in self.lake.parts(RECIPES) for row in pl.DataFrame(part.read()).iter_rows(named=True)]
        recipes = [r for r in rows if self.teacher in (r["judge_version"], *(r["judge_versions"] or ()))]
        relations = {
            "pairs": [p for r in recipes for p in self._of_days(PAIRS, r["recipe"])],
            "recipes": self.lake.parts(RECIPES),
            "verdicts": self.lake.parts(VERDICTS, self.teacher),
            "traces": self._of_days(TRACES),
            "redactions": self.lake.parts(REDACTIONS),
            "reviewed_claims": self._reviewed(recipes),
        }
        wanted = {"apps": list(self.wanted.apps), "min_confidence": self.wanted.min_confidence}
        return self.queries.run("distill/verdicts", relations, {"judge_version": self.teacher, **wanted})

    def _forms(self, row: Row) -> Sequence[str]:  # noqa: ARG002 - all forms for every verdict
        return self.student.forms

    def _example(self, form: str, row: Row) -> Example:
        passages = tuple(row["passages"])
        verdict = Verdict(row["request_key"], row["label"], passages=passages, explanation=row["explanation"])
        return self.student.example(form, row["shown"], verdict)

    def _answer(self, row: Row) -> str:
        return str(row["label"])

    def _prompts(self, day: date, rows: Mapping[int, Row]) -> Callable[[int, str], Prompt]:
        requests = self._requests(day, rows)

        def prompt(place: int, form: str) -> Prompt:
            (found,) = self.student.prompts(form, [requests[place]])
            return found

        return prompt

    def _requests(self, day: date, rows: Mapping[int, Row]) -> dict[int, Request]:
        """The teacher's requests for the pairs of a day."""
        found: dict[int, Request] = {}
        for part in self.lake.parts(TRACES, str(day)):
            here = set(pl.DataFrame(part.read(["trace_id"]))["trace_id"])
            of_part = {place: row for place, row in rows.items() if row["trace_id"] in here}
            if not of_part:
                continue
            texts = trace_texts(part)
            versions = {row["extractor_version"] for row in of_part.values()}
            hypotheses = {version: self._hypotheses(part, version) for version in versions}
            for place, row in of_part.items():
                claims = hypotheses[row["extractor_version"]]
                evidence = [(e["chunk_id"], e["start"], e["end"]) for e in row["evidence"]]
                # In the second pass of method `citations`, the evidence is claims of the answer, by id.
                shown = passages(evidence, ChainMap(texts[row["trace_id"]], claims))
                found[place] = Request(
                    row["request_key"], premise(shown), claims[row["claim_id"]], shown if len(shown) > 1 else ()
                )
        return found

    def _hypotheses(self, part: Part, extractor: str) -> dict[str, str]:
        claims = self.lake.find(CLAIMS, part.name, extractor, part.partition[-1])
        rows = claims.read(["claim_id", "hypothesis"]) if claims else empty(CLAIMS)
        return dict(pl.DataFrame(rows).select("claim_id", "hypothesis").iter_rows())

    def _reviewed(self, recipes: Sequence[Row]) -> pa.Table:
        """People's labels of the claims that the teacher judged."""
        reviews = self.lake.parts(REVIEWS)
        days = {day for part in reviews for day in pl.DataFrame(part.read(["date"]))["date"]}
        versions = sorted({r["extractor_version"] for r in recipes})
        results = [p for r in recipes for p in self._of_days(CLAIM_RESULTS, r["recipe"])]
        claims = [p for version in versions for p in self._of_days(CLAIMS, version)]
        relations = {
            "reviews": reviews,
            "claims": [p for p in claims if p.date in days],
            "claim_results": [p for p in results if p.date in days],
        }
        return self.queries.run("views/reviewed_claims", relations)
