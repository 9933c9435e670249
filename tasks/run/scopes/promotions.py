"""Promotions: which judge counts for a recipe and an application, since which night, and why.

The log in the lake is append-only. Nights before a promotion keep the judge that counted for them. Left out: how a run
applies promotions (`variants.py`).
"""

import os
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, date, datetime
from pathlib import Path

from tasks.core.config.names import resolved, written
from tasks.core.errors import UsageError
from tasks.core.schemas import PROMOTIONS
from tasks.store.lake import Lake, from_rows

PROMOTE, RETIRE = "promote", "retire"


@dataclass(frozen=True, slots=True)
class Promotion:
    """A row of `promotions`."""

    promoted_at: datetime
    action: str
    recipe_name: str | None
    app: str | None
    judge: str
    judge_version: str
    path: str | None
    since: date | None
    reason: str
    pass_rate: float | None = None  # older rows lack this column


def log(lake: Lake) -> tuple[Promotion, ...]:
    """All promotions and retirements, oldest first."""
    rows = lake.frame(PROMOTIONS).sort("promoted_at", maintain_order=True)
    return tuple(Promotion(**row) for row in rows.iter_rows(named=True))


def add(lake: Lake, promotion: Promotion) -> None:
    """Append a decision, unless it repeats the latest one on the same judge or recipe. Requires the lake's lock.

    So a killed command can be run again without a duplicate row.
    """
    about = (promotion.recipe_name, promotion.app)
    before = [p for p in log(lake) if p.judge_version == promotion.judge_version or (p.recipe_name, p.app) == about]
    if before and replace(before[-1], promoted_at=promotion.promoted_at) == promotion:
        return
    name = f"{promotion.promoted_at:%Y%m%dT%H%M%S}-{secrets.token_hex(3)}"
    lake.write(PROMOTIONS, name, from_rows([asdict(promotion)], PROMOTIONS))


def counting(log: Iterable[Promotion], recipe: str, night: date) -> dict[str | None, Promotion]:
    """Promotions in effect for a recipe on a night, by application. Key None applies to all other applications."""
    found: dict[str | None, Promotion] = {}
    mine = [p for p in log if p.action == PROMOTE and p.recipe_name == recipe and p.since and p.since <= night]
    for promotion in sorted(mine, key=lambda p: (p.since, p.promoted_at)):
        found[promotion.app] = promotion
    return found


def changes(log: Iterable[Promotion], recipe: str, first: date, last: date) -> list[date]:
    """The first night of a range, and later nights in it on which a promotion takes effect."""
    since = {p.since for p in log if p.action == PROMOTE and p.recipe_name == recipe and p.since}
    return [first, *sorted(d for d in since if first < d <= last)]


def retired(log: Iterable[Promotion]) -> dict[str, Promotion]:
    """Retirements in effect, by judge version. Promoting a judge again cancels its retirement."""
    found: dict[str, Promotion] = {}
    for decision in log:
        if decision.action == RETIRE:
            found[decision.judge_version] = decision
        else:
            found.pop(decision.judge_version, None)
    return found


def path_of(promotion: Promotion, config: Path) -> Path:
    """The file of a promoted judge."""
    return resolved(Path(str(promotion.path)), "judges", config.resolve().parent)


def written_path(judge: Path, config: Path) -> str:
    """The path of a judge's file to store: relative, so that config and judges can be moved together."""
    base = config.resolve().parent
    return str(written(judge, "judges", base) or os.path.relpath(judge.resolve(), base))


def check(log: Sequence[Promotion], promotion: Promotion | None, version: str, where: object) -> None:
    """Refuse a judge or grader that is not the promoted version, or that was retired.

    Raises:
        UsageError: The judge or grader must not be used.
    """
    if promotion is not None and version != promotion.judge_version:
        raise UsageError(
            f"{where} is version {version}; what was promoted for recipe {promotion.recipe_name!r} on "
            f"{promotion.promoted_at:%Y-%m-%d} is {promotion.judge_version}. Restore the file, or promote the new "
            "version with `leadline judges promote` once you have compared the two."
        )
    if gone := retired(log).get(version):
        raise UsageError(
            f"{where}: judge {gone.judge!r}, version {version}, was retired on {gone.promoted_at:%Y-%m-%d} "
            f"({gone.reason}). Use another one; promoting a judge takes that back."
        )


def now() -> datetime:
    """The current time, in UTC."""
    return datetime.now(UTC)
