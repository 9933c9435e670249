"""Task shells: everything that runs a model."""

from tasks.shell import shell
from tasks.stages import relevance, verdicts

judge_first_looks = shell("verdicts", verdicts.judge_first_looks)
judge_second_looks = shell("second looks", verdicts.judge_second_looks)
score_relevance = shell("relevance", relevance.score_relevance)
