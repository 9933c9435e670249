# ruff: noqa: ANN401 - rows and JSON documents hold anything
"""Whether two versions of Leadline make the same tables: kept by one, kept by the other, compared.

    python scripts/same_tables.py keep DIR --expertqa FOLDER
    python scripts/same_tables.py compare BEFORE AFTER

`keep` runs the nights of the bundled sample, of 50 traces of ExpertQA (`traces.jsonl` and `labels.jsonl` in FOLDER) and
of a made-up drop, by three judges and under three recipes and more, then people's labels and whatever analyses them. It
leaves the rows of every table and view and every JSON output in DIR/kept/. The code that runs is that of the checkout
which this file lies in. `compare` reads what the other version kept under the names declared here (`TABLES`, `COLUMNS`,
`VALUES`), and compares column by column. Ids and versions may differ but not change places: each is replaced by what it
stands for (`IDS`), and no two of a side may stand for the same. Left out: pages of the report, models that need a GPU
or a server, and what a clock says (`CLOCKS`), of which only nulls are compared.
"""

import argparse
import gzip
import json
import math
import os
import re
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq

# What is renamed: before -> after. COLUMNS holds for tables, structs and JSON; `table.column`, `column.field of it` or
# `json file.key` for that place alone, its first part as it was before. VALUES by column, as it was before; `*` is all.
TABLES: dict[str, str] = {"looks": "pair_verdicts", "removals": "redactions"}
COLUMNS: dict[str, str] = {
    "look": "pair_kind",
    "claim_results.looks": "n_pairs",
    "claim_details.looks": "n_pairs",
    "looks_unjudged": "n_pairs_unjudged",
    "text_removed": "text_redacted",
    "text_removed_at": "text_redacted_at",
    "removed_at": "redacted_at",
    "claim_patterns.said": "answer_spans",
    "claim_patterns.shown": "chunk_spans",
    "sources.known": "duplicates",
}
VALUES: dict[str, dict[str, str]] = {
    "outcome": {"labelled": "labeled"},
    "reason": {"text_removed": "text_redacted", "removed": "redacted"},
    "stage": {"second looks": "joint pairs", "second looks 2": "joint pairs 2"},
}

# Everything below this line says names as they were before.
# An id, the table that says what it stands for, and the columns that do. Versions of graders are among `judges`.
IDS = (
    ("judge_version", "judges", ("kind", "name")),
    ("extractor_version", "recipes", ("name",)),
    ("recipe", "recipes", ("name", "judge_version")),
    ("scorer_version", "relevance", ("method", "kind")),
    ("claim_id", "claims", ("trace_id", "extractor_version", "ordinal")),
    ("request_key", "pairs", ("claim_id", "recipe", "stage", "look", "evidence")),
    ("content_hash", "traces", ("trace_id",)),
    ("question_id", "trace_scores", ("trace_id",)),
    ("review_id", "reviews", ("trace_id", "span_start", "claim_id", "label", "grade", "reviewer", "reviewed_at")),
    ("alert_id", "alerts", ("recipe", "app", "generator", "number", "date")),
    ("suite_version", "metaeval", ("suite",)),
    ("case_key", "metaeval", ("case_id",)),
)
KEYS = ["date", "trace_id", *(name for name, _, _ in IDS)]  # what rows are sorted by first
CLOCKS = frozenset([
    "announced_at", "created_at", "ended_at", "fingerprint", "gpu_seconds", "imported_at", "ingested_at", "judged_at",
    "measured_at", "promoted_at", "removed_at", "requested_at", "run_id", "seconds", "sent_at", "started_at",
    "text_removed_at",
])  # fmt: skip
_ID = re.compile(r"\b[0-9a-f]{16}(?:[0-9a-f]{16})?\b")
_PATH = re.compile(r"(?<![\w.])/(?:[\w.\-]+/)+")  # folders of an absolute path

