"""What the command says of mistakes, and its exit codes: 2 usage, 3 data, 4 busy; and what `leadline sql` gives out."""

import csv
import io
import json
import os
import re
import shlex
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from datetime import timedelta
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml
from conftest import Command
from kit.commands import leadline
from kit.worlds import FIRST, World, all_stages, make_traces, make_world, trace, write

from flows.__main__ import LEADLINE, PANELS
from tasks.run.build import build_context


@pytest.fixture
def world(tmp_path: Path) -> World:
    return make_world(tmp_path)


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> World:
    """A world with a warehouse; the tests only read it."""
    root = tmp_path_factory.mktemp("published")
    world = make_world(root)
    write(
        root / "logs" / "a.jsonl", [*make_traces(5, 4, days=1), trace("markup", answer="The [red]client[/red] <b>. Äö")]
    )
    ctx = build_context(world.config, FIRST, FIRST)
    all_stages(ctx)
    ctx.close()
    return world


def change(world: World, **settings: Any) -> None:
    """Overwrite top-level keys of the config."""
    world.config.write_text(yaml.safe_dump(yaml.safe_load(world.config.read_text()) | settings))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"lak": "x"}, ["lak is not a known key", "Did you mean 'lake'"]),
        (
            {"limits": {"shard_request": 3}},
            ["limits.shard_request is not a known key", "Did you mean 'shard_requests'"],
        ),
        ({"limits": {"shard_requests": "many"}}, ["limits.shard_requests is 'many'", "valid integer"]),
        ({"limits": {"shard_requests": 0}}, ["limits.shard_requests is 0", "greater than or equal to 1"]),
        ({"gates": {"max_quarantined_share": 5}}, ["gates.max_quarantined_share is 5", "less than or equal to 1"]),
        ({"sources": [{"kind": "jsnl", "paths": ["x"]}]}, ["kind is 'jsnl'", "Did you mean 'jsonl'"]),
        ({"sources": [{"paths": ["x"]}]}, ["kind is missing", "jsonl"]),
        ({"sources": []}, ["sources", "at least 1 item"]),
    ],
)
@pytest.mark.parametrize("verb", [["nightly"], ["nightly", "--dry-run"]])
def test_a_wrong_config_names_file_key_and_remedy(
    world: World, command: Command, verb: list[str], settings: dict[str, Any], message: list[str]
) -> None:
    change(world, **settings)
    ended = command(*verb, "--config", world.config)
    assert ended.code == 2
    (first, problem) = ended.err.splitlines()
    assert first.startswith("nightly 20")  # the first word, also in a log
    assert problem.startswith(f"leadline: {world.config}: ")
    assert [word for word in message if word not in ended.err] == []
    assert not world.lake.exists()


@pytest.mark.parametrize(
    ("text", "message"),
    [("lake: [", "is not valid YAML at line"), ("- lake", "not a mapping"), ("", "not a mapping")],
)
def test_a_file_that_is_no_config(world: World, command: Command, text: str, message: str) -> None:
    world.config.write_text(text)
    ended = command("nightly", "--config", world.config)
    assert (ended.code, message in ended.err, str(world.config) in ended.err) == (2, True, True)


def test_a_missing_key(world: World, command: Command) -> None:
    settings = yaml.safe_load(world.config.read_text())
    del settings["warehouse"]
    world.config.write_text(yaml.safe_dump(settings))
    ended = command("nightly", "--config", world.config)
    assert (ended.code, f"{world.config}: warehouse is missing. Add it" in ended.err) == (2, True)


@pytest.mark.parametrize("verb", [["nightly"], ["nightly", "--dry-run"], ["rebuild"], ["sql", "SELECT 1"]])
def test_a_missing_config(world: World, command: Command, verb: list[str]) -> None:
    missing = world.config.with_name("oot.yaml")
    ended = command(*verb, "--config", missing)
    assert ended.code == 2
    assert f"{missing} does not exist. Did you mean 'out.yaml'." in ended.err


def test_a_missing_judge(world: World, command: Command) -> None:
    change(world, recipe={"judge": "judges/nobody.yaml"})
    ended = command("nightly", "--config", world.config)
    assert (ended.code, "nobody.yaml does not exist" in ended.err) == (2, True)


