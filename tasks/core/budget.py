"""What judging may cost: where a run has a budget, judging stops between two shards, and the next run goes on.

The same way it stops for a while when another run wants the GPU.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass
class Budget:
    """Tokens and minutes, counted from when it is made; without limits by default.

    Attributes:
        tokens: Most tokens that judges may read and write; None for no limit.
        minutes: Most minutes; None for no limit.
        used: Tokens that they did.
        wanted: Whether another run wants what the judge holds; None where it is shared with nobody.
        gave_way: Judging has stopped for it.
    """

    tokens: int | None = None
    minutes: float | None = None
    used: int = 0
    wanted: Callable[[], bool] | None = None
    gave_way: bool = False
    _begun: float = field(default_factory=time.monotonic)

    @property
    def spent(self) -> str | None:
        """What of it is spent, in words; None while something is left."""
        if self.tokens is not None and self.used >= self.tokens:
            return f"{self.used:,} tokens were used, of at most {self.tokens:,}"
        minutes = (time.monotonic() - self._begun) / 60
        if self.minutes is not None and minutes >= self.minutes:
            return f"{minutes:.1f} minutes passed, of at most {self.minutes:g}"
        return None

    def over(self) -> bool:
        """Whether to judge no further shard: something is spent, or another run wants what the judge holds."""
        self.gave_way = self.gave_way or (self.wanted is not None and self.wanted())
        return self.gave_way or self.spent is not None
