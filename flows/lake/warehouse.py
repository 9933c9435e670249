"""`leadline sql` and `leadline rebuild`: query the published warehouse, and rebuild it from the lake."""

import io
import json
import re
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet
import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from flows.console import emit, print_lines
from flows.options import Config, Output, one_of, optional
from flows.runtime.run import locked
from tasks.core.config import load_nightly
from tasks.core.errors import DamagedError, DataError, UsageError
from tasks.core.paths import CONFIG
from tasks.core.schemas import TABLES
from tasks.publish.publish import rebuild as rebuild_warehouse
from tasks.review.files import FORMULAS
from tasks.store.lake import Lake
from tasks.store.warehouse import Warehouse, query

SHEET_ROWS, CELL = 1_048_576, 32_767  # limits of Excel: rows per sheet, characters per cell
FORMULA = f"^([{re.escape(FORMULAS)}])"
# Control characters of terminals, and characters that change the direction of text.
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


def _parquet(rows: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    pyarrow.parquet.write_table(rows, sink)
    return bytes(sink.getvalue())


def _csv(rows: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    pyarrow.csv.write_csv(_flat(rows), sink)
    return bytes(sink.getvalue())


def _xlsx(rows: pa.Table) -> bytes:
    """Write a workbook with one sheet. Texts never become formulas or links."""
    try:
        import xlsxwriter  # noqa: PLC0415 - an optional dependency
    except ImportError:
        remedy = "Install it with `pip install 'leadline[excel]'`, or use --format csv"
        raise UsageError(f"--format xlsx: the package xlsxwriter is not installed. {remedy}.") from None
    if rows.num_rows >= SHEET_ROWS:
        most = f"a sheet can hold {SHEET_ROWS - 1:,} rows"
        raise UsageError(f"--format xlsx: {most}, and the result has {rows.num_rows:,}. Use csv.")
    seen: Counter[str] = Counter()
    names = []
    for name in rows.column_names:  # column names of a sheet's table must be unique, ignoring case
        seen[name.casefold()] += 1
        names.append(name if seen[name.casefold()] == 1 else f"{name}_{seen[name.casefold()]}")
    flat = pl.DataFrame(_flat(rows).rename_columns(names)).fill_nan(None)
    zoned = [name for name, kind in flat.schema.items() if isinstance(kind, pl.Datetime) and kind.time_zone]
    texts = flat.select(pl.col(pl.String).str.len_chars().max())
    if long := [column.name for column in texts if column.drop_nulls().gt(CELL).any()]:
        most = f"a cell can hold {CELL:,} characters"
        raise UsageError(f"--format xlsx: {most}, and {long[0]} has a longer text. Use csv.")
    data = io.BytesIO()
    safe = {"strings_to_formulas": False, "strings_to_urls": False, "nan_inf_to_errors": True}
    with xlsxwriter.Workbook(data, {"in_memory": True, **safe}) as book:
        flat.with_columns(pl.col(zoned).dt.replace_time_zone(None)).write_excel(book, autofit=True)
    return data.getvalue()


def _flat(rows: pa.Table) -> pa.Table:
    """Convert for spreadsheets: numbers, days and booleans stay, the rest becomes text. Guard formulas with a quote."""
    for i, column in enumerate(rows.schema):
        if not any(holds(column.type) for holds in PLAIN):
            text = [None if v is None else _text(v) for v in rows[i].to_pylist()]
            rows = rows.set_column(i, column.name, pa.array(text, pa.string()))
        if pa.types.is_string(rows.schema[i].type):
            rows = rows.set_column(i, column.name, pc.replace_substring_regex(rows[i], FORMULA, r"'\1"))
    return rows


def _text(value: object) -> str:
    """Format a value as text: nested values as JSON, bytes as hexadecimal digits."""
    if isinstance(value, list | dict):
        return json.dumps(value, ensure_ascii=False, default=str)
    return value.hex() if isinstance(value, bytes) else str(value)


PLAIN = (
    pa.types.is_string, pa.types.is_boolean, pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal,
    pa.types.is_date, pa.types.is_timestamp, pa.types.is_time, pa.types.is_null,
)  # fmt: skip
MAKERS: dict[str, Callable[[pa.Table], bytes]] = {"csv": _csv, "parquet": _parquet, "xlsx": _xlsx}


def as_table(rows: pa.Table) -> Table:
    """Make a table for the terminal. Texts are never interpreted as markup."""
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
    any_file: Annotated[
        bool, optional("Let the statement read and write other files, and load extensions.", "--any-file")
    ] = False,
    form: Annotated[str, one_of("table", "json", *MAKERS)] = "table",
    output: Output = None,
    config: Config = CONFIG,
) -> None:
    """Query the published warehouse, also while a nightly runs.

    Example: leadline sql "FROM nightly_groundedness" --format csv -o result.csv
    """
    settings = load_nightly(config)
    rows = query(settings.warehouse, _statement(statement, file), None if any_file else settings.lake)

    def draw(out: Console) -> None:
        out.print(as_table(rows), width=Console().width if output is None else None)  # long texts wrap

    makers = {name: partial(make, rows) for name, make in MAKERS.items()}
    emit(form, output, draw, rows.to_pylist() if form == "json" else (), makers)


def rebuild(config: Config = CONFIG) -> None:
    """Rebuild the warehouse from the lake.

    Example: leadline rebuild
    """
    settings = load_nightly(config)
    lake = Lake(settings.lake)
    with locked(lake, "rebuild"):
        loaded = rebuild_warehouse(lake, Warehouse(lake, settings.warehouse, settings.limits.memory_limit))
    Console().print(f"{settings.warehouse}: {loaded} partitions loaded.")


def check(
    repair: Annotated[bool, optional("Remove the damaged parts that a run can recompute.", "--repair")] = False,
    config: Config = CONFIG,
) -> None:
    """Read every part of the lake against its checksums, and list the damaged ones; exit code 3 if any remain.

    Example: leadline check --repair
    """
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