def test_an_unknown_judge(world: World, command: Command) -> None:
    (world.out / "replay.yaml").write_text("kind: repley\n")
    ended = command("nightly", "--config", world.config)
    assert ended.code == 2
    assert "replay.yaml: kind is 'repley'" in ended.err
    assert "Did you mean 'replay'" in ended.err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--date", "yesterday"], "yesterday"),
        (["--date", "2026-02-30"], "2026-02-30"),
        (["--from", "01.11.2026", "--to", "2026-11-02"], "01.11.2026"),
        (["--date", "2026-11-01", "--from", "2026-11-01", "--to", "2026-11-02"], "--from/--to exclude each other"),
        (["--from", "2026-11-01"], "Give both"),
        (["--to", "2026-11-01"], "Give both"),
        (["--from", "2026-11-02", "--to", "2026-11-01"], "--from 2026-11-02 is after --to 2026-11-01. Swap them"),
        (["--dates", "2026-11-01"], "--date"),
    ],
)
@pytest.mark.parametrize("dry", [[], ["--dry-run"]])
def test_days_that_make_no_sense(
    world: World, command: Command, dry: list[str], options: list[str], message: str
) -> None:
    ended = command("nightly", "--config", world.config, *options, *dry)
    assert (ended.code, message in ended.err) == (2, True), ended
    assert not world.lake.exists()


def test_sql_before_there_is_a_warehouse(world: World, command: Command) -> None:
    ended = command("sql", "SELECT 1", "--config", world.config)
    assert ended.code == 2
    run = f"Run `leadline nightly -c {world.config}` or `leadline rebuild -c {world.config}` first."
    assert f"{world.warehouse}: there is no warehouse yet. {run}" in ended.err
    assert not world.warehouse.exists()


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("FROM trace_score", "trace_scores"),
        ("SELECT groundednes FROM trace_scores", "groundedness"),
        ("SELEC 1", "syntax error"),
        ("DELETE FROM trace_scores", "read-only"),
    ],
)
def test_sql_that_is_wrong(published: World, command: Command, statement: str, message: str) -> None:
    ended = command("sql", statement, "--config", published.config)
    assert ended.code == 2
    assert message in ended.err
    assert "docs/tables.md" in ended.err


@pytest.mark.parametrize(
    "statement",
    [
        "FROM read_csv('{other}')",
        "FROM read_text('/etc/passwd')",
        "FROM glob('/etc/*')",
        "COPY (SELECT 1) TO '{written}'",
        "COPY (SELECT 1) TO '{lake}/traces/x.parquet'",
        "EXPORT DATABASE '{lake}'",
        "ATTACH '{written}'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SET enable_external_access = true",
        "SELECT 1; COPY (SELECT 1) TO '{lake}/x.csv'",
    ],
)
def test_sql_reads_the_lake_and_no_other_file(
    published: World, command: Command, tmp_path: Path, statement: str
) -> None:
    (tmp_path / "other.csv").write_text("secret\n1\n")
    places = {"other": tmp_path / "other.csv", "written": tmp_path / "written", "lake": published.out / "lake"}
    before = sorted(tmp_path.rglob("*")) + sorted(places["lake"].rglob("*"))
    ended = command("sql", statement.format(**places), "--config", published.config)
    assert (ended.code, ended.out) == (2, "")
    assert "Traceback" not in ended.err
    assert sorted(tmp_path.rglob("*")) + sorted(places["lake"].rglob("*")) == before


