"""Stores that keep scores, for tests: what each of them does with a score that comes once, again, changed, or wrong.

A store with scores answers for a world of `worlds.py`: what is not about scores goes to the world.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from kit.stores.server import Asked, Reply
from kit.stores.worlds import KEY, World

Scores = dict[tuple[str, str], tuple[float | None, str]]  # by trace and name: score, and what is written beside it


@dataclass
class Store:
    """A store with the scores that it was sent.

    Attributes:
        dies_after: Changes after which it answers nothing any more; the last one is made.
        refuses: Names of scores that it refuses.
        changes: Requests that changed something.
    """

    world: World
    dies_after: int | None = None
    refuses: frozenset[str] = frozenset()
    forgotten: frozenset[str] = frozenset()  # names of traces that it no longer has
    changes: int = 0
    denies: bool = False
    dead: bool = field(default=False, init=False)

    def answer(self, asked: Asked) -> Reply:
        """What the server says."""
        if self.dead:
            return Reply({}, 503)
        if self.denies:
            return Reply({"detail": KEY}, 401)
        before = self.changes
        reply = self._scores(asked)
        if reply is None:
            return self.world.answer(asked)
        if self.changes > before and self.dies_after is not None and self.changes >= self.dies_after:
            self.dead = True
            return Reply({}, 200, cut=0)  # it is done, and nobody learns of it
        return reply

    def _scores(self, asked: Asked) -> Reply | None:
        """What it says of scores; None for whatever is not about them."""
        raise NotImplementedError

    def shown(self) -> Scores:
        """What people see. Fails where a score is there twice."""
        found: Scores = {}
        for trace_id, name, score, text in self._rows():
            assert (trace_id, name) not in found, f"{name} is there twice"
            found[trace_id, name] = score, text
        return found

    def _rows(self) -> Iterable[tuple[str, str, float | None, str]]:
        raise NotImplementedError

    def _has(self, trace_id: str) -> bool:
        return trace_id in {f"tr-{t.name}" for t in self.world.traces if t.name not in self.forgotten}


@dataclass
class PhoenixScores(Store):
    """Upserts; what it does not know is an error with `sync=true`, and lost without."""

    traces: dict[tuple[str, str, str], dict[str, Any]] = field(default_factory=dict)
    documents: dict[tuple[str, str, int], dict[str, Any]] = field(default_factory=dict)

    def _scores(self, asked: Asked) -> Reply | None:
        if asked.path == "/v1/trace_annotations":
            return self._taken(asked, lambda d: self._has(d["trace_id"]), self._trace)
        if asked.path == "/v1/document_annotations":
            if any(d.get("identifier", "").strip() for d in asked.body["data"]):
                return Reply({"detail": "not supported"}, 422)
            counts = {r["context"]["span_id"]: 1 for t in self.world.traces for r in self.world.records(t)[1:2]}
            return self._taken(asked, lambda d: d["document_position"] < counts.get(d["span_id"], 0), self._document)
        return None

    def _taken(self, asked: Asked, known: Callable[[Any], bool], keep: Callable[[Any], None]) -> Reply:
        data = asked.body["data"]
        if asked.params.get("sync") != ["true"]:
            return Reply({"data": []})
        if not all(map(known, data)):
            return Reply({"detail": "do not exist"}, 404)
        if any(d["name"] in self.refuses for d in data):
            return Reply({"detail": "no"}, 422)
        for one in data:
            keep(one)
        self.changes += 1
        return Reply({"data": [{"id": f"id-{n}"} for n in range(len(data))]})

    def _trace(self, one: dict[str, Any]) -> None:
        self.traces[one["name"], one["trace_id"], one["identifier"]] = one

    def _document(self, one: dict[str, Any]) -> None:
        self.documents[one["name"], one["span_id"], one["document_position"]] = one

    def _rows(self) -> Iterable[tuple[str, str, float | None, str]]:
        for (name, trace_id, _), one in self.traces.items():
            if one["result"]["score"] is not None:
                yield (
                    trace_id,
                    name,
                    one["result"]["score"],
                    f"{one['result']['label']}: {one['result']['explanation']}",
                )


@dataclass
class MlflowScores(Store):
    """Creates one whenever it is told to."""

    assessments: dict[str, dict[str, Any]] = field(default_factory=dict)

    def _scores(self, asked: Asked) -> Reply | None:
        head, _, rest = asked.path.partition("/api/3.0/mlflow/traces/")
        if head or not rest or rest in ("search", "batchGet"):
            return None
        trace_id, _, name = rest.partition("/assessments")
        if not self._has(trace_id):
            return Reply({"error_code": "RESOURCE_DOES_NOT_EXIST"}, 404)
        if asked.method == "GET":
            own = [a for a in self.assessments.values() if a["trace_id"] == trace_id]
            return Reply({"trace": {"trace_info": {"trace_id": trace_id, "assessments": own}}})
        if asked.method == "POST":
            one = asked.body["assessment"]
            if one["assessment_name"] in self.refuses:
                return Reply({}, 400)
            one = {**one, "assessment_id": f"a-{self.changes}", "create_time": f"{self.changes:06}", "valid": True}
            self.assessments[one["assessment_id"]] = one
        elif asked.method == "PATCH":
            one = self.assessments[name[1:]]
            assert set(asked.body["update_mask"].split(",")) == {"feedback", "rationale", "metadata"}
            one.update(asked.body["assessment"])
        else:
            one = self.assessments.pop(name[1:])
        self.changes += 1
        return Reply({"assessment": one})

    def _rows(self) -> Iterable[tuple[str, str, float | None, str]]:
        for a in self.assessments.values():
            yield (
                a["trace_id"],
                a["assessment_name"],
                a["feedback"]["value"],
                f"{a['metadata']['label']}: {a['rationale']}",
            )


@dataclass
class LangfuseScores(Store):
    """Takes a score as the same one by its id and its day; a batch may be taken in part."""

    scores: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)

    def _scores(self, asked: Asked) -> Reply | None:
        head, _, name = asked.path.partition("/api/public/scores")
        if head:
            return None
        self.changes += 1
        if asked.method == "DELETE":
            for key in [key for key in self.scores if key[0] == name[1:]]:
                del self.scores[key]
            return Reply(b"", 202)
        rejected = [s for s in asked.body if s["name"] in self.refuses]
        for one in asked.body:
            if one not in rejected:
                self.scores[one["id"], one["timestamp"]] = one
        if rejected:
            errors = [{"message": "invalid"}] * len(rejected)
            return Reply(
                {"accepted": len(asked.body) - len(rejected), "rejected": len(rejected), "errors": errors}, 207
            )
        return Reply({"message": "Accepted"}, 202)

    def _rows(self) -> Iterable[tuple[str, str, float | None, str]]:
        for one in self.scores.values():
            yield one["traceId"], one["name"], one["value"], one["comment"]


@dataclass
class LangsmithScores(Store):
    """Refuses a second feedback with an id that it has, and scores with more than four digits."""

    feedback: dict[str, dict[str, Any]] = field(default_factory=dict)

    def _scores(self, asked: Asked) -> Reply | None:
        head, _, name = asked.path.partition("/api/v1/feedback")
        if head:
            return None
        if asked.method != "POST" and name[1:] not in self.feedback:
            return Reply({"detail": "no such feedback"}, 404)
        if asked.method == "DELETE":
            del self.feedback[name[1:]]
        else:
            if (score := asked.body["score"]) != round(score, 4) or asked.body.get("key") in self.refuses:
                return Reply({"detail": "invalid"}, 422)
            if asked.method == "POST":
                if not self._has(asked.body["run_id"]):
                    return Reply({"detail": "no such run"}, 404)
                if asked.body["id"] in self.feedback:
                    return Reply({"detail": "it is there"}, 409)
            self.feedback.setdefault(asked.body.get("id", name[1:]), {}).update(asked.body)
        self.changes += 1
        return Reply({})

    def _rows(self) -> Iterable[tuple[str, str, float | None, str]]:
        for one in self.feedback.values():
            yield one["trace_id"], one["key"], one["score"], f"{one['value']}: {one['comment']}"