ROOT = Path(__file__).resolve().parents[1]
COMMAND = [sys.executable, "-m", "flows"]
JUDGES = ("replay", "similarity", "nli")  # nli last: what ran last counts
NIGHTS = {  # by data set
    "expertqa": "--from 2026-11-01 --to 2026-11-14",
    "sample": "--from 2026-11-01 --to 2026-11-03",
    "drop": "--from 2026-11-01 --to 2026-11-10",
}
GENERATORS = {"expertqa": "generator:rr_gs_gpt4 generator:post_hoc_sphere_gpt4"}
# Of which data sets (all but the drop, if nothing is said); where what it prints is kept; its config; its words.
COMMANDS = """
| | replay | nightly {nights}
| | similarity | nightly {nights}
all | | nli | nightly {nights}
| | nli | backfill --judge configs/judges/lots.yaml --recipe claims --sample 0.5 {nights}
| | nli | review import reviews.jsonl
| noise | nli | noise --sample 30 --json {nights}
| | nli | judges promote configs/judges/nli.yaml --recipe claims --since 2026-11-01 --reason tried
sample | metaeval | nli | metaeval {graders} --suite suite --json
sample | agreement-suite | nli | agreement entailment random --suite suite --json
| calibrate-replay | replay | calibrate --error 0.3 --format json
| calibrate-nli | nli | calibrate --error 0.3 --format json
| agreement-people | nli | agreement judge:nli people --json
| agreement-judges | nli | agreement judge:nli judge:similarity --recipe claims --json
| review-agreement | nli | review agreement --json
| review-random | nli | review export --need random --count 1000 --recipe claims --show-judge
| review-misused | nli | review export --need misused --count 1000 --recipe claims --show-judge
| review-uncertain | nli | review export --need uncertain --count 1000 --recipe claims --show-judge
| review-disputed | nli | review export --need disputed --count 1000 --recipe claims --show-judge
| compare-judge | nli | compare judge:nli judge:similarity --recipe claims --json
sample | compare-recipe | nli | compare recipe:top recipe:packs --json
| compare-dates | nli | compare dates:2026-11-01 dates:2026-11-03 --recipe claims --json
| compare-generator | nli | compare {generators} --recipe claims --json
sample | compare-prompt | nli | compare prompt:v4 prompt:v5 --recipe claims --json
| | nli | distill --judge nli --student configs/judges/qwen3-1.7b-cpu.yaml --max 200 -o lessons
sample | | nli | forget hd-1101-002 --reason asked
"""
SLOW = ("expertqa", "top-similarity")  # left out
GRADERS = " ".join(f"--judge configs/graders/{name}.yaml" for name in ("entailment", "constant", "random"))
SHARES = (
    "{supported: 0.5, partially_supported: 0.1, unsupported: 0.2, contradicted: 0.1, abstained: 0.05, failure: 0.05}"
)
CONFIG = """
lake: ../lake
warehouse: ../leadline.duckdb
report: {{dir: ../report-{judge}, max_trace_pages: 0}}
sources: [{{kind: jsonl, paths: ['../logs/*']}}]
recipes: [{recipes}]
gates: {{max_quarantined_share: 0.3}}
alerts: {{least_nights: 5, least_traces: 2, false_alerts: 300}}
"""
MORE = {  # recipes beside the three, by the config that has them
    "packs-replay": """
name: packs
judge: ../judges/replay.yaml
pairing: {kind: all_chunks, pack_words: 400}
scoring: {misuse_penalty: 1, partial_credit: 0.5, dangling_as_misuse: true}
""",
    "top-similarity": """
name: top
judge: ../judges/similarity.yaml
pairing: {kind: top_k, k: 2}
""",
    "cascade-nli": """
name: cascade
judge: ../judges/similarity.yaml
cascade: [{band: [0.5, 0.8], judge: ../judges/nli.yaml}]
shadow: {judge: ../judges/lots.yaml, share: 0.5}
""",
}
SUITE = ["travel_policy", "energy_report"]


def keep(folder: Path, expertqa: Path) -> None:
    """Run everything in an empty folder, and leave what came of it in `kept`."""
    for data in NIGHTS:
        configs = folder / data / "configs"
        shutil.copytree(ROOT / "configs", configs)
        for name, seed in (("replay", 0), ("lots", 7)):
            (configs / "judges" / f"{name}.yaml").write_text(f"kind: replay\nseed: {seed}\nshares: {SHARES}\n")
        if data == "expertqa":  # a grader that is quick to ask
            grader = configs / "graders" / "entailment.yaml"
            grader.write_text(grader.read_text().replace("nli.yaml", "similarity.yaml"))
        for name, text in MORE.items():
            (configs / "recipes" / f"{name}.yaml").write_text(text)
        for judge in JUDGES:
            recipes = [f"recipes/{n}.yaml" for n in MORE if n.endswith(judge) and (data, n) != SLOW]
            for name in ("claims", "citations", "grounded_qa"):
                text = (configs / "recipes" / f"{name}.yaml").read_text()
                text = re.sub(r"(?m)^judge: \S+", f"judge: ../judges/{judge}.yaml", text)
                recipes.append(f"recipes/{name}-{judge}.yaml")
                (configs / recipes[-1]).write_text(text)
            recipes = ["recipes/claims-similarity.yaml"] if data == "drop" else recipes
            (configs / f"{judge}.yaml").write_text(CONFIG.format(judge=judge, recipes=", ".join(recipes)))
        (folder / data / "lake").mkdir()
        (folder / data / "lake" / ".salt").write_text("0" * 32)  # ids of questions are the same each time
    for part in SUITE:
        (folder / "sample" / "suite").mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / "data" / "judge_suite" / "test" / f"{part}.jsonl", folder / "sample" / "suite")
    _write_logs(folder, expertqa)
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda data: _run_all(folder, data), NIGHTS))


