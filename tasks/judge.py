"""Task shells: everything that runs a model."""

from prefect import Task

from tasks.shell import shell
from tasks.stages import grades, relevance, verdicts
from tasks.stages.context import StageResult
from tasks.stages.scorers import Scorer, stage_name

judge_first_looks = shell(verdicts.FIRST, verdicts.judge_first_looks)
judge_second_looks = shell(verdicts.SECOND, verdicts.judge_second_looks)
score_relevance = shell("relevance", relevance.score_relevance)
score_by = shell("relevance", relevance.score_by)
grade_answers = shell(grades.STAGE, grades.grade_answers)


def looks(stage: int, *, rounds: bool = False) -> list[Task[..., StageResult]]:
    """First and second looks of one judge of the recipe, from 1, under names of their own; to be called with it.

    Args:
        rounds: It is a round, which has no second looks.
    """
    named = ((verdicts.FIRST, judge_first_looks), (verdicts.SECOND, judge_second_looks))[: 1 if rounds else 2]
    names = [(verdicts.stage_name(name, stage), task) for name, task in named]
    return [task.with_options(name=name, task_run_name=name) for name, task in names]


def scoring(scorer: Scorer) -> Task[..., StageResult]:
    """The scores of one scorer of the recipe, under a name of their own; to be called with it."""
    name = stage_name(scorer)
    return score_by.with_options(name=name, task_run_name=name)
