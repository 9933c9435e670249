"""The views of the warehouse: those of `sql/views`, and for each table with a recipe `current_…`, the rows that count.

`main_recipes` lists the recipe that counts for a night and an application, so a query for last night's numbers needs no
recipe's hash. The tables hold the rows of all recipes.
"""

from tasks.core.paths import sql_dir
from tasks.core.schemas import CLAIM_PATTERNS, CLAIM_RESULTS, PAIRS, TABLES, TRACE_SCORES

OF_A_RECIPE = ("recipe", "date")  # partitions of the tables that hold the results of recipes
BY_TRACE = (CLAIM_RESULTS.name, CLAIM_PATTERNS.name)  # tables without a column `app`
MORE = ("claim_details", "question_repeats", "trace_numbers")  # views of results
OF_A_NIGHT = "nightly_"


def views() -> dict[str, str]:
    """The SELECT of each view by its name; each reads only tables and views before it."""
    files = {path.stem: path.read_text(encoding="utf-8") for path in sorted((sql_dir() / "views").glob("*.sql"))}
    return files | {view: _rows_that_count(of) for view, of in current_views().items()}


def current_views() -> dict[str, str]:
    """The relation whose rows each `current_…` view shows: `current_groundedness` those of `nightly_groundedness`."""
    tables = [t.name for t in TABLES.values() if t.partition == OF_A_RECIPE and t is not PAIRS]
    first = TRACE_SCORES.name  # others are filtered by it
    names = [first, *(name for name in tables if name != first), *MORE]
    return {f"current_{name.removeprefix(OF_A_NIGHT)}": name for name in names}


def _rows_that_count(relation: str) -> str:
    if relation in BY_TRACE:
        return f"SELECT * FROM {relation} SEMI JOIN current_trace_scores USING (recipe, date, trace_id)"  # noqa: S608 - names are ours
    return f"SELECT * FROM {relation} SEMI JOIN main_recipes USING (date, app, recipe)"  # noqa: S608 - names are ours
