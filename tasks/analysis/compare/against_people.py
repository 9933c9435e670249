"""Which of two judges agrees better with people, on claims that both labelled and people reviewed (METHODS 10, 13)."""

import numpy as np
import pyarrow.compute as pc

from tasks.analysis.agreement import labels as said
from tasks.analysis.agreement.raters import PEOPLE, Rater
from tasks.analysis.compare.findings import JUDGED, AgainstPeople
from tasks.analysis.compare.selectors import Filters, Side
from tasks.stats import agreement as core
from tasks.stats.gains import gain
from tasks.store.warehouse import Reader


def against_people(reader: Reader, a: Side, b: Side, filters: Filters) -> AgainstPeople | None:
    """Both sides held against people's labels; None where none of their claims was reviewed.

    Args:
        a: Its recipe cuts answers into the same claims as B's.
    """
    judges = (said.labels(Rater(side.name), side.recipe["recipe"], filters) for side in (a, b))
    sides = dict(zip("ab", judges, strict=True))
    people = said.labels(Rater(PEOPLE, people=True), a.recipe["recipe"], filters)
    rows = said.ask(reader, "against_people", {**sides, "people": people})
    if not rows.num_rows:
        return None
    drawn = rows.filter(rows["drawn"])
    at = {label: i for i, label in enumerate(JUDGED)}
    places = {c: np.array([at[x] for x in drawn[c].to_pylist()], np.int64) for c in drawn.column_names if "label" in c}
    questions = np.array(drawn["question"].to_pylist(), np.str_)
    n, size = np.asarray(drawn["n"].to_numpy(), np.int64), (len(JUDGED), len(JUDGED))
    first, second = (core.tally(questions, places[f"label_{side}"], places["label_people"], size, n) for side in "ab")
    supported_a, supported_b = (core.one_against_rest(counts, 0) for counts in (first, second))
    return AgainstPeople(
        n=int(n.sum()),
        questions=len(np.unique(questions)),
        picked=int(pc.sum(rows["n"]).as_py()) - int(n.sum()),
        accuracy=gain(supported_a, supported_b, core.balanced_accuracy, 0.0, "accuracy"),
        kappa=gain(first, second, core.kappa, -1.0, "kappa"),
    )