def test_sql_reads_any_file_where_it_is_asked_to(published: World, command: Command, tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("app\nshop\n")
    statement = f"SELECT count(*) AS n FROM traces, read_csv('{tmp_path}/people.csv')"
    ended = command("sql", statement, "--any-file", "--format", "csv", "--config", published.config)
    assert (ended.code, ended.out) == (0, '"n"\n5\n')


def test_sql_for_a_spreadsheet_and_a_terminal(published: World, command: Command) -> None:
    """A text that a spreadsheet would compute gets a quote before it; a terminal is not steered. Numbers stay as they are."""
    texts = ["=1+1", "+1", "-2", "@SUM(A1)", "\t=1", "＝1+1", "a=1", ""]
    values = ", ".join(f"('{text}', -1)" for text in texts)
    ended = command("sql", f"FROM (VALUES {values}) AS t(x, n)", "--format", "csv", "--config", published.config)
    rows = list(csv.reader(io.StringIO(ended.out, newline="")))[1:]
    assert rows == [["'" + text if text and text != "a=1" else text, "-1"] for text in texts]
    ended = command("sql", "SELECT 'a' || chr(27) || '[31m' || chr(8238) || 'b' AS x", "--config", published.config)
    assert "a\ufffd[31m\ufffdb" in ended.out


@pytest.mark.parametrize("day", ["9999-12-31", "0001-01-01"])
@pytest.mark.parametrize("verb", [["nightly", "--dry-run"], ["sources", "check", "x.yaml"]])
def test_a_day_that_no_trace_can_be_of(world: World, command: Command, verb: list[str], day: str) -> None:
    ended = command(*verb, "--date", day, "--config", world.config)
    assert (ended.code, f"--date {day}: no traces are of that year." in ended.err) == (2, True)


def test_the_version_and_the_help_page(command: Command) -> None:
    ended = command("--version")
    assert (ended.code, ended.out) == (0, f"{version('leadline')}\n")
    shown = command("--help").out
    assert [shown.index(f"─ {panel} ─") for panel in PANELS]
    assert {verb for own in PANELS.values() for verb in own} == set(LEADLINE.verbs)
    # Without this variable it looks for a shell among its parents, where there may be none.
    env = {**os.environ, "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    run = [sys.executable, "-m", "flows", "--show-completion", "bash"]
    assert "_leadline_completion" in subprocess.run(run, env=env, capture_output=True, text=True, check=True).stdout


def test_forget_wants_ids(published: World, command: Command) -> None:
    ended = command("forget", "", "--config", published.config)
    assert (ended.code, "An id is empty." in ended.err) == (2, True)


@pytest.mark.parametrize("options", [[], ["SELECT 1", "--file", "also.sql"]])
def test_sql_wants_one_statement(published: World, command: Command, options: list[str]) -> None:
    ended = command("sql", *options, "--config", published.config)
    assert (ended.code, "Give a statement or --file FILE, and not both." in ended.err) == (2, True)


def test_sql_from_a_file(published: World, command: Command, tmp_path: Path) -> None:
    (tmp_path / "count.sql").write_text("-- how many\nSELECT count(*) AS n FROM traces\n")
    ended = command("sql", "-f", tmp_path / "count.sql", "--format", "csv", "--config", published.config)
    assert (ended.code, ended.out) == (0, '"n"\n5\n')
    ended = command("sql", "-f", tmp_path / "none.sql", "--config", published.config)
    assert (ended.code, "none.sql" in ended.err) == (2, True)


def test_sql_with_an_unknown_format_or_an_output_that_cannot_be(
    published: World, command: Command, tmp_path: Path
) -> None:
    ended = command("sql", "SELECT 1", "--format", "jsno", "--config", published.config)
    assert (ended.code, "Did you mean 'json'" in ended.err) == (2, True)
    for place, problem in (
        (tmp_path / "no" / "x.csv", f"{tmp_path / 'no'} is not a folder. Create it"),
        (tmp_path, "is a folder. Give a file"),
        (Path("/dev/full"), "/dev/full: can't be written (No space left on device)"),
    ):
        ended = command("sql", "SELECT 1", "-o", place, "--format", "csv", "--config", published.config)
        assert (ended.code, problem in ended.err, "Traceback" in ended.err) == (
            1 if "full" in problem else 2,
            True,
            False,
        )


def test_what_a_terminal_can_t_show_wants_a_file(
    published: World, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    for form in ("parquet", "xlsx"):
        ended = command("sql", "SELECT 1", "--format", form, "--config", published.config)
        assert (ended.code, f"--format {form} is for a file. Add --output FILE" in ended.err) == (2, True)


def test_a_workbook_without_its_library_names_the_remedy(
    published: World, command: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "xlsxwriter", None)
    ended = command("sql", "SELECT 1", "--format", "xlsx", "-o", tmp_path / "x.xlsx", "--config", published.config)
    assert (ended.code, "pip install 'leadline[excel]'" in ended.err) == (2, True)


def test_a_workbook_computes_nothing(published: World, command: Command, tmp_path: Path) -> None:
    """Texts with a formula's first letter get a quote before them, and no cell is a formula or a link."""
    sql = """SELECT '=1+1' AS f, 'https://example.org' AS u, '12' AS t, 7 AS n, 'nan'::DOUBLE AS x,
        TIMESTAMPTZ '2026-11-01 10:00:00+00' AS at, 'x'::BLOB AS b, [1, 2] AS l, INTERVAL 1 DAY AS i"""
    ended = command("sql", sql, "--format", "xlsx", "-o", tmp_path / "x.xlsx", "--config", published.config)
    assert ended.code == 0, ended.err
    with zipfile.ZipFile(tmp_path / "x.xlsx") as book:
        sheet, strings = (book.read(f"xl/{name}.xml").decode() for name in ("worksheets/sheet1", "sharedStrings"))
    assert ("<f>" in sheet, "hyperlink" in sheet) == (False, False)
    twice = ("SELECT 1 AS n, 2 AS N", "--format", "xlsx", "-o", tmp_path / "n.xlsx", "--config", published.config)
    assert command("sql", *twice).code == 0
    texts = re.findall(r"<t[^>]*>([^<]*)</t>", strings)
    assert {"'=1+1", "https://example.org", "12", "78", "[1, 2]"} <= set(texts)  # "x" is 78 in hexadecimal digits


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        (
            "SELECT repeat('a', 32768) AS answer",
            "a cell can hold 32,767 characters, and answer has a longer text. Use csv.",
        ),
        ("FROM range(1048576)", "a sheet can hold 1,048,575 rows, and the result has 1,048,576. Use csv."),
    ],
)
def test_what_no_workbook_holds(published: World, command: Command, sql: str, message: str) -> None:
    ended = command("sql", sql, "--format", "xlsx", "--config", published.config)
    assert (ended.code, ended.out, message in ended.err) == (2, "", True)


STATEMENT = "SELECT trace_id, answer, chunks, 7 AS n, NULL AS nothing FROM traces WHERE trace_id = 'markup'"
ANSWER = "The [red]client[/red] <b>. Äö"


def _check(name: str, data: bytes) -> None:
    """The one row of STATEMENT, as the format holds it."""
    if name == "table":
        text = data.decode()
        assert all(word in text for word in ("trace_id", "markup", ANSWER, "NULL", "1 row")), text
    elif name == "csv":
        (row,) = csv.DictReader(io.StringIO(data.decode()))
        assert (row["trace_id"], row["answer"], row["n"], row["nothing"]) == ("markup", ANSWER, "7", "")
        assert json.loads(row["chunks"])[1]["text"] == trace("x")["chunks"][1]["text"]
    elif name == "json":
        (line,) = data.decode().splitlines()
        row = json.loads(line)
        assert (row["answer"], row["n"], row["nothing"]) == (ANSWER, 7, None)
        assert row["chunks"][0]["chunk_id"] == "1"
    elif name == "xlsx":
        with zipfile.ZipFile(io.BytesIO(data)) as book:
            strings = book.read("xl/sharedStrings.xml").decode()
        assert "The [red]client[/red] &lt;b&gt;. Äö" in strings
    else:
        (row,) = pq.read_table(io.BytesIO(data)).to_pylist()
        assert (row["answer"], row["n"], row["nothing"]) == (ANSWER, 7, None)
        assert row["chunks"][0]["chunk_id"] == "1"


@pytest.mark.parametrize("name", ["table", "csv", "json", "parquet", "xlsx"])
def test_sql_formats_to_standard_output(published: World, no_server: dict[str, str], name: str) -> None:
    ended = leadline("sql", STATEMENT, "--format", name, "--config", published.config, env=no_server)
    assert (ended.returncode, ended.stderr) == (0, b"")
    _check(name, ended.stdout)


@pytest.mark.parametrize("name", ["table", "csv", "json", "parquet", "xlsx"])
def test_sql_formats_to_a_file(published: World, command: Command, tmp_path: Path, name: str) -> None:
    target = tmp_path / "rows"
    ended = command("sql", STATEMENT, "--format", name, "-o", target, "--config", published.config)
    assert (ended.code, ended.out) == (0, "")
    _check(name, target.read_bytes())


HOLDER = """
import sys
from pathlib import Path
from tasks.store.lake import Lake
with Lake(Path(sys.argv[1])).lock("leadline nightly 2026-11-01..2026-11-01, process 4711"):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def holder(world: World) -> Iterator[None]:
    """Another process has the lake."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(world.lake)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"held\n"
    yield
    process.communicate(timeout=30)


@pytest.mark.slow
def test_a_second_nightly_says_who_holds_the_lake(
    world: World, holder: None, command: Command, without_prefect: dict[str, str]
) -> None:
    write(world.config.parent / "logs" / "a.jsonl", [trace("a")])
    message = f"{world.lake}: locked by leadline nightly 2026-11-01..2026-11-01, process 4711."
    ended = leadline("nightly", "--config", world.config, "--date", FIRST, env=without_prefect)
    assert (ended.returncode, message in ended.stderr.decode()) == (4, True), ended
    assert b"Traceback" not in ended.stdout + ended.stderr
    assert command("rebuild", "--config", world.config).code == 4
    looked = command("nightly", "--dry-run", "--config", world.config, "--date", FIRST)  # looking is free
    assert looked.code == 0
    assert not (world.lake / "runs").exists()


@pytest.mark.slow
def test_data_worse_than_the_limits_ends_with_3_and_can_be_queried(
    world: World, command: Command, without_prefect: dict[str, str]
) -> None:
    bad = [{"trace_id": f"b{i}"} for i in range(3)]
    write(world.config.parent / "logs" / "a.jsonl", [*make_traces(1, 7, days=1), *bad])
    ended = leadline("nightly", "--config", world.config, "--date", FIRST, env=without_prefect)
    errors = ended.stderr.decode()
    assert ended.returncode == 3, errors
    assert "Traceback" not in errors + ended.stdout.decode()
    assert "3 of 10 new rows were refused (30.0%; most: missing_field 3)" in errors
    assert "gates.max_quarantined_share = 5.0%" in errors
    assert "No new trace was kept. The refused rows: " in errors
    assert f'a.jsonl:10; read them with leadline sql -c {world.config} "FROM quarantine".' in errors
    dry = command("nightly", "--config", world.config, "--date", FIRST, "--dry-run")
    assert (dry.code, "see above. Correct the source" in dry.err, "FROM quarantine" in dry.err) == (3, True, False)
    places = [line.split()[1:3] for line in dry.err.splitlines() if "a.jsonl " in line]
    assert places == [["8", "missing_field"], ["9", "missing_field"], ["10", "missing_field"]]
    sql = "SELECT trace_id, reason, line FROM quarantine ORDER BY line"
    found = command("sql", sql, "--format", "json", "--config", world.config)
    rows = [json.loads(line) for line in found.out.splitlines()]
    assert rows == [{"trace_id": f"b{i}", "reason": "missing_field", "line": 8 + i} for i in range(3)]
    runs = command(
        "sql", "SELECT status, error, rows_quarantined FROM runs", "--format", "json", "--config", world.config
    )
    (run,) = [json.loads(line) for line in runs.out.splitlines()]
    assert (run["status"], run["rows_quarantined"]) == ("failed", 3)
    assert "3 of 10" in run["error"]
    kept = command("sql", "SELECT count(*) AS n FROM traces", "--format", "csv", "--config", world.config)
    assert kept.out == '"n"\n0\n'


@pytest.mark.slow
def test_the_end_of_a_run_says_what_was_refused_and_how_to_read_it(
    tmp_path: Path, command: Command, without_prefect: dict[str, str]
) -> None:
    root = tmp_path / "it's a folder"
    root.mkdir()
    world = make_world(root, gates={"max_quarantined_share": 0.5})
    change(world, sources=[{"kind": "jsonl", "paths": ["logs/{date}.jsonl"]}])
    answers = make_traces(1, 5, days=1)
    write(root / "logs" / f"{FIRST}.jsonl", [*answers, "{not json", '{"trace_id": "cut', "[1, 2]"])
    dry = leadline("nightly", "--config", world.config, "--date", FIRST, "--dry-run", env=without_prefect)
    ended = leadline("nightly", "--config", world.config, "--date", FIRST, env=without_prefect)
    assert ended.returncode == 0, ended.stderr.decode()
    # As each line begins: an object that breaks off, another one, and a list.
    note = (
        f"3 rows were refused (malformed_json 2, wrong_type 1): logs/{FIRST}.jsonl:6, logs/{FIRST}.jsonl:7, "
        f"logs/{FIRST}.jsonl:8."
    )
    listed = [
        f"logs/{FIRST}.jsonl 6 malformed_json",
        f"logs/{FIRST}.jsonl 7 malformed_json",
        f"logs/{FIRST}.jsonl 8 wrong_type",
    ]
    planned, printed = " ".join(dry.stdout.decode().split()), ended.stdout.decode()
    assert [text for text in (note, *listed) if text not in planned] == []
    assert [text for text in listed if text not in " ".join(printed.split())] == []
    assert "{not json" not in planned + printed
    assert note in " ".join(printed.split())
    (of_night, shown) = [line for line in printed.splitlines() if line.startswith("refused ")]
    reasons = "refused      3 rows: malformed_json 2; wrong_type 1"
    assert of_night.startswith(reasons)
    assert of_night.removeprefix(f"{reasons}: ") == shown.removeprefix("refused").strip()
    program, *args = shlex.split(shown.removeprefix("refused "))
    assert program == "leadline"
    found = command(*args, "--format", "json")
    assert [json.loads(line)["line"] for line in found.out.splitlines()] == [6, 7, 8]
    runs = command("sql", "SELECT rows_quarantined, notes FROM runs", "--format", "json", "-c", world.config)
    assert json.loads(runs.out) == {"rows_quarantined": 3, "notes": [note]}
    page = (world.out / "report" / str(FIRST) / "index.html").read_text()
    assert "3 rows of this night were refused." in page
    as_json = leadline("nightly", "--config", world.config, "--date", FIRST, "--format", "json", env=without_prefect)
    given = json.loads(as_json.stdout)
    (recipe,) = given["recipes"]
    assert (given["first"], given["stages"][0]["computed"]) == (str(FIRST), 0)
    assert (recipe["night"]["date"], sum(group["traces"] for group in recipe["groups"])) == (str(FIRST), 5)
    about = {line["about"]: line["text"] for line in recipe["night"]["opening"]}
    assert about["refused"] == "3 rows: malformed_json 2; wrong_type 1"
    assert about["not watched"].startswith("alerts need 20 scored traces: docs · ")
    again = leadline("nightly", "--config", world.config, "--date", FIRST, env=without_prefect)
    shown = again.stdout.decode()
    assert note not in shown  # this run refused none
    assert of_night in shown  # and the night keeps them in sight


@pytest.mark.slow
def test_a_source_that_is_not_there_ends_with_1(world: World, without_prefect: dict[str, str]) -> None:
    change(world, sources=[{"kind": "jsonl", "paths": ["logs/missing.jsonl"]}])
    ended = leadline("nightly", "--config", world.config, "--date", FIRST + timedelta(days=1), env=without_prefect)
    assert ended.returncode == 1
    assert "logs/missing.jsonl" in ended.stderr.decode()
    assert b"Traceback" not in ended.stdout + ended.stderr


def test_a_verb_runs_in_a_process_that_showed_the_help_page(published: World, command: Command) -> None:
    assert command("--help").code == 0
    ended = command("sql", "--config", published.config, "--format", "csv", "SELECT 1 AS one")
    assert (ended.code, ended.out.split()) == (0, ['"one"', "1"]), ended.err


def test_the_installed_command_starts_from_nothing(published: World) -> None:
    installed = Path(sys.executable).with_name("leadline")
    command = [installed, "sql", "SELECT count(*) AS n FROM traces", "--format", "csv", "--config", published.config]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, '"n"\n5\n', "")
