"""Alerts on simulated nights: false alerts per year, and nights until a drop is reported.

    python -m bench.alerts [--years 30] [--drops 40]

Scores are skewed like groundedness, questions repeat, and nights differ by more than sampling error. Standard errors
are cluster-robust, as for large nights; the bootstrap of smaller nights is slow and hardly differs. Left out: reading
tables, and correlated numbers (independent numbers give the most false alerts).
"""

import math
from dataclasses import replace
from datetime import date, timedelta

import numpy as np

from bench import common
from tasks.core.config import Alerts
from tasks.stats.alerting import LONGEST, Change, Night, PastChange, Return, Rules, level, watch

FIRST = date(2026, 1, 1)
NUMBERS = 20  # 2 apps × 2 generators × 5 numbers
BEFORE, AFTER = 60, 60  # nights before a drop, and nights after which it counts as missed
SETTINGS = Alerts()
RULES = Rules(
    SETTINGS.nights, SETTINGS.least_nights, SETTINGS.least("groundedness"), level(SETTINGS.false_alerts, NUMBERS)
)


def night(rng: np.random.Generator, day: int, traces: int, drop: float, between: float) -> Night:
    """Draw one night's groundedness: 70% of answers score 100, the others uniformly less. 30% repeat a question of the
    night; they get the score of its first answer or a new score with equal probability."""
    questions = math.ceil(0.7 * traces)
    of = np.concatenate([np.arange(questions), rng.integers(0, questions, traces - questions)])
    own = _scores(rng, questions)[of]
    scores = np.where(rng.random(traces) < 0.5, own, _scores(rng, traces))
    # A worse generator has more answers with score 0, each of which loses 85 points on average.
    lost = np.clip(drop + between * rng.standard_normal(), -85, 85) / 85
    if lost >= 0:
        scores = np.where(rng.random(traces) < lost, 0.0, scores)
    else:
        scores = np.where(rng.random(traces) < min(1.0, -lost * 85 / 15), 100.0, scores)
    counts, totals = np.bincount(of, minlength=questions), np.bincount(of, scores, minlength=questions)
    mean = float(scores.mean())
    left = totals - mean * counts
    se = math.sqrt(questions / (questions - 1) * float(left @ left)) / traces
    return Night(FIRST + timedelta(days=day), traces, mean, se)


def _scores(rng: np.random.Generator, n: int) -> np.ndarray:
    return np.where(rng.random(n) < 0.7, 100.0, 100 * rng.random(n))


class Watcher:
    """Watches one number over nights."""

    def __init__(self) -> None:
        self.nights: list[Night] = []
        self.alerts: list[PastChange] = []
        self.returns = 0

    def see(self, tonight: Night) -> bool:
        """Whether an alert fires."""
        self.nights = [*self.nights, tonight][-2 * (RULES.nights + LONGEST) :]
        found = watch(self.nights, self.alerts, RULES)
        if isinstance(found, Return):
            self.alerts[-1] = replace(self.alerts[-1], until=found.until)
            self.returns += 1
        if not isinstance(found, Change):
            return False
        self.alerts.append(PastChange(tonight.day, found.days[0], found.before, found.level))
        return True


def false_alerts(traces: int, between: float, years: int) -> float:
    """False alerts per year over `NUMBERS` numbers without any real change."""
    rng = np.random.default_rng(traces)
    fired = 0
    for _ in range(years):
        watcher = Watcher()
        fired += sum(watcher.see(night(rng, day, traces, 0, between)) for day in range(RULES.least_nights + 365))
    return fired / years * NUMBERS


def nights_to_detect(traces: int, drop: float, between: float, drops: int) -> list[float]:
    """Nights until the alert for each of several drops, counting the first bad night; infinite if none fires."""
    rng = np.random.default_rng(traces + int(drop))
    found = []
    for _ in range(drops):
        watcher = Watcher()
        for day in range(BEFORE):
            watcher.see(night(rng, day, traces, 0, between))
        fired = (n + 1 for n in range(AFTER) if watcher.see(night(rng, BEFORE + n, traces, drop, between)))
        found.append(float(next(fired, math.inf)))
    return found


def _quantile(values: list[float], share: float) -> str:
    at = sorted(values)[min(len(values) - 1, math.ceil(share * len(values)) - 1)]
    return f"{at:.0f}" if at < math.inf else f"> {AFTER}"


def main() -> None:
    parser = common.parser(__doc__)
    parser.add_argument("--years", type=int, default=30, help="of each number")
    parser.add_argument("--drops", type=int, default=40)
    given = parser.parse_args()
    for traces in (50, 200, 1_000):
        for between in (0.0, 1.0, 2.0):
            parts = [f"{false_alerts(traces, between, given.years):.1f} false alerts a year"]
            for drop in (2, 5, 10):
                nights = nights_to_detect(traces, drop, between, given.drops)
                parts.append(f"{drop} points: {_quantile(nights, 0.5)}, {_quantile(nights, 0.9)}")
            print(f"{traces} traces, {between} points between nights: {'; '.join(parts)}", flush=True)


if __name__ == "__main__":
    main()
