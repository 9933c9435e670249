"""Write the generated parts of the documentation: `python scripts/generate_docs.py`, or `make docs`.

- `docs/tables.md`: the tables of `tasks/core/schemas/` and the views of `sql/views/`.
- `docs/licenses.md`: the licenses of the packages of `requirements-dev.lock` and `requirements-torch-cpu.lock`.
- `docs/trace.schema.json`: the trace format as JSON Schema.
- `docs/configuration.md`: the tables of keys, each between `<!-- keys of MODEL at PREFIX -->` and `<!-- end -->`.

Everything comes from the code, and a test fails if the pages are out of date. Left out: prose.
"""

import importlib
import importlib.metadata
import inspect
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, get_args

import duckdb
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from tasks.core.paths import sql_dir
from tasks.core.schemas import TABLES, Table
from tasks.sources.reading.trace_schema import trace_json_schema, trace_json_schema_text
from tasks.store.lake import empty
from tasks.store.views import current_views
from tasks.store.warehouse import VIEWED

DOCS = Path(__file__).resolve().parents[1] / "docs"
TABLES_INTRO = """\
<!-- Written by scripts/generate_docs.py from tasks/core/schemas/ and sql/views/. Do not edit; run `make docs`. -->

# Tables and views

The tables and views of the warehouse. [cookbook.md](cookbook.md) has queries for `leadline sql` and notebooks.

- Join `traces`, `claims` and their results by `date` and `trace_id`, and claims by `claim_id`. Days are UTC.
- Results are stored **per recipe**: a changed config or another judge adds new rows and keeps the old ones. To read
  those that count, query the [views `current_…`](#current-rows). To read a table with a recipe's results, select one
  recipe.
- A missing number is null, never 0, and a `…_status` column shows the reason. Means leave it out, and the `n_…` columns
  count what they leave out.
- Columns that were added later are null in older rows.
- The lake stores every table as Parquet, in directories by its partition columns. `traces`, `pairs`, `verdicts`,
  `relevance`, `grades` and `ask_replies` are not copied into the warehouse; they are views of the lake's files.
"""

LICENSES_INTRO = """\
<!-- Written by scripts/generate_docs.py from the installed packages. Do not edit; run `make docs`. -->

# Licenses

What each locked package states about its license. `make sbom` lists the same packages with their hashes, as CycloneDX.
Not listed are packages for other systems and later Pythons, the CUDA libraries of `requirements-torch.lock` (NVIDIA's
own licenses), and the packages of the lock files for GPUs, vLLM and servers of traces, which you install yourself.
Weights of models have licenses of their own: [configuration.md](configuration.md#llm).
"""
LICENSE_LINE = 60  # longest license in characters; some packages put the whole text in this field
PIN = re.compile(r"^([\w.-]+)==(\S+) \\$", re.MULTILINE)  # without pins for other systems and Python versions

DAMAGE_INTRO = """\
## Damaged parts

If a part of the lake is unreadable, the error names the file and the fix. Remove a part that can be rebuilt, and
run the listed command. Restore other parts from a [backup](operations.md#backup), or accept the listed loss.
"""

CURRENT_INTRO = """\
## Current rows

Each `current_…` view holds the rows that count, with the columns of the table or view that they are from. For each
night and application that is one recipe, as [`main_recipes`](#main_recipes) lists it: the config's main recipe
(`recipe`, or the first of `recipes`) by the judge that counts for that night. After a
[promotion](upgrading.md#promote), earlier nights keep the recipe of their judge, so do not draw one line across two
values of `judge_version`. Other recipes of the config are in the tables only.
"""