def _write_logs(folder: Path, expertqa: Path) -> None:
    """The traces and people's labels of each data set."""
    logs = {data: folder / data / "logs" for data in NIGHTS}
    shutil.copytree(ROOT / "data" / "sample", logs["sample"], ignore=shutil.ignore_patterns("*.md", "reviews*"))
    lines = [json.loads(x) for x in gzip.decompress((logs["sample"] / "2026-11-02.jsonl.gz").read_bytes()).splitlines()]
    refused = [
        {**lines[0], "trace_id": "empty", "question": " "},
        {**lines[0], "answer": "Something else."},
        {"answer": 1},
    ]
    _write(logs["sample"] / "refused.jsonl", refused)
    labels = [json.loads(line) for line in (ROOT / "data" / "sample" / "reviews.jsonl").open()]
    others = [{**one, "label": "unsupported"} if n % 2 else one for n, one in enumerate(labels[:60]) if "claim" in one]
    grades = [
        {"trace_id": t, "grade": "completeness", "value": n % 5 + 1}
        for n, t in enumerate({o["trace_id"]: 0 for o in others})
    ]
    _write(
        folder / "sample" / "reviews.jsonl", [*labels, *({**one, "reviewer": "second"} for one in [*others, *grades])]
    )

    traces = sorted(map(json.loads, (expertqa / "traces.jsonl").open()), key=lambda t: (t["timestamp"], t["trace_id"]))
    usable = {t["trace_id"]: t for t in [t for t in traces if t["chunks"] and t["answer"].strip()][:50]}
    _write(logs["expertqa"] / "traces.jsonl", usable.values())
    support = {"Complete": "supported", "Partial": "partially_supported", "Incomplete": "unsupported"}
    labels = [json.loads(line) for line in (expertqa / "labels.jsonl").open()]
    found = [
        {"trace_id": one["trace_id"], "claim": one["claim"], "label": support[one["support"]], "reviewer": "expert"}
        for one in labels
        if one["support"] in support and usable.get(one["trace_id"], {"answer": ""})["answer"].count(one["claim"]) == 1
    ]
    _write(folder / "expertqa" / "reviews.jsonl", found)

    some = [t for t in lines if t["generator"] == "harbor-large" and t["app"] == "harbor-docs"][:14]
    for day in range(1, 11):  # on two nights, each answer is the one to another question
        answers = [some[at - (6 < day < 9)]["answer"] for at in range(len(some))]
        at = [{"trace_id": f"d{day}-{n}", "timestamp": f"2026-11-{day:02}T10:{n:02}:00Z"} for n in range(len(some))]
        mixed = [{**t, **of, "answer": a} for t, of, a in zip(some, at, answers, strict=True)]
        _write(logs["drop"] / f"{day}.jsonl", mixed)


