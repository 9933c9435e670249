"""Tables of versions and runs."""

import pyarrow as pa

from tasks.core.schemas.columns import (
    APP,
    DATE,
    F64,
    I32,
    I64,
    JUDGE_VERSION,
    RECIPE,
    STRINGS,
    TRACE_ID,
    TS,
    S,
    Table,
    col,
)

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
        col("kind", S, "Kind of judge or grader; `cascade` for several judges in sequence.", null=False),
        col("definition", S, "Everything that is hashed into the version, as JSON.", null=False),
    ]),
    remade="`leadline nightly` with a config that names it",
    lost="a judge that no config names anymore",
)  # fmt: skip

RECIPES = Table(
    "recipes",
    "one recipe",
    pa.schema([
        RECIPE,
        col("name", S, "Name in the config.", null=False),
        JUDGE_VERSION,
        col("judge_versions", STRINGS, "Version of each judge in order; verdicts are stored under these."),
        col("extractor_version", S, "Hash of the extractor and its settings.", null=False),
        col("scorer_versions", STRINGS, "Versions of the relevance scorers; scores are stored under these."),
        col("grader_version", S, "Version of the grader; null if the recipe names none."),
        col("definition", S, "Everything that is hashed into the recipe, as JSON; SQL files by their hashes.", null=False),
    ]),
    remade="`leadline nightly` with a config that names it",
    lost="a recipe that no config names anymore",
)  # fmt: skip

CURRENT_RECIPES = Table(
    "current_recipes",
    "one application of one night under one recipe name, with the recipe and judge that count",
    pa.schema([
        DATE,
        col("recipe_name", S, "Name in the config.", null=False),
        APP,
        RECIPE,
        JUDGE_VERSION,
    ]),
    ("date",),
    remade="`leadline nightly` over its days",
    made_of=("traces", "promotions"),
    lost="recipes that counted for the night and that no config names anymore",
)  # fmt: skip

PROMOTIONS = Table(
    "promotions",
    "one decision on a judge",
    pa.schema([
        col("promoted_at", TS, "Time of the decision.", null=False),
        col("action", S, "`promote`, or `retire`: the judge must no longer be used.", null=False),
        col("recipe_name", S, "Recipe of the promotion; null for `retire`."),
        col("app", S, "Application of the promotion; null for all without a judge of their own."),
        col("judge", S, "The judge's name.", null=False),
        JUDGE_VERSION,
        col("path", S, "Its file, relative to the config's folder if it is below or beside it; null for `retire`."),
        col("since", pa.date32(), "First night for which it counts; null for `retire`."),
        col("reason", S, "Reason.", null=False),
        col("pass_rate", F64, "Its pass rate on `promotion.suite` at that time; null if the config required none."),
    ]),
    remade="",
    lost="a decision on a judge: the previous decision counts again",
)  # fmt: skip

WRITE_BACKS = Table(
    "write_backs",
    "one score, or one verdict on a chunk, in the store that its trace came from, as the store last confirmed it",
    pa.schema([
        DATE,
        col("store", S, "The place in the store: URL and project, as `sources` begins.", null=False),
        TRACE_ID,
        col("name", S, "Name of the score in the store.", null=False),
        col("chunk_id", S, "The chunk that the verdict is on; null for a score of the whole trace."),
        col("status", S, "`written`, `withdrawn` (it applies no longer, and the store shows no number), `left_out` (the store has no document of the chunk) or `failed` (the next run tries again).", null=False),
        col("content", S, "Hash of what the store confirmed: score, label and explanation; null before the first time."),
        col("score", F64, "The confirmed score; null if none is there."),
        col("label", S, "The confirmed label; null if none is there."),
        col("recipe", S, "Recipe of the confirmed score."),
        col("judge_version", S, "Judge of the confirmed score."),
        col("store_id", S, "Id that the store gave it; null if the store has none."),
        col("problem", S, "Why it failed, without the text of a trace; null otherwise."),
        col("tried_at", TS, "Time of the last attempt.", null=False),
    ]),
    ("date",),
    remade="`leadline write-back` over its days",
    made_of=("sources", "claims", "claim_results", "trace_scores"),
    lost="the ids that stores gave to scores: a store that has no ids of ours shows such a score twice, and none is withdrawn there",
)  # fmt: skip

RUNS = Table(
    "runs",
    "one run of a flow",
    pa.schema([
        col("run_id", S, "Id of the run.", null=False),
        col("flow", S, "Name of the flow.", null=False),
        col("started_at", TS, "Start.", null=False),
        col("ended_at", TS, "End; null while running or after a kill."),
        col("status", S, "`running`, `completed`, `failed` or `interrupted`.", null=False),
        col("error", S, "The error, without trace text."),
        col("from_date", pa.date32(), "First requested day.", null=False),
        col("to_date", pa.date32(), "Last requested day.", null=False),
        RECIPE,
        col("recipes", STRINGS, "All recipes of the run except shadows; `recipe` is the first."),
        JUDGE_VERSION,
        col("stages", pa.list_(STAGE), "Per stage: seconds, rows computed, rows reused; tokens read, tokens from the prefix cache, tokens written; for judging stages, the judge and the number of GPUs.", null=False),
        col("traces_ingested", I64, "New traces.", null=False),
        col("rows_quarantined", I64, "Rows refused by this run.", null=False),
        col("verdicts_computed", I64, "Verdicts from the last attempt of each completed stage; `verdicts` contains all paid verdicts.", null=False),
        col("tokens_in", I64, "Tokens read by models, `tokens_cached` included.", null=False),
        col("tokens_cached", I64, "Tokens from the prefix cache."),
        col("tokens_out", I64, "Tokens written by models.", null=False),
        col("gpu_seconds", F64, "Seconds that the run held GPUs, times their number.", null=False),
        col("notes", STRINGS, "Notes for people.", null=False),
    ]),
    remade="",
    lost="the record of a run",
)  # fmt: skip