# Descriptions of keys and view columns that have none in the code.
MEANINGS = {
    "chunks.position": "Position in that order, from 0.",
    "claim_details.deciding_chunk_text": "Text of the deciding chunk.",
    "pair_verdicts.chunk_ids": "Chunks in the evidence, best first for joint pairs.",
    "reviewed_claims.n_reviewers": "People who labeled it, including an adjudicator.",
    "reviewed_claims.random": "Whether any of them labeled it in a random draw.",
    "reviewed_claims.outcome": "`labeled`, `tied`, `cant_tell` or `not_a_claim`.",
    "reviewed_claims.people": "People's label; null unless labeled.",
    "reviewed_claims.people_misused": "Whether people call it misused; null if not stated.",
    "reviewed_claims.judge_status": "`status` of `claim_results`.",
    "reviewed_claims.judge": "The judge's label; null unless judged.",
    "reviewed_claims.judge_misused": "Whether the judge calls it misused.",
    "reviewed_claims.to_check": "Whether the judge supports it and it shows a failure pattern.",
    "reviewed_claims.adjudicated": "Whether an adjudicator's label decides.",
    "reviewed_claims.disputed": "Whether its reviewers gave different labels, and no adjudicator has settled it.",
    "reviewed_claims.votes": "The latest label of each reviewer, then the adjudicator's.",
    "reviewed_grades.outcome": "`graded`, `na` (does not apply) or `tied`.",
    "reviewed_grades.value": "The grade; null unless graded.",
    "reviewed_grades.n_reviewers": "People who gave it, including an adjudicator.",
    "reviewed_grades.random": "Whether any of them graded the answer in a random draw.",
    "reviewed_grades.adjudicated": "Whether an adjudicator's grade decides.",
    "reviewed_grades.disputed": "Whether its reviewers gave different grades, and no adjudicator has settled it.",
    "reviewed_grades.votes": "The latest grade of each reviewer, then the adjudicator's.",
    "question_repeats.question": "The question, as worded in its first trace by id.",
    "question_repeats.n": "Traces of this question.",
    "question_repeats.n_scored": "Of these, traces with a groundedness score.",
    "question_repeats.groundedness_mean": "Mean groundedness_score of its scored traces.",
    "question_repeats.groundedness_spread": "Their standard deviation; null with fewer than two.",
    "question_repeats.groundedness_range": "Highest − lowest.",
    "question_repeats.faithfulness_mean": "Mean faithfulness of its scored traces.",
    "question_repeats.faithfulness_spread": "Their standard deviation; null with fewer than two.",
    "question_repeats.faithfulness_range": "Highest − lowest.",
    "trace_numbers.question": "`question_id`, or `trace_id` where there is none.",
    "trace_numbers.number": "The score (`groundedness` is groundedness_score), or `grade_` and the grade.",
    "trace_numbers.value": "The score or grade; a number that is n/a has no row.",
    "Nightly.warehouse": "The DuckDB file that people query.",
    "Nightly.sources": "Sources of traces: paths of source files, or inline sources.",
    "Recipe.name": "A name for people. Renaming changes no number and starts no new recipe.",
    "Recipe.scoring": "Parameters of the groundedness score.",
    "Triad.context_relevance": "The best chunk must be at least this relevant to the question, else `retrieval`.",
    "Triad.groundedness": "The answer must score at least this, else `generator`.",
    "Triad.answer_relevance": "The answer must be at least this relevant to the question, else `prompt`.",
    "Gates.max_question_chars": "A trace with a longer question is refused.",
    "Gates.max_answer_chars": "A trace with a longer answer is refused.",
    "Gates.max_chunk_chars": "A trace with a longer chunk is refused.",
    "Gates.max_chunks": "A trace with more chunks is refused.",
    "Coefficients.cosine": "Cosine of claim and evidence, in [−1, 1].",
    "Coefficients.overlap": "Share of the claim's words (without common words) in the evidence.",
    "Coefficients.bigrams": "Share of the claim's pairs of adjacent words in the evidence.",
    "Coefficients.missing_numbers": "Numbers of the claim that the evidence lacks, up to 3.",
    "Coefficients.missing_names": "Names of the claim that the evidence lacks, up to 3.",
    "Shares.supported": "Share of verdicts with this label.",
    "Shares.partially_supported": "Share of verdicts with this label.",
    "Shares.unsupported": "Share of verdicts with this label.",
    "Shares.contradicted": "Share of verdicts with this label.",
    "Shares.abstained": "Share of abstained verdicts.",
    "Shares.failure": "Share of requests that end without a verdict.",
}
_BLOCK = re.compile(r"<!-- keys of (?P<model>[\w.]+)(?: at (?P<at>[\w.]+))? -->\n(?P<rows>.*?)<!-- end -->", re.DOTALL)