def _run_all(folder: Path, data: str) -> None:
    """Run one data set's commands one after another, then write down its tables."""
    kept, begun = folder / "kept" / data, time.monotonic()
    (kept / "lake").mkdir(parents=True)
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PREFECT_")} | {
        "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "PREFECT_HOME": str(folder / data / "prefect"),
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false", "DO_NOT_TRACK": "1", "GX_ANALYTICS_ENABLED": "false",
    }  # fmt: skip
    generators = GENERATORS.get(data, "generator:harbor-large generator:harbor-small")
    known = {"nights": NIGHTS[data], "generators": generators, "graders": GRADERS}
    for line in COMMANDS.strip().splitlines():
        sets, name, judge, words = (part.strip() for part in line.format(**known).split("|"))
        if sets not in ("all", data) and (sets or data == "drop"):
            continue
        command = [*COMMAND, *words.split(), "--config", f"configs/{judge}.yaml"]
        done = subprocess.run(command, cwd=folder / data, env=environment, capture_output=True, text=True, check=False)  # noqa: S603
        if done.returncode:
            sys.exit(f"{data}: {words} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
        if name:
            (kept / f"{name}.json").write_text(done.stdout)
        print(f"{time.monotonic() - begun:6.0f} s  {data}: {words[:90]}", flush=True)
    for path in (folder / data).glob("lessons/*.json*"):
        shutil.copy(path, kept / f"distill-{path.stem}.json")
    with duckdb.connect(str(folder / data / "leadline.duckdb"), read_only=True) as db:
        names = [row[0] for row in db.execute("SELECT table_name FROM information_schema.tables").fetchall()]
        sources = {kept / name: name for name in names if not name.startswith("_")}
        for path in (folder / data / "lake").glob("[!.]*"):
            files = f"read_parquet('{path}/**/*.parquet', union_by_name = true, hive_partitioning = false)"
            sources[kept / "lake" / path.name] = files
        for path, source in sources.items():
            db.execute(f"COPY (FROM {source}) TO '{path}.parquet'")


def _write(path: Path, rows: Iterable[Mapping[str, object]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def compare(before: Path, after: Path) -> int:
    """Print what is the same and what differs; 1 where anything does."""
    failures = 0
    print(f"{'table':56}{'before':>8}{'after':>8}{'equal':>7}{'different':>11}")
    for data in sorted({p.name for side in (before, after) for p in (side / "kept").iterdir()}):
        (one, said), (other, also) = _read(before / "kept" / data, {}), _read(after / "kept" / data, _backwards())
        for problem in [f"before: {p}" for p in said] + [f"after: {p}" for p in also]:
            failures += 1
            print(f"{data}: {problem}")
        for name in sorted({*one, *other}):
            a, b = one.get(name), other.get(name)
            if a is None or b is None:
                failures += 1
                print(f"{data + '/' + name:56}   only {'after' if a is None else 'before'}")
                continue
            different = {c: why for c in sorted({*a, *b}) if (why := _differs(a.get(c), b.get(c)))}
            failures += len(different)
            rows = [max((len(values) for values in side.values()), default=0) for side in (a, b)]
            equal = len({*a, *b}) - len(different)
            print(f"{data + '/' + name:56}{rows[0]:8,}{rows[1]:8,}{equal:7}{len(different):11}")
            for column, why in different.items():
                print(f"      {column}: {why}")
    print(f"{failures} differences" if failures else "All the same.")
    return int(failures > 0)


def _backwards() -> dict[str, dict[str, str]]:
    """The names declared above, from after to before; values by their column."""
    return {
        "table": {b: a for a, b in TABLES.items()},
        "column": {f"{a.rpartition('.')[0]}.{b}".lstrip("."): a.rpartition(".")[2] for a, b in COLUMNS.items()},
        **{f"value {c}": {b: a for a, b in words.items()} for c, words in VALUES.items()},
    }


def _read(folder: Path, names: Mapping[str, Mapping[str, str]]) -> tuple[dict[str, dict[str, list[Any]]], list[str]]:
    """Columns by table, with old names, ids replaced by what they stand for, rows sorted; ids that were mixed up."""
    tables: dict[str, list[Any]] = {}
    made: dict[str, dict[str, list[Any]]] = {"types of columns": {}}
    for path in sorted(folder.rglob("*.parquet")):
        stem = names.get("table", {}).get(path.stem, path.stem)
        name = str(path.relative_to(folder).with_name(stem))
        read = pq.read_table(path, partitioning=None)
        tables[name] = [_renamed(row, stem, names) for row in read.to_pylist()]
        for field in read.schema:
            type_ = re.sub(r"\w+", lambda word: _old(word[0], "", names), str(field.type))
            made["types of columns"][f"{name}.{_old(field.name, stem, names)}"] = [type_]
    ids: dict[str, str] = {}
    problems = []
    for column, table, columns in IDS:
        found: dict[str, str] = {}
        for row in tables.get(table, []):
            stands = "<" + " ".join(str(_named(row[c], ids)) for c in columns) + ">"
            if row[column] is not None:
                found[row[column]] = min(stands, found.get(row[column], stands))
        problems += [f"several {column} are {name}" for name, n in Counter(found.values()).items() if n > 1]
        ids |= found
    for name, rows in tables.items():
        known = list(rows[0]) if rows else []
        order = sorted(known, key=lambda c: (KEYS.index(c) if c in KEYS else len(KEYS), c))
        placed = sorted((_named(row, ids) for row in rows), key=lambda row: _place(row[c] for c in order))
        made[name] = {c: [row[c] for row in placed] for c in known}
    for path in sorted(folder.glob("*.json")):
        text = path.read_text()
        lines = [line for line in text.splitlines() if line.startswith("{")]
        said = json.loads(text) if text.startswith(("{\n", "[")) else [json.loads(line) for line in lines]
        leaves: dict[str, list[Any]] = {}
        for leaf, value in _leaves(_named(_renamed(said, path.stem, names), ids), ""):
            leaves.setdefault(leaf, []).append(value)
        made[path.name] = leaves
    return made, problems


def _renamed(value: Any, key: str, names: Mapping[str, Mapping[str, str]]) -> Any:
    """A value with the names of before, for columns and for words; clocks silenced, folders cut off paths."""
    match value:
        case dict():
            old = {_old(k, key, names): v for k, v in value.items()}
            return {k: _renamed(v, k, names) for k, v in old.items()}
        case list() | tuple():
            return [_renamed(v, key, names) for v in value]
        case None | bool() | int() | float() if value is None or key not in CLOCKS:
            return value
        case _ if key in CLOCKS:
            return "some"
        case str() if key == "definition":
            return _renamed(json.loads(value), key, names)
        case _:
            words = names.get(f"value {key}", names.get("value *", {}))
            return words.get(str(value), _PATH.sub("", str(value)))


def _old(column: str, place: str, names: Mapping[str, Mapping[str, str]]) -> str:
    """A column's name before; `place` is the table or the column that it is of."""
    columns = names.get("column", {})
    return columns.get(f"{place}.{column}", columns.get(column, column))


def _named(value: Any, ids: Mapping[str, str], *, loose: bool = False) -> Any:
    """A value with ids replaced by what they stand for; in definitions, hashes that are no ids are masked."""
    match value:
        case dict():
            return {_named(k, ids): _named(v, ids, loose=loose or k == "definition") for k, v in value.items()}
        case list():
            return [_named(v, ids, loose=loose) for v in value]
        case str():
            return _ID.sub(lambda found: ids.get(found[0], "<hash>" if loose else found[0]), value)
        case _:
            return value


def _place(values: Iterable[Any]) -> str:
    """What a row is sorted by: floats last, since the last digit of one must not move it."""
    known = list(values)
    return json.dumps([[None if isinstance(v, float) else v for v in known], known], ensure_ascii=False)


def _leaves(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Every value of a JSON document with its path; objects of a list in an order that no id decides."""
    match value:
        case dict() if value:
            for key in sorted(value):
                yield from _leaves(value[key], f"{path}.{key}")
        case list() if value and all(isinstance(v, dict) for v in value):
            for one in sorted(value, key=lambda one: _place([one])):
                yield from _leaves(one, path + "[]")
        case _:
            yield path, value


def _differs(a: list[Any] | None, b: list[Any] | None) -> str:
    """How two columns differ, in a few words; empty where they don't."""
    if a is None or b is None:
        return f"only {'after' if a is None else 'before'}"
    if len(a) != len(b):
        return f"{len(a):,} rows before, {len(b):,} after"
    wrong = [(x, y) for x, y in zip(a, b, strict=True) if not _same(x, y)]
    return (
        f"{len(wrong):,} of {len(a):,} rows, such as {str(wrong[0][0])[:80]} -> {str(wrong[0][1])[:80]}"
        if wrong
        else ""
    )


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, float) and isinstance(b, float):
        return math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-12) or (math.isnan(a) and math.isnan(b))
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(_same, a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(_same(a[k], b[k]) for k in a)
    return type(a) is type(b) and bool(a == b)


def main() -> None:
    """Run one of the two verbs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    one = verbs.add_parser("keep")
    one.add_argument("folder", type=Path)
    one.add_argument("--expertqa", type=Path, required=True)
    two = verbs.add_parser("compare")
    two.add_argument("before", type=Path)
    two.add_argument("after", type=Path)
    asked = parser.parse_args()
    if asked.verb == "keep":
        keep(asked.folder.resolve(), asked.expertqa.resolve())
    else:
        sys.exit(compare(asked.before, asked.after))


if __name__ == "__main__":
    main()
