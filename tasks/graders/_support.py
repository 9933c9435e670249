"""Whether the passages that a statement cites support it: the requests to a judge, and the result of its verdicts.

A statement is judged by each passage that it cites, by all of them together, and by the one sentence that shares most
words with it, where a model detects a contradiction best.
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

RULES = 1  # raised when the same verdicts come to something else
ALIGNED = 0.6  # share of a statement's words that one sentence needs, to be what it must agree with
REPEATED = 0.85  # share of its words that stand in the question or in what it cites, to count as repeated
STRANGE = 0.5  # below this share it needs more than a bare pass
SURE = 0.6  # `p_supported` that is more than that


class Support(Settings):
    """When what a statement cites supports it.

    Attributes:
        supported: `p_supported` from which it does; null takes the judge's own label. Where fewer than half of its
            words stand there, it needs 0.6 at least.
        repeated: The same for a statement nearly all of whose words stand there; null asks no less of it.
        contradicted: `p_contradicted` by the one sentence most like it from which it does not; null skips the check.
        slips: Whether figures, days, negations and opposites are compared besides.
    """

    supported: Share | None = None
    repeated: Share | None = 0.42
    contradicted: Share | None = 0.6
    slips: bool = True


@dataclass(frozen=True, slots=True)
class Check:
    """The requests to a judge about one statement.

    Attributes:
        cited: With each passage, and with all of them together.
        aligned: With the one sentence most like it; None where no sentence is like it.
    """

    assertion: Assertion
    texts: tuple[str, ...]
    cited: tuple[Request, ...]
    aligned: Request | None

    @property
    def requests(self) -> tuple[Request, ...]:
        """All of them."""
        return self.cited if self.aligned is None else (*self.cited, self.aligned)


@dataclass(frozen=True, slots=True)
class SupportResult:
    """Whether the verdicts support a statement.

    Attributes:
        failure: Why it is unknown; None where it is known.
        why: Why it is not supported, without any text; None where it is.
        addressed: Whether the passages address what it states, even to deny it.
    """

    failure: str | None = None
    why: str | None = None
    addressed: bool = False


def check(
    assertion: Assertion, passages: Sequence[str], settings: Support, shown: Sequence[int] | None = None
) -> Check:
    """What to ask a judge about a statement.

    Args:
        shown: Numbers of the passages that it is judged by; None for those that it cites.
    """
    texts = tuple(passages[n - 1] for n in (assertion.cited if shown is None else shown))
    alone = [request([text], assertion.text) for text in texts]
    together = [request(texts, assertion.text)] if len(texts) > 1 and shown is None else []
    aligned = None if settings.contradicted is None else _aligned(assertion.text, texts)
    return Check(assertion, texts, (*alone, *together), aligned)


def request(passages: Sequence[str], hypothesis: str) -> Request:
    """A request to judge a statement by these passages, shown together."""
    together = tuple(passages) if len(passages) > 1 else ()
    return Request(keys.key(*passages, hypothesis), "\n\n".join(passages), hypothesis, together)


def result(of: Check, verdicts: Mapping[str, Verdict], question: str, settings: Support) -> SupportResult:
    """Whether a judge's verdicts support a statement."""
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