def pages() -> dict[Path, str]:
    """Every generated file with its content."""
    configuration = DOCS / "configuration.md"
    return {
        DOCS / "tables.md": tables_page(),
        DOCS / "licenses.md": licenses_page(),
        DOCS / "trace.schema.json": trace_json_schema_text(),
        configuration: configuration_page(configuration.read_text(encoding="utf-8")),
    }


def licenses_page() -> str:
    """The text of `docs/licenses.md`."""
    runtime, tools, torch = (
        dict(PIN.findall((DOCS.parent / f"requirements{name}.lock").read_text(encoding="utf-8")))
        for name in ("", "-dev", "-torch-cpu")
    )
    rows = [
        f"| {name} | {version} | {_license(name)} | {'tests' if name in tools.keys() - runtime.keys() else 'all'} |"
        for name, version in sorted((tools | torch).items())
    ]
    return "\n".join([LICENSES_INTRO, "| package | version | license | used by |", "|---|---|---|---|", *rows, ""])


def _license(name: str) -> str:
    """License of an installed package: an SPDX expression, else one line of text, else the classifiers."""
    found = importlib.metadata.metadata(name)
    classes = [c.rpartition(" :: ")[2] for c in found.get_all("Classifier", []) if c.startswith("License :: ")]
    text = found.get("License", "")
    stated = found.get("License-Expression") or (text if 0 < len(text) <= LICENSE_LINE and "\n" not in text else "")
    return stated or ", ".join(c for c in classes if c != "OSI Approved") or "see its license file"


def tables_page() -> str:
    """The text of `docs/tables.md`."""
    names = sorted(p.stem for p in (sql_dir() / "views").glob("*.sql"))
    contents = [
        "| relation | one row is |",
        "|---|---|",
        *(f"| [`{t.name}`](#{t.name}) | {t.grain} |" for t in TABLES.values()),
        *(f"| [`{name}`](#{name}), a view | {view_header(name)['grain']} |" for name in names),
        f"| [`current_…`](#current-rows), {len(current_views())} views | one row that counts of a table with results |",
    ]
    parts = [TABLES_INTRO, "\n".join(contents) + "\n"]
    with duckdb.connect(":memory:") as connection:
        for table in TABLES.values():
            connection.register("_empty", empty(table))
            connection.execute(f"CREATE TABLE {table.name} AS FROM _empty")
        parts += ["## Tables\n", *(_table(connection, t) for t in TABLES.values())]
        for name in names:
            connection.execute(f"CREATE VIEW {name} AS {_view_sql(name)}")
        parts += ["## Views\n", *(_view(connection, name) for name in names)]
    parts += [CURRENT_INTRO, "| view | rows of |", "|---|---|"]
    parts += [f"| `{view}` | [`{of}`](#{of}) |" for view, of in current_views().items()]
    parts.append("")
    parts += [DAMAGE_INTRO, "| table | made again by | from | lost with a part |", "|---|---|---|---|"]
    parts += [_damage(t) for t in TABLES.values()]
    return "\n".join(parts) + "\n"


