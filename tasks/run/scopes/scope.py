"""Scopes: the traces that a context covers, by application and by sample.

Backfills and shadow judges may cover fewer traces than the nightly. A judge that was promoted for an application covers
only that application. A part of `pairs` stores its scopes as the `inputs` token, and everything computed from the part
covers the same traces. If the scope grows, the part is planned again. Only new requests are judged, since verdicts are
stored by content.
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
    """Range of days, both ends included; None for no limit."""

    first: date | None = None
    last: date | None = None

    def __str__(self) -> str:
        """Text to append to a name; empty for all days."""
        return f" from {self.first} to {self.last}" if self.first or self.last else ""

    def __contains__(self, day: date) -> bool:
        return (self.first is None or self.first <= day) and (self.last is None or day <= self.last)


ALWAYS = DateRange()


def oldest(config: Nightly, first: date) -> date:
    """The first day that a run completes, including days to catch up with."""
    return first - timedelta(days=config.limits.catch_up_days)


@dataclass(frozen=True, slots=True, order=True)
class Scope:
    """Traces selected by application and by a hash of their ids.

    Attributes:
        apps: Applications to include; empty for all.
        without: Applications to exclude.
        share: Share of their traces, in (0, 1]. A larger share includes all traces of a smaller one.
    """

    apps: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    share: float = 1.0

    def takes(self, app: str) -> bool:
        """Whether the scope includes an application."""
        return (not self.apps or app in self.apps) and app not in self.without

    def covers(self, trace_id: str, app: str) -> bool:
        """Whether the scope includes a trace."""
        if not self.takes(app):
            return False
        return self.share >= 1 or int(keys.key("scope", trace_id, size=_BITS // 4), 16) < self.share * 2**_BITS

    def but(self, other: "Scope") -> "Scope | None":
        """This scope without the applications of another, whose share is ignored; None if no application is left."""
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
    """Return a mask of the traces that at least one scope covers.

    Args:
        traces: Table with `trace_id` and `app`.
    """
    wanted = list(scopes)
    rows = pl.DataFrame(traces.select(["trace_id", "app"])).iter_rows()
    return pa.array([any(s.covers(trace, app) for s in wanted) for trace, app in rows], pa.bool_())


def token(scopes: Iterable[Scope]) -> str:
    """Encode scopes as text, independent of their order; empty if one scope covers everything."""
    found = sorted(set(scopes))
    return "" if ALL in found else msgspec.json.encode(found).decode()


def parse(text: str) -> Sequence[Scope]:
    """Decode the scopes of a token."""
    return msgspec.json.decode(text, type=list[Scope]) if text else [ALL]
