"""Task shells: verdicts into claim results, trace scores and nightly tables."""

from tasks.shell import shell
from tasks.stages import score

score_traces = shell("scores", score.score_traces)
aggregate_nights = shell("nightly", score.aggregate_nights)
