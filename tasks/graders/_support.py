"""Whether the passages that a statement cites bear it out: which looks a judge takes, and what they come to.

A statement is set against each passage that it cites and against all of them together, and against the one sentence
that shares most words with it, beside which a model sees a contradiction best. Left out: which statements there are.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tasks.core import keys
from tasks.core.config import Settings, Share
from tasks.core.types import Request, Verdict
from tasks.graders import _slips
from tasks.graders._reading import Said
from tasks.text.sentences import sentences
from tasks.text.words import coverage, stems_of

RULES = 1  # raised when the same verdicts come to something else
ALIGNED = 0.6  # share of a statement's words that one sentence needs, to be what it must agree with
REPEATED = 0.85  # share of its words that stand in the question or in what it cites, to be called repeated
STRANGE = 0.5  # below this share it needs more than a bare pass
SURE = 0.6  # `p_supported` that is more than that


class Support(Settings):
    """When a statement counts as borne out by what it cites.

    Attributes:
        supported: `p_supported` from which it does; null takes the judge's own label. Where fewer than half of its
            words stand there, it needs 0.6 at least.
        repeated: The same for a statement nearly all of whose words stand there; null asks no less of it.
        contradicted: `p_contradicted` by the one sentence most like it from which it does not; null doesn't look.
        slips: Whether figures, days, negations and opposites are compared besides.
    """

    supported: Share | None = None
    repeated: Share | None = 0.42
    contradicted: Share | None = 0.6
    slips: bool = True


@dataclass(frozen=True, slots=True)
class Looks:
    """What a judge is asked about a statement.

    Attributes:
        cited: Beside each passage, and beside all of them together.
        aligned: Beside the one sentence most like it; None where no sentence is like it.
    """

    said: Said
    texts: tuple[str, ...]
    cited: tuple[Request, ...]
    aligned: Request | None

    @property
    def requests(self) -> tuple[Request, ...]:
        """All of them."""
        return self.cited if self.aligned is None else (*self.cited, self.aligned)


@dataclass(frozen=True, slots=True)
class Found:
    """What they came to.

    Attributes:
        failure: Why it can't be told; None where it can.
        why: Why it is not borne out, without any text; None where it is.
        spoken: Whether the passages speak of what it says, if only to say otherwise.
    """

    failure: str | None = None
    why: str | None = None
    spoken: bool = False


def looks(said: Said, passages: Sequence[str], settings: Support, shown: Sequence[int] | None = None) -> Looks:
    """What to ask about a statement.

    Args:
        shown: Numbers of the passages that it is set against; None for those that it cites.
    """
    texts = tuple(passages[n - 1] for n in (said.cited if shown is None else shown))
    alone = [request([text], said.text) for text in texts]
    together = [request(texts, said.text)] if len(texts) > 1 and shown is None else []
    aligned = None if settings.contradicted is None else _aligned(said.text, texts)
    return Looks(said, texts, (*alone, *together), aligned)


def request(passages: Sequence[str], hypothesis: str) -> Request:
    """A request to judge a statement by these passages, shown together."""
    together = tuple(passages) if len(passages) > 1 else ()
    return Request(keys.key(*passages, hypothesis), "\n\n".join(passages), hypothesis, together)


def found(of: Looks, verdicts: Mapping[str, Verdict], question: str, settings: Support) -> Found:
    """What the judge's verdicts on a statement come to."""
    read = [verdicts[r.key] for r in of.requests]
    failures = [v.failure for v in read if v.failure is not None]
    if failures:
        return Found(failure=failures[0])
    by = "passage" if len(of.texts) == 1 else "passages"
    where = f"{by} {', '.join(map(str, of.said.cited))}"
    own = stems_of(of.said.text)
    known = frozenset().union(stems_of(question), *map(stems_of, of.texts))
    shared = coverage(own, known)
    against = None if of.aligned is None else verdicts[of.aligned.key]
    p_against = 0.0 if against is None or against.label == "supported" else against.p_contradicted or 0.0
    if settings.contradicted is not None and p_against >= settings.contradicted:
        return Found(why=f"is contradicted by a sentence of {where} (p {p_against:.2f})", spoken=True)
    passed = [v for v in read[: len(of.cited)] if _passes(v, shared, settings)]
    if not passed:
        p = max((v.p_supported for v in read[: len(of.cited)] if v.p_supported is not None), default=None)
        return Found(why=f"is not supported by {where}" + ("" if p is None else f" (p {p:.2f})"))
    slip = _slips.slip(of.said.text, of.texts, question) if settings.slips else None
    if slip is None:
        return Found(spoken=True)
    return Found(why=f"has {slip.what}, against {where}", spoken=slip.spoken)


def _passes(verdict: Verdict, shared: float, settings: Support) -> bool:
    p = verdict.p_supported
    if p is None:
        return verdict.label == "supported"
    if settings.repeated is not None and shared >= REPEATED and p >= settings.repeated:
        return True
    if shared < STRANGE and p < SURE:
        return False
    return verdict.label == "supported" if settings.supported is None else p >= settings.supported


def _aligned(statement: str, texts: Sequence[str]) -> Request | None:
    own = stems_of(statement)
    found = [sentence for text in texts for sentence in sentences(text)]
    best = max(found, key=lambda s: coverage(own, s.stems), default=None)
    if best is None or coverage(own, best.stems) < ALIGNED:
        return None
    return request([best.text], statement)
