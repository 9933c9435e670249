"""A run's budget for judging. When the budget is spent, judging stops between shards, and the next run continues.

Judging also stops between shards while another run wants the GPU.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass
class Budget:
    """A limit on tokens and minutes, counted from the creation of the object. Unlimited by default.

    Attributes:
        tokens: Maximum number of tokens that judges may read and write; None for no limit.
        minutes: Maximum number of minutes; None for no limit.
        used: Number of tokens that judges have read and written so far.
        wanted: Returns whether another run wants the GPU that the judge uses; None if the GPU is not shared.
        gave_way: Whether judging stopped to let another run use the GPU.
    """

    tokens: int | None = None
    minutes: float | None = None
    used: int = 0
    wanted: Callable[[], bool] | None = None
    gave_way: bool = False
    _begun: float = field(default_factory=time.monotonic)

    @property
    def spent(self) -> str | None:
        """A message that says which limit is reached; None while the budget lasts."""
        if self.tokens is not None and self.used >= self.tokens:
            return f"{self.used:,} tokens were used, of at most {self.tokens:,}"
        minutes = (time.monotonic() - self._begun) / 60
        if self.minutes is not None and minutes >= self.minutes:
            return f"{minutes:.1f} minutes passed, of at most {self.minutes:g}"
        return None

    def over(self) -> bool:
        """Whether judging must stop: a limit is reached, or another run wants the GPU."""
        self.gave_way = self.gave_way or (self.wanted is not None and self.wanted())
        return self.gave_way or self.spent is not None