def _damage(table: Table) -> str:
    """How a damaged table is recomputed, from what, and what is lost."""
    origin = [f"[`{name}`](#{name})" for name in table.made_of] + ["a model, **paid**"] * table.paid
    made = table.remade.rstrip(",") or "nothing"
    return f"| [`{table.name}`](#{table.name}) | {made} | {', '.join(origin)} | {table.lost} |"


def view_header(name: str) -> dict[str, str]:
    """`grain` and `inputs` from the header of a view's file."""
    return dict(re.findall(r"^-- (grain|inputs): (.+)$", _view_sql(name), re.MULTILINE))


def configuration_page(text: str) -> str:
    """The text of `docs/configuration.md` with updated tables of keys."""

    def block(match: re.Match[str]) -> str:
        begin = match[0][: match.start("rows") - match.start()]
        return begin + keys_table(model_named(match["model"]), match["at"] or "") + "<!-- end -->"

    return _BLOCK.sub(block, text)


def models_in(text: str) -> set[type[BaseModel]]:
    """The config models whose keys a page lists."""
    return {model_named(match["model"]) for match in _BLOCK.finditer(text)}


def model_named(path: str) -> type[BaseModel]:
    """A config model by its dotted path."""
    module, name = path.rsplit(".", 1)
    model: type[BaseModel] = getattr(importlib.import_module(module), name)
    assert issubclass(model, BaseModel), path  # noqa: S101 - a mistake in the page
    return model


def nested(model: type[BaseModel]) -> Iterator[type[BaseModel]]:
    """A model and the models of its keys."""
    yield model
    for field in model.model_fields.values():
        for part in (field.annotation, *get_args(field.annotation)):  # `X | None` and `list[X]` contain X
            if inspect.isclass(part) and issubclass(part, BaseModel):
                yield from nested(part)


def keys_table(model: type[BaseModel], at: str = "") -> str:
    """A Markdown table of a model's keys."""
    rows = ["| key | value | default | meaning |", "|---|---|---|---|"]
    schema = model.model_json_schema()
    for name, field in model.model_fields.items():
        key = f"{at}.{name}" if at else name
        cells = (f"`{key}`", _value(schema["properties"][name], schema), _default(field), meaning(model, name))
        rows.append("| " + " | ".join(c.replace("|", "\\|") for c in cells) + " |")
    return "\n".join(rows) + "\n"


def meaning(model: type[BaseModel], name: str) -> str:
    """Description of a key, from the model's docstring or from `MEANINGS`; empty if there is none."""
    if text := attributes(model).get(name) or MEANINGS.get(f"{model.__name__}.{name}"):
        return text
    field = model.model_fields[name]
    if inspect.isclass(field.annotation) and issubclass(field.annotation, BaseModel):
        return _plain((inspect.getdoc(field.annotation) or "").split("\n\n")[0])
    return "Picks the kind." if name == "kind" else ""


def attributes(model: type[BaseModel]) -> dict[str, str]:
    """Descriptions by name, from the `Attributes:` sections of a model and its base classes."""
    found: dict[str, str] = {}
    for cls in reversed(model.__mro__):
        section = re.search(r"^Attributes:\n((?: {4}.*\n?|\n)+)", inspect.cleandoc(cls.__doc__ or ""), re.MULTILINE)
        for name, text in re.findall(r"^ {4}(\w+): (.*(?:\n {8,}.*)*)", section[1] if section else "", re.MULTILINE):
            if name in model.model_fields:
                found[name] = _plain(text)
    return found


def _plain(text: str) -> str:
    """Join to one line, and remove references that only make sense in the code."""
    text = re.sub(r" \((?:METHODS|docs/methods)[^)]*\)", "", " ".join(text.split()))
    return re.sub(r"\bNone\b", "`null`", text)


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True)
    if isinstance(value, BaseModel):
        return ""
    if value is None:
        return "`null`"
    return f"`{value}`" if isinstance(value, str | Path) else f"`{json.dumps(value, ensure_ascii=False)}`"


