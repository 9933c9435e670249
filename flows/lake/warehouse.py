"""`leadline sql` and `leadline rebuild`: query the published warehouse, and make it again from the lake."""

import io
import json
import sys
from pathlib import Path
from typing import Annotated

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet
import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from flows.console import print_lines
from flows.options import Config, Output, one_of, optional
from flows.runtime.run import locked
from tasks.core.config import load_nightly
from tasks.core.errors import DamagedError, DataError, LeadlineError, UsageError
from tasks.core.paths import CONFIG
from tasks.core.schemas import TABLES
from tasks.publish.publish import rebuild as rebuild_warehouse
from tasks.store.lake import Lake
from tasks.store.warehouse import Warehouse, query

FORMULA = r"^([=+\-@\t\r＝＋－＠])"
# Characters that steer a terminal or turn its text around.
_STEERING = [*range(9), *range(11, 32), *range(127, 160), *range(0x202A, 0x202F), *range(0x2066, 0x206A)]
UNSEEN = dict.fromkeys(_STEERING, "\ufffd")


def _statement(statement: str | None, file: Path | None) -> str:
    if (statement is None) == (file is None):
        raise UsageError("Give a statement or --file FILE, and not both.")
    if file is None:
        return statement or ""
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"--file {file}: can't be read ({error}). Give a readable UTF-8 file.") from None


def _encoded(rows: pa.Table, output_format: str) -> bytes:
    """The rows as the content of a file."""
    if output_format == "table":
        console = Console(file=io.StringIO(), width=200)
        with console.capture() as shown:
            console.print(as_table(rows))
        return shown.get().encode()
    if output_format == "json":
        return "".join(json.dumps(row, ensure_ascii=False, default=str) + "\n" for row in rows.to_pylist()).encode()
    sink = pa.BufferOutputStream()
    if output_format == "parquet":
        pyarrow.parquet.write_table(rows, sink)
    else:
        pyarrow.csv.write_csv(_flat(rows), sink)
    return bytes(sink.getvalue())


def _flat(rows: pa.Table) -> pa.Table:
    """For CSV: nested columns as JSON text, and a quote before a text that a spreadsheet would compute."""
    for i, column in enumerate(rows.schema):
        if pa.types.is_nested(column.type):
            text = [None if v is None else json.dumps(v, ensure_ascii=False, default=str) for v in rows[i].to_pylist()]
            rows = rows.set_column(i, column.name, pa.array(text, pa.string()))
        elif pa.types.is_string(column.type):
            rows = rows.set_column(i, column.name, pc.replace_substring_regex(rows[i], FORMULA, r"'\1"))
    return rows


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
    return str(value).translate(UNSEEN)


def sql(
    statement: Annotated[str | None, typer.Argument(help="A SELECT over the tables of docs/tables.md.")] = None,
    file: Annotated[Path | None, optional("Read the statement from a file.", "--file", "-f")] = None,
    output_format: Annotated[str, one_of("table", "csv", "json", "parquet")] = "table",
    output: Output = None,
    any_file: Annotated[bool, optional("Let the statement read and write other files, and load extensions.")] = False,
    config: Config = CONFIG,
) -> None:
    """Query the published warehouse at any hour, also while a nightly runs."""
    settings = load_nightly(config)
    rows = query(settings.warehouse, _statement(statement, file), None if any_file else settings.lake)
    if output_format == "parquet" and output is None and sys.stdout.isatty():
        raise UsageError("--format parquet writes bytes. Give --output FILE, or send them to a file.")
    try:
        if output is not None:
            output.write_bytes(_encoded(rows, output_format))
        elif output_format == "table":
            Console(soft_wrap=False).print(as_table(rows))
        else:
            sys.stdout.buffer.write(_encoded(rows, output_format))
        sys.stdout.flush()
    except BrokenPipeError:  # the reader has seen enough
        sys.stderr.close()
    except OSError as error:
        raise LeadlineError(f"{output}: can't be written ({error.strerror}). Choose another place.") from error


def rebuild(config: Config = CONFIG) -> None:
    """Make the warehouse again from the lake alone."""
    settings = load_nightly(config)
    lake = Lake(settings.lake)
    with locked(lake, "rebuild"):
        loaded = rebuild_warehouse(lake, Warehouse(lake, settings.warehouse, settings.limits.memory_limit))
    Console().print(f"{settings.warehouse}: {loaded} partitions loaded.")


def check(
    repair: Annotated[bool, optional("Remove the damaged parts that a run can make again.", "--repair")] = False,
    config: Config = CONFIG,
) -> None:
    """Read every part of the lake against its checksums, and name the damaged ones; exit code 3 where some stay."""
    lake = Lake(load_nightly(config).lake)
    parts = [(table, part) for table in TABLES.values() for part in lake.parts(table)]
    damaged = []
    for table, part in parts:
        try:
            part.check(again=True)
        except DamagedError as error:
            damaged.append((table, part))
            print_lines(str(error))
    removed = [(table, part) for table, part in damaged if table.remade and not table.lost] if repair else []
    if removed:
        with locked(lake, "check"):
            for table, part in removed:
                lake.drop(table, part.name, *part.partition)
        print_lines(f"{len(removed)} were removed. Run {removed[0][0].remade} again to rebuild them.")
    if len(damaged) > len(removed):
        raise DataError(
            f"{len(damaged) - len(removed)} of {len(parts):,} parts are damaged: see above what each needs."
        )
    print_lines(f"{len(parts):,} parts were read; {len(damaged)} were damaged.")
