"""Checks with a judge whether cited passages support a statement: builds the requests and interprets the verdicts.

A statement is judged with each passage that it cites, with all of them together, and with the one sentence that shares
most words with it. Models detect contradictions best with a single sentence.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tasks.core import keys
from tasks.core.config import Settings, Share
from tasks.core.types import Request, Verdict
from tasks.graders import _slips
from tasks.graders._reading import Assertion
from tasks.text.sentences import sentences
from tasks.text.words import coverage, stems_of

RULES = 1  # raised when the same verdicts give a different result
ALIGNED = 0.6  # share of a statement's words that a sentence needs to be compared with it for contradiction
REPEATED = 0.85  # share of its words that stand in the question or its cited passages, from which it counts as repeated
STRANGE = 0.5  # below this share of such words, it needs at least `SURE`
SURE = 0.6  # `p_supported` that is clearly more than even


class Support(Settings):
    """When cited passages support a statement.

    Attributes:
        supported: Lowest `p_supported` of a supported statement; null uses the judge's own label. If the question and
            the passages have fewer than half of its words, it needs at least 0.6.
        repeated: Lowest `p_supported` if they have nearly all of its words; null makes no difference.
        contradicted: Lowest `p_contradicted`, by the sentence most like the statement, that refutes it; null skips this
            check.
        slips: Whether figures, days, negations and opposites are also compared.
    """

    supported: Share | None = None
    repeated: Share | None = 0.42
    contradicted: Share | None = 0.6
    slips: bool = True


@dataclass(frozen=True, slots=True)
class Check:
    """The requests to a judge about one statement.

    Attributes:
        cited: Requests with each cited passage, and with all of them together.
        aligned: Request with the sentence most like the statement; None if no sentence is like it.
    """

    assertion: Assertion
    texts: tuple[str, ...]
    cited: tuple[Request, ...]
    aligned: Request | None

    @property
    def requests(self) -> tuple[Request, ...]:
        """All requests of the check."""
        return self.cited if self.aligned is None else (*self.cited, self.aligned)


@dataclass(frozen=True, slots=True)
class SupportResult:
    """Whether the verdicts support a statement.

    Attributes:
        failure: Why that is unknown; None if it is known.
        why: Why the statement is not supported, without quoting any text; None if it is supported.
        addressed: Whether the passages address the statement, even to contradict it.
    """

    failure: str | None = None
    why: str | None = None
    addressed: bool = False


def check(
    assertion: Assertion, passages: Sequence[str], settings: Support, shown: Sequence[int] | None = None
) -> Check:
    """The requests to a judge about a statement.

    Args:
        shown: Numbers of the passages to judge with; None for the cited ones.
    """
    texts = tuple(passages[n - 1] for n in (assertion.cited if shown is None else shown))
    alone = [request([text], assertion.text) for text in texts]
    together = [request(texts, assertion.text)] if len(texts) > 1 and shown is None else []
    aligned = None if settings.contradicted is None else _aligned(assertion.text, texts)
    return Check(assertion, texts, (*alone, *together), aligned)


def request(passages: Sequence[str], hypothesis: str) -> Request:
    """A request to judge a statement with these passages, shown together."""
    together = tuple(passages) if len(passages) > 1 else ()
    return Request(keys.key(*passages, hypothesis), "\n\n".join(passages), hypothesis, together)


def result(of: Check, verdicts: Mapping[str, Verdict], question: str, settings: Support) -> SupportResult:
    """Whether the judge's verdicts support a statement."""
    read = [verdicts[r.key] for r in of.requests]
    failures = [v.failure for v in read if v.failure is not None]
    if failures:
        return SupportResult(failure=failures[0])
    by = "passage" if len(of.texts) == 1 else "passages"
    where = f"{by} {', '.join(map(str, of.assertion.cited))}"
    own = stems_of(of.assertion.text)
    source = frozenset().union(stems_of(question), *map(stems_of, of.texts))
    shared = coverage(own, source)
    against = None if of.aligned is None else verdicts[of.aligned.key]
    p_against = 0.0 if against is None or against.label == "supported" else against.p_contradicted or 0.0
    if settings.contradicted is not None and p_against >= settings.contradicted:
        return SupportResult(why=f"is contradicted by a sentence of {where} (p {p_against:.2f})", addressed=True)
    passed = [v for v in read[: len(of.cited)] if _passes(v, shared, settings)]
    if not passed:
        p = max((v.p_supported for v in read[: len(of.cited)] if v.p_supported is not None), default=None)
        return SupportResult(why=f"is not supported by {where}" + ("" if p is None else f" (p {p:.2f})"))
    slip = _slips.slip(of.assertion.text, of.texts, question) if settings.slips else None
    if slip is None:
        return SupportResult(addressed=True)
    return SupportResult(why=f"has {slip.what}, against {where}", addressed=slip.addressed)


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
