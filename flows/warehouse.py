"""`leadline sql` and `leadline rebuild`: query the published warehouse, and make it again from the lake."""

import json
import sys
from pathlib import Path
from typing import Annotated

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from flows.options import Config, Output, one_of, optional
from flows.runtime.run import locked
from tasks.core.config import load_nightly
from tasks.core.errors import LeadlineError, UsageError
from tasks.core.paths import CONFIG
from tasks.publish.publish import rebuild as rebuild_warehouse
from tasks.store.lake import Lake
from tasks.store.warehouse import Warehouse, query


def run(config: Path, statement: str | None, file: Path | None, output_format: str, output: Path | None) -> None:
    """Run one statement and write its rows.

    Raises:
        UsageError: No statement or two, or SQL that DuckDB refuses.
    """
    rows = query(load_nightly(config).warehouse, _statement(statement, file))
    if output_format == "parquet" and output is None and sys.stdout.isatty():
        raise UsageError("--format parquet writes bytes. Give --output FILE, or send them to a file.")
    try:
        if output is None:
            _write(rows, output_format)
        else:
            _save(rows, output_format, output)
    except BrokenPipeError:  # the reader has seen enough
        sys.stderr.close()
    except OSError as error:
        raise LeadlineError(f"{output}: can't be written ({error.strerror}). Choose another place.") from error


def _statement(statement: str | None, file: Path | None) -> str:
    if (statement is None) == (file is None):
        raise UsageError("Give a statement or --file FILE, and not both.")
    if file is None:
        return statement or ""
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"--file {file}: can't be read ({error}). Give a readable UTF-8 file.") from None


def _write(rows: pa.Table, output_format: str) -> None:
    if output_format == "table":
        Console(soft_wrap=False).print(as_table(rows))
    elif output_format == "json":
        sys.stdout.write(_json(rows))
    else:
        sink = pa.BufferOutputStream()
        _encode(rows, output_format, sink)
        sys.stdout.buffer.write(sink.getvalue())
    sys.stdout.flush()


def _save(rows: pa.Table, output_format: str, output: Path) -> None:
    if output_format == "table":
        with output.open("w", encoding="utf-8") as out:
            Console(file=out, width=200).print(as_table(rows))
    elif output_format == "json":
        output.write_text(_json(rows), encoding="utf-8")
    else:
        with output.open("wb") as sink:
            _encode(rows, output_format, sink)


def _encode(rows: pa.Table, output_format: str, sink: object) -> None:
    if output_format == "parquet":
        pyarrow.parquet.write_table(rows, sink)
    else:
        pyarrow.csv.write_csv(_flat(rows), sink)


def _flat(rows: pa.Table) -> pa.Table:
    """Nested columns as JSON text, which is all that CSV can hold."""
    for i, column in enumerate(rows.schema):
        if pa.types.is_nested(column.type):
            text = [None if v is None else json.dumps(v, ensure_ascii=False, default=str) for v in rows[i].to_pylist()]
            rows = rows.set_column(i, column.name, pa.array(text, pa.string()))
    return rows


def _json(rows: pa.Table) -> str:
    """One JSON object a line."""
    return "".join(json.dumps(row, ensure_ascii=False, default=str) + "\n" for row in rows.to_pylist())


def as_table(rows: pa.Table) -> Table:
    """Rows for a terminal; texts are shown as they are, never as markup."""
    table = Table(show_edge=False, header_style="bold")
    for field in rows.schema:
        number = pa.types.is_integer(field.type) or pa.types.is_floating(field.type)
        table.add_column(field.name, justify="right" if number else "left", overflow="fold")
    for row in rows.to_pylist():
        table.add_row(*(Text(_cell(v)) for v in row.values()))
    table.caption = f"{rows.num_rows} row{'' if rows.num_rows == 1 else 's'}"
    return table


def _cell(value: object) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, float):
        return f"{value:.4g}" if abs(value) < 1000 else f"{value:,.1f}"
    return str(value)


def sql(
    statement: Annotated[str | None, typer.Argument(help="A SELECT over the tables of docs/tables.md.")] = None,
    file: Annotated[Path | None, optional("Read the statement from a file.", "--file", "-f")] = None,
    output_format: Annotated[str, one_of("table", "csv", "json", "parquet")] = "table",
    output: Output = None,
    config: Config = CONFIG,
) -> None:
    """Query the published warehouse at any hour, also while a nightly runs."""
    run(config, statement, file, output_format, output)


def rebuild(config: Config = CONFIG) -> None:
    """Make the warehouse again from the lake alone."""
    settings = load_nightly(config)
    lake = Lake(settings.lake)
    with locked(lake, "rebuild"):
        loaded = rebuild_warehouse(lake, Warehouse(lake, settings.warehouse, settings.limits.memory_limit))
    Console().print(f"{settings.warehouse}: {loaded} partitions loaded.")
