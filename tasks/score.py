"""Task shells: verdicts into claim results, trace scores and nightly tables; citations against annotated sources."""

from tasks.shell import shell
from tasks.stages import grace, reviewed, score

score_grace = shell("grace", grace.score_grace)
score_traces = shell("scores", score.score_traces)
aggregate_nights = shell("nightly", score.aggregate_nights)
correct_nights = shell(reviewed.STAGE, reviewed.correct_nights)
