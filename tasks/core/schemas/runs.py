"""Tables of versions and runs."""

import pyarrow as pa

from tasks.core.schemas.columns import APP, DATE, F64, I32, I64, JUDGE_VERSION, RECIPE, STRINGS, TS, S, Table, col

STAGE = pa.struct([
    ("stage", S), ("seconds", F64), ("computed", I64), ("reused", I64), ("tokens_in", I64), ("tokens_cached", I64),
    ("tokens_out", I64), ("judge_version", S), ("gpus", I32),
])  # fmt: skip

JUDGES = Table(
    "judges",
    "one version of a judge or grader",
    pa.schema([
        JUDGE_VERSION,
        col("name", S, "Name in its config.", null=False),
        col("kind", S, "Kind of judge or grader; `cascade` for several judges that are asked one after another.", null=False),
        col("definition", S, "Everything that is hashed into the version, as JSON.", null=False),
    ]),
    remade="`leadline nightly` with a config that names it",
    lost="a judge that no config names any more",
)  # fmt: skip

RECIPES = Table(
    "recipes",
    "one recipe",
    pa.schema([
        RECIPE,
        col("name", S, "Name in the config.", null=False),
        JUDGE_VERSION,
        col("judge_versions", STRINGS, "Version of each judge, in the order they are asked; their verdicts stand under these."),
        col("extractor_version", S, "Hash of the extractor and its settings.", null=False),
        col("scorer_versions", STRINGS, "Versions of what scores answers, chunks and answerability; their scores stand under these."),
        col("grader_version", S, "Version of what grades answers as a whole; null where the recipe names no grader."),
        col("definition", S, "Everything that is hashed into the recipe, as JSON; SQL files by their hashes.", null=False),
    ]),
    remade="`leadline nightly` with a config that names it",
    lost="a recipe that no config names any more",
)  # fmt: skip

CURRENT_RECIPES = Table(
    "current_recipes",
    "one application of one night under one recipe's name: which recipe, and so which judge, counts",
    pa.schema([
        DATE,
        col("recipe_name", S, "Name in the config.", null=False),
        APP,
        RECIPE,
        JUDGE_VERSION,
    ]),
    ("date",),
    remade="`leadline nightly` over its days",
    lost="recipes that no config names any more, which counted for the night",
)  # fmt: skip

PROMOTIONS = Table(
    "promotions",
    "one decision on a judge",
    pa.schema([
        col("promoted_at", TS, "When it was decided.", null=False),
        col("action", S, "`promote`, or `retire`: the judge is no longer to be used.", null=False),
        col("recipe_name", S, "Recipe of the config that it is promoted for; null for `retire`."),
        col("app", S, "Application that it is promoted for; null for all that have no judge of their own."),
        col("judge", S, "The judge's name.", null=False),
        JUDGE_VERSION,
        col("path", S, "Its file, relative to the config's folder where it lies below or beside it; null for `retire`."),
        col("since", pa.date32(), "First night that it counts for; null for `retire`."),
        col("reason", S, "Why.", null=False),
        col("pass_rate", F64, "Share of all conditions of the suite that `promotion.suite` names that it passed until then; null where the config required nothing."),
    ]),
    remade="",
    lost="a decision on a judge: the one before it counts again",
)  # fmt: skip

RUNS = Table(
    "runs",
    "one run of a flow",
    pa.schema([
        col("run_id", S, "Id of the run.", null=False),
        col("flow", S, "Which flow ran.", null=False),
        col("started_at", TS, "Start.", null=False),
        col("ended_at", TS, "End; null while running or after a kill."),
        col("status", S, "`running`, `completed`, `failed` or `interrupted`.", null=False),
        col("error", S, "What went wrong, without any trace text."),
        col("from_date", pa.date32(), "First day asked for.", null=False),
        col("to_date", pa.date32(), "Last day asked for.", null=False),
        RECIPE,
        col("recipes", STRINGS, "All recipes of the run but for shadows; `recipe` is the first of them."),
        JUDGE_VERSION,
        col("stages", pa.list_(STAGE), "Per stage: seconds, rows computed, rows found already there; tokens read, of these spared by a prefix cache, and written; of judging stages, whose verdicts and on how many GPUs.", null=False),
        col("traces_ingested", I64, "New traces.", null=False),
        col("rows_quarantined", I64, "Rows refused by this run.", null=False),
        col("verdicts_computed", I64, "Verdicts that the last try of each completed stage made; `verdicts` has all that were paid for.", null=False),
        col("tokens_in", I64, "Tokens read by models, those of `tokens_cached` included.", null=False),
        col("tokens_cached", I64, "Tokens that a prefix cache spared the models."),
        col("tokens_out", I64, "Tokens written by models.", null=False),
        col("gpu_seconds", F64, "Seconds for which the run held GPUs, times their number.", null=False),
        col("notes", STRINGS, "What the run wants a person to know.", null=False),
    ]),
    remade="",
    lost="the record of a run",
)  # fmt: skip