def _value(schema: Mapping[str, Any], root: Mapping[str, Any]) -> str:  # noqa: PLR0911 (one case per type)
    """Describe a JSON schema in words."""
    if "$ref" in schema:
        target = root["$defs"][schema["$ref"].rsplit("/", 1)[1]]
        return "keys below" if target.get("type") == "object" else _value(target, root)
    if options := schema.get("anyOf"):
        return " or ".join(_value(o, root) for o in options)
    if "const" in schema or "enum" in schema:
        return ", ".join(f"`{v}`" for v in schema.get("enum", [schema.get("const")]))
    match schema.get("type"):
        case "array" if "prefixItems" in schema:
            return f"[{'; '.join(_value(s, root) for s in schema['prefixItems'])}]"
        case "array":
            return f"list of {_value(schema['items'], root)}"
        case "object":
            return "mapping"
        case "integer" | "number" as kind:
            return ("whole number" if kind == "integer" else "number") + _range(schema)
        case "string" if schema.get("format") == "path":
            return "path"
        case "string" if "pattern" in schema:
            return f"text like `{schema['pattern']}`"
        case "string":
            return "text"
        case "null":
            return "`null`"
        case other:
            return str(other or "anything")


def _range(schema: Mapping[str, Any]) -> str:
    low, high, above = (schema.get(k) for k in ("minimum", "maximum", "exclusiveMinimum"))
    if low is not None and high is not None:
        return f", {low:g} to {high:g}"
    if above is not None:
        return f" above {above:g}"
    return "" if low is None else f", at least {low:g}"


def _table(connection: duckdb.DuckDBPyConnection, table: Table) -> str:
    docs = {f.name: (f.metadata or {}).get(b"doc", b"").decode() for f in table.schema}
    required = {f.name for f in table.schema if not f.nullable}
    where = "A view of the lake. " if table in VIEWED else ""
    layout = f"Partitioned by {', '.join(f'`{c}`' for c in table.partition)}." if table.partition else ""
    rows = [
        f"| `{name}` | `{type_}` | {'' if name in required else 'null'} | {docs[name]} |"
        for name, type_ in _described(connection, table.name)
    ]
    head = [f"### {table.name}\n", f"One row is {table.grain}. {where}{layout}".rstrip() + "\n"]
    return "\n".join([*head, "| column | type | | meaning |", "|---|---|---|---|", *rows, ""])


def _view(connection: duckdb.DuckDBPyConnection, name: str) -> str:
    header = view_header(name)
    inputs = [i.strip() for i in header["inputs"].split(",")]
    docs = {n: p["description"] for n, p in trace_json_schema()["$defs"]["Chunk"]["properties"].items()}
    for table in reversed(inputs):
        docs |= {f.name: (f.metadata or {})[b"doc"].decode() for f in TABLES[table].schema}
    docs |= {key.removeprefix(f"{name}."): text for key, text in MEANINGS.items() if key.startswith(f"{name}.")}
    rows = [f"| `{column}` | `{type_}` | {docs.get(column, '')} |" for column, type_ in _described(connection, name)]
    made = ", ".join(f"[`{i}`](#{i})" for i in inputs)
    head = [f"### {name}\n", f"One row is {header['grain']}. Made from {made}.\n"]
    return "\n".join([*head, "| column | type | meaning |", "|---|---|---|", *rows, ""])


def _described(connection: duckdb.DuckDBPyConnection, relation: str) -> list[tuple[str, str]]:
    """Column names and DuckDB types."""
    return [(row[0], row[1]) for row in connection.execute(f"DESCRIBE {relation}").fetchall()]


def _view_sql(name: str) -> str:
    return (sql_dir() / "views" / f"{name}.sql").read_text(encoding="utf-8")


def main() -> None:
    """Write every page that has changed."""
    for path, text in pages().items():
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
            print(f"wrote {path.relative_to(DOCS.parent)}")


if __name__ == "__main__":
    main()
