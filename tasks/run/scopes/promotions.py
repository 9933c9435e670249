"""Promotions: which judge counts for a recipe and an application, from which night on, decided when and why.

A log in the lake, of which nothing is ever changed. Nights before a promotion keep the judge that counted for them.
Left out: what a run makes of it (`variants.py`).
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
    pass_rate: float | None = None  # older decisions don't have it


def log(lake: Lake) -> tuple[Promotion, ...]:
    """Every decision, the oldest first."""
    rows = lake.frame(PROMOTIONS).sort("promoted_at", maintain_order=True)
    return tuple(Promotion(**row) for row in rows.iter_rows(named=True))


def add(lake: Lake, promotion: Promotion) -> None:
    """Write a decision down, unless the latest one on the same judge or recipe says the same; needs the lake's lock.

    So a command that was killed can be run again.
    """
    about = (promotion.recipe_name, promotion.app)
    before = [p for p in log(lake) if p.judge_version == promotion.judge_version or (p.recipe_name, p.app) == about]
    if before and replace(before[-1], promoted_at=promotion.promoted_at) == promotion:
        return
    name = f"{promotion.promoted_at:%Y%m%dT%H%M%S}-{secrets.token_hex(3)}"
    lake.write(PROMOTIONS, name, from_rows([asdict(promotion)], PROMOTIONS))


def counting(log: Iterable[Promotion], recipe: str, night: date) -> dict[str | None, Promotion]:
    """The promotions that count for a recipe on a night, by application; None for all that have none of their own."""
    found: dict[str | None, Promotion] = {}
    mine = [p for p in log if p.action == PROMOTE and p.recipe_name == recipe and p.since and p.since <= night]
    for promotion in sorted(mine, key=lambda p: (p.since, p.promoted_at)):
        found[promotion.app] = promotion
    return found


def changes(log: Iterable[Promotion], recipe: str, first: date, last: date) -> list[date]:
    """The nights of a range from which on another promotion may count, the first night before them."""
    since = {p.since for p in log if p.action == PROMOTE and p.recipe_name == recipe and p.since}
    return [first, *sorted(d for d in since if first < d <= last)]


def retired(log: Iterable[Promotion]) -> dict[str, Promotion]:
    """Judges that are no longer to be used, by version, with the decision; promoting one again takes it back."""
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
    """A judge's file as it is written down: found again where config and judges are moved together."""
    base = config.resolve().parent
    return str(written(judge, "judges", base) or os.path.relpath(judge.resolve(), base))


def check(log: Sequence[Promotion], promotion: Promotion | None, version: str, where: object) -> None:
    """Refuse a judge or grader that is not the one that was promoted, or that is retired.

    Raises:
        UsageError: It is not to be used.
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
    """The time of a decision."""
    return datetime.now(UTC)
