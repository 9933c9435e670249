"""Which traces and days a context covers: all of them, or those of some applications, or a sample.

A backfill and a shadow judge cover less than the nightly, and each judge that is promoted for an application covers its
own. A part of `pairs` stores the scopes that it was planned for as its `inputs` token; whatever is made of it covers
the same traces. A wider scope later plans the part again, and pays only for what is new, since verdicts are kept by
content.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta

import msgspec
import polars as pl
import pyarrow as pa

from tasks.core import keys
from tasks.core.config import Nightly

_BITS = 64


@dataclass(frozen=True, slots=True)
class DateRange:
    """Days, both ends included; None for no end."""

    first: date | None = None
    last: date | None = None

    def __str__(self) -> str:
        """Words that follow a name; empty for all days."""
        return f" from {self.first} to {self.last}" if self.first or self.last else ""

    def __contains__(self, day: date) -> bool:
        return (self.first is None or self.first <= day) and (self.last is None or day <= self.last)


ALWAYS = DateRange()


def oldest(config: Nightly, first: date) -> date:
    """The first day that a run completes: the requested one, or one to catch up with before it."""
    return first - timedelta(days=config.limits.catch_up_days)


@dataclass(frozen=True, slots=True, order=True)
class Scope:
    """Traces by application and by a draw that depends on their ids alone.

    Attributes:
        apps: Only these; empty for all.
        without: None of these.
        share: Share of them, in (0, 1]; a larger one holds all that a smaller one does.
    """

    apps: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    share: float = 1.0

    def takes(self, app: str) -> bool:
        """Whether it includes traces of an application."""
        return (not self.apps or app in self.apps) and app not in self.without

    def covers(self, trace_id: str, app: str) -> bool:
        """Whether a trace is in it."""
        if not self.takes(app):
            return False
        return self.share >= 1 or int(keys.key("scope", trace_id, size=_BITS // 4), 16) < self.share * 2**_BITS

    def but(self, other: "Scope") -> "Scope | None":
        """What is left without the applications of another scope, whatever its share; None where nothing is left."""
        if not other.apps:
            left = other.without if not self.apps else tuple(a for a in self.apps if a in other.without)
        elif self.apps:
            left = tuple(a for a in self.apps if a not in other.apps)
        else:
            return replace(self, without=tuple(sorted({*self.without, *other.apps})))
        left = tuple(a for a in left if self.takes(a))
        return replace(self, apps=left, without=()) if left else None


ALL = Scope()


def mask(scopes: Iterable[Scope], traces: pa.Table) -> pa.BooleanArray:
    """Which of the traces any of the scopes covers.

    Args:
        traces: With `trace_id` and `app`.
    """
    wanted = list(scopes)
    rows = pl.DataFrame(traces.select(["trace_id", "app"])).iter_rows()
    return pa.array([any(s.covers(trace, app) for s in wanted) for trace, app in rows], pa.bool_())


def token(scopes: Iterable[Scope]) -> str:
    """The scopes as text, in an order of their own; empty where one of them covers everything."""
    found = sorted(set(scopes))
    return "" if ALL in found else msgspec.json.encode(found).decode()


def parse(text: str) -> Sequence[Scope]:
    """The scopes of a token."""
    return msgspec.json.decode(text, type=list[Scope]) if text else [ALL]
