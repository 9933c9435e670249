"""What a soak does again and again: a trial disturbs a copy of a finished lake by chance and looks at what came of it.

Every trial depends on its seed alone, but for the moments at which processes run. It returns what it found wrong, each
beginning with `lost`, `silent` or `traceback`.
"""

import json
import os
import random
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import yaml

from kit.commands import Running
from kit.killing import SHARD, paid
from kit.root import ROOT
from kit.soak.finished import LAST, LEFT_OUT, SHARES, copied, tables_of
from kit.worlds import FIRST, World, make_traces, make_world, read, unbalanced, write
from tasks.core.errors import BusyError
from tasks.core.schemas import TABLES
from tasks.gates.gates import GateKeeper
from tasks.ingest.ingest import ingest
from tasks.run.build import build_context
from tasks.store.lake import Lake, Part
from tasks.store.storage import Local
from tasks.store.warehouse import LOADED

DAYS = ("--from", FIRST, "--to", LAST + timedelta(days=1))
# When anything happened; a second run happens at another time.
WHEN = {
    t.name: {f.name for f in t.schema if pa.types.is_timestamp(f.type) and f.name != "timestamp"} for t in TABLES.values()
}  # fmt: skip
WITHOUT = {name: when | LEFT_OUT.get(name, set()) for name, when in WHEN.items()}
WITHOUT["sources"] |= {"source", "fingerprint"}  # a file is known by its path and when it was written
Tables = dict[str, list[str]]


@dataclass(frozen=True)
class Verb:
    """A command of a trial, which ends with 0 if nothing disturbs it.

    Attributes:
        prepare: Makes its work ready in a copy of the lake.
    """

    arguments: Callable[[World], Sequence[object]]
    prepare: Callable[[World], object] = lambda world: None


@dataclass
class Bench:
    """What trials share.

    Attributes:
        finished: The lake that each trial copies.
        folder: For the copies.
        plain: Environment of commands without Prefect.
        prefect: Starts a server of Prefect; returns the environment of commands that use it.
    """

    finished: World
    folder: Path
    plain: Mapping[str, str]
    prefect: Callable[[], Mapping[str, str]]
    calm_runs: dict[str, tuple[Tables, float]] = field(default_factory=dict)

    @contextmanager
    def copy(self) -> Iterator[World]:
        """A copy of the lake, removed in the end; its judge is logged and stores a few verdicts at a time."""
        try:
            world = copied(self.finished, self.folder / "nights")
            world.log.unlink()  # what finishing has paid for
            judge = {"kind": "replay", "shares": SHARES}
            (world.out / "replay.yaml").write_text(yaml.safe_dump({**judge, "log": str(world.log)}))
            other = {**judge, "seed": 1, "log": str(world.out / "other.log")}
            (world.out / "other.yaml").write_text(yaml.safe_dump(other))
            edit(world, limits={"part_traces": 4, "shard_requests": SHARD})
            yield world
        finally:
            shutil.rmtree(self.folder / "nights", ignore_errors=True)

    def calm(self, name: str) -> tuple[Tables, float]:
        """The tables after a verb that nothing disturbs, and the seconds it takes."""
        if name not in self.calm_runs:
            with self.copy() as world:
                VERBS[name].prepare(world)
                begun = time.monotonic()
                code, output = self.end(world, name)
                seconds = time.monotonic() - begun
                assert code == 0, output
                self.calm_runs[name] = tables_of(world, WITHOUT), seconds
        return self.calm_runs[name]

    def start(self, world: World, name: str, env: Mapping[str, str] | None = None) -> tuple[Running, Path]:
        """A verb in a process of its own, and where it prints."""
        output = world.out.parent / f"{name}.{random.random()}.output"
        arguments = (*VERBS[name].arguments(world), "--config", world.config)
        return Running(arguments, env or self.plain, output, output, Path.cwd()), output

    def end(self, world: World, name: str, env: Mapping[str, str] | None = None) -> tuple[int, str]:
        """A verb to its end: its exit code and what it printed."""
        run, output = self.start(world, name, env)
        return run.wait(), output.read_text()


def edit(world: World, **settings: object) -> None:
    """Change keys of a world's config."""
    config = yaml.safe_load(world.config.read_text())
    world.config.write_text(yaml.safe_dump({**config, **settings}))


def next_day(world: World) -> None:
    """Logs of one more day."""
    rows = make_traces(5, 9, days=1)
    for row in rows:
        row["trace_id"], row["timestamp"] = f"next-{row['trace_id']}", f"{LAST + timedelta(days=1)}T09:00:00Z"
    write(world.config.parent / "logs" / "b.jsonl", rows)


def labels(world: World) -> None:
    """A file of people's labels."""
    write(world.out / "labels.jsonl", [{"trace_id": f"t{i:04d}", "label": "wrong", "reviewer": "b"} for i in range(6)])


def spoil(world: World) -> None:
    """Damage two parts that can be made again."""
    for name in ("nightly_groundedness", "nightly_triad"):
        Lake(world.lake).parts(TABLES[name])[0].path.write_bytes(b"PAR1")


def other(world: World) -> Path:
    """The file of a second judge."""
    return world.out / "other.yaml"


VERBS = {
    "nightly": Verb(lambda _: ("nightly", *DAYS), next_day),
    "backfill": Verb(lambda w: ("backfill", "--from", FIRST, "--to", LAST, "--judge", other(w))),
    "forget": Verb(lambda _: ("forget", "t0003", "t0007", "t0011")),
    "retention": Verb(lambda _: ("retention",), lambda w: edit(w, retention={"text_days": 1, "explanations_days": 1})),
    "review import": Verb(lambda w: ("review", "import", w.out / "labels.jsonl"), labels),
    "judges promote": Verb(lambda w: ("judges", "promote", other(w), "--reason", "better", "--since", LAST)),
    "check --repair": Verb(lambda _: ("check", "--repair"), spoil),
    "rebuild": Verb(lambda _: ("rebuild",)),
}


def kills(seed: int, bench: Bench) -> tuple[int, list[str]]:
    """A verb is killed one to three times at moments of its work and run again to its end; every fifth under Prefect."""
    rng = random.Random(seed)
    name = rng.choice([*VERBS, "nightly", "backfill"])
    env = bench.prefect() if seed % 5 == 4 and name in {"nightly", "backfill", "retention"} else bench.plain
    expected, seconds = bench.calm(name)
    hits = 0
    with bench.copy() as world:
        VERBS[name].prepare(world)
        for _ in range(rng.randint(1, 3)):
            run, output = bench.start(world, name, env)
            until = time.monotonic() + rng.uniform(0.02, 1) * seconds * (2 if env is not bench.plain else 1)
            while run.poll() is None and time.monotonic() < until:
                time.sleep(0.005)
            if run.poll() is None:
                run.kill()
                run.wait(30)
                hits += 1
            elif run.poll() != 0:
                return hits, [f"lost: {name} ended with {run.poll()}: {output.read_text()[-300:]}"]
        code, printed = bench.end(world, name, env)
        problems = [f"lost: {name} ended with {code}: {printed[-300:]}"] if code else []
        problems += ["traceback"] if "Traceback" in printed else []
        problems += differences(expected, tables_of(world, WITHOUT), name)
        problems += unlike(world) if name not in {"judges promote", "check --repair"} else []  # these publish nothing
        for log in (world.log, world.out / "other.log"):
            times = Counter(paid(log))
            if times.total() - len(times) > hits * SHARD:
                problems.append(f"lost: {name} paid {times.total() - len(times)} requests twice after {hits} kills")
    return hits, problems


def damage(seed: int, bench: Bench) -> tuple[int, list[str]]:
    """A part is damaged, a verb meets it; then the part comes back and a night makes all good."""
    rng = random.Random(seed)
    expected, _ = bench.calm("nightly")
    with bench.copy() as world:
        next_day(world)
        tables = [t for t in TABLES.values() if Lake(world.lake).parts(t)]
        before = tables_of(world, WITHOUT)
        part = rng.choice(Lake(world.lake).parts(tables[seed % len(tables)]))
        whole, seen = part.path.read_bytes(), part.path.stat()
        way, spoiled = spoiled_by(rng, whole)
        part.path.write_bytes(spoiled)
        verb = rng.choice(["rebuild", "nightly", "check --repair"])
        what = f"{part.path.parent.name}/{part.name} {way}, {verb}"
        code, printed = bench.end(world, verb)
        problems = ["traceback: " + what] if "Traceback" in printed else []
        if code and part.name not in printed:
            problems.append(f"silent: {what} ended with {code}, and names another cause: {printed[-300:]}")
        elif code == 0 and verb != "check --repair":
            problems += [f"silent: {what}: {p}" for p in unlike(world, before if verb == "rebuild" else expected)]
        elif code == 0 and part.path.exists() and rows(part) != rows_in(whole, part, world):
            problems.append(f"silent: {what}: the check finds nothing")
        part.path.parent.mkdir(parents=True, exist_ok=True)
        part.path.write_bytes(whole)
        os.utime(part.path, ns=(seen.st_atime_ns, seen.st_mtime_ns))
        code, printed = bench.end(world, "nightly")
        problems += [f"lost: {what}: the night after ended with {code}: {printed[-300:]}"] if code else []
        problems += [f"{p} ({what})" for p in differences(expected, tables_of(world, WITHOUT), "nightly")]
    return 1, problems


def spoiled_by(rng: random.Random, whole: bytes) -> tuple[str, bytes]:
    """A file as rotten storage may give it, and in which way."""
    at = rng.randrange(len(whole))
    flipped = whole[:at] + bytes([whole[at] ^ 1 << rng.randrange(8)]) + whole[at + 1 :]
    ways = {
        "has a flipped bit": flipped,
        "is cut": whole[:at],
        "is empty": b"",
        "has a block of zeros": whole[:at] + bytes(min(512, len(whole) - at)) + whole[at + 512 :],
        "is noise": rng.randbytes(len(whole)),
    }
    way = rng.choice(list(ways))
    return way, ways[way]


def rows(part: Part) -> list[Any] | None:
    """What can be read of a part; None for nothing."""
    try:
        return part.read().to_pylist()
    except Exception:
        return None


def rows_in(data: bytes, part: Part, world: World) -> list[Any] | None:
    """What the part was."""
    path = world.out / "whole.parquet"
    path.write_bytes(data)
    return rows(Part(path.name, part.name, part.partition, Local(path.parent)))


def writers(seed: int, bench: Bench) -> tuple[int, list[str]]:
    """Six verbs at once; then those that found the lake busy once more."""
    rng = random.Random(seed)
    names = ["nightly", "backfill", "review import", "rebuild", "check --repair", "nightly"]
    with bench.copy() as world:
        next_day(world)
        labels(world)
        begun = []
        for name in rng.sample(names, len(names)):
            begun.append((name, *bench.start(world, name)))
            time.sleep(rng.uniform(0, 0.3))
        problems = []
        for name, run, output in begun:
            code, printed = run.wait(), output.read_text()
            if code not in {0, BusyError.exit_code}:
                problems.append(f"lost: {name} ended with {code}: {printed[-300:]}")
            problems += [f"traceback: {name}"] if "Traceback" in printed else []
        for name in ("nightly", "backfill", "review import", "nightly"):
            code, printed = bench.end(world, name)
            problems += [f"lost: {name} ended with {code}: {printed[-300:]}"] if code else []
        found = tables_of(world, WITHOUT)
        if "writers" not in bench.calm_runs:
            bench.calm_runs["writers"] = in_turn(bench), 0.0
        problems += differences(bench.calm_runs["writers"][0], found, "six writers")
        problems += unlike(world)
        for log in (world.log, world.out / "other.log"):
            twice = [key for key, n in Counter(paid(log)).items() if n > 1]
            problems += [f"lost: {len(twice)} requests in {log.name} were paid twice"] if twice else []
    return len(names), problems


def in_turn(bench: Bench) -> Tables:
    """The tables after the verbs of `writers`, one after another."""
    shutil.move(bench.folder / "nights", bench.folder / "aside")
    try:
        with bench.copy() as world:
            next_day(world)
            labels(world)
            for name in ("nightly", "backfill", "review import", "nightly"):
                code, printed = bench.end(world, name)
                assert code == 0, printed
            return tables_of(world, WITHOUT)
    finally:
        shutil.move(bench.folder / "aside", bench.folder / "nights")


def full_disk(seed: int, bench: Bench) -> tuple[int, list[str]]:
    """A night on a disk that is full at some point; then there is room, and the same night goes on.

    The disk is a file system in memory, which only root may mount.
    """
    rng = random.Random(seed)
    expected, _ = bench.calm("nightly")
    disk = bench.folder / "nights"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", disk], check=True)
    try:
        inner = Bench(bench.finished, disk, bench.plain, bench.prefect)
        with inner.copy() as world:
            next_day(world)
            taken = shutil.disk_usage(disk).used // 1024
            room = int(10 ** rng.uniform(1, 3.7))  # from 10 kB to 5 MB
            subprocess.run(["mount", "-o", f"remount,size={taken + room}k", disk], check=True)
            code, printed = inner.end(world, "nightly")
            problems = ["traceback: " + printed[-2000:]] if "Traceback" in printed else []
            if code not in {0, 1}:
                problems.append(f"lost: a disk with {room} kB ended the night with {code}: {printed[-300:]}")
            subprocess.run(["mount", "-o", "remount,size=64m", disk], check=True)
            code, printed = inner.end(world, "nightly")
            problems += [f"lost: the night after ended with {code}: {printed[-300:]}"] if code else []
            problems += differences(expected, tables_of(world, WITHOUT), f"{room} kB")
            problems += unlike(world)
    finally:
        subprocess.run(["umount", disk], check=True)
        disk.rmdir()
    return 1, problems


def clock(seed: int, bench: Bench) -> tuple[int, list[str]]:
    """A night whose clock is hours or days behind that of the night before it, by libfaketime."""
    expected, _ = bench.calm("nightly")
    hours = random.Random(seed).choice([1, 5, 24, 24 * 7])
    with bench.copy() as world:
        next_day(world)
        command = ["faketime", "-f", f"-{hours}h", sys.executable, "-m", "flows", *map(str, ("nightly", *DAYS))]
        command += ["--config", str(world.config)]
        done = subprocess.run(command, env=dict(bench.plain), cwd=ROOT, capture_output=True, text=True, check=False)
        problems = ["traceback"] if "Traceback" in done.stderr else []
        problems += [f"lost: ended with {done.returncode}: {done.stderr[-300:]}"] if done.returncode else []
        problems += differences(expected, tables_of(world, WITHOUT), f"{hours} h back")
        code, printed = bench.end(world, "nightly")  # and by the right clock again
        problems += [f"lost: the night after ended with {code}: {printed[-300:]}"] if code else []
        problems += differences(expected, tables_of(world, WITHOUT), f"{hours} h back, and forward")
    return 1, problems


ROWS = 4000
NOISE = [
    None,
    True,
    0,
    -1,
    1e308,
    2**70,
    "",
    " ",
    "\0",
    "\ud800",
    "é" * 50,
    [],
    {},
    [[]],
    {"": ""},
    "2026-13-01",
    "NaN",
]


def fuzz(seed: int, bench: Bench) -> tuple[int, list[str]]:
    """Rows with random edits: every line that is not blank is stored or refused, and none of them stops the night."""
    rng = random.Random(seed)
    root = bench.folder / "nights"
    root.mkdir()
    try:
        lines = [fuzzed(rng, row) for row in make_traces(seed, ROWS, days=1)]
        (root / "logs").mkdir()
        (root / "logs" / "a.jsonl").write_bytes(b"\n".join(lines))
        world = make_world(root, gates={"max_quarantined_share": 1.0})
        ctx = build_context(world.config, FIRST, FIRST)
        ingest(replace(ctx, gates=GateKeeper(ctx.config.gates, None)))  # without Great Expectations' pages
        lake = Lake(world.lake)
        (row,) = [r for part in lake.parts(TABLES["sources"]) for r in part.read().to_pylist()]
        sent = sum(bool(line.strip()) for line in b"\n".join(lines).split(b"\n"))
        held = {t: sum(p.rows() for p in lake.parts(TABLES[t])) for t in ("traces", "quarantine")}
        kept = {"traces": row["ingested"], "quarantine": row["quarantined"]}
        problems = [] if held == kept else [f"lost: the ledger has {kept}, the tables {held}"]
        total = row["ingested"] + row["quarantined"] + row["duplicates"]
        if not row["rows"] == total == sent:
            problems.append(f"lost: {sent} lines became {total} rows of {row['rows']}")
    finally:
        shutil.rmtree(root, ignore_errors=True)
    return sent, problems


def fuzzed(rng: random.Random, row: Mapping[str, Any]) -> bytes:
    """A line of a log with up to three edits; a third of the lines have none."""
    changed = json.loads(json.dumps(row))
    edits = rng.choice([0, 0, 1, 1, 2, 3])
    for _ in range(edits):
        place: Any = changed
        if rng.random() < 0.3 and isinstance(changed.get("chunks"), list) and changed["chunks"]:
            place = rng.choice(changed["chunks"])
        if isinstance(place, dict):
            key = rng.choice([*place, "feedback", "tags", "unknown"])
            if rng.random() < 0.3:
                place.pop(key, None)
            else:
                place[key] = rng.choice(NOISE)
    data = json.dumps(changed, ensure_ascii=rng.random() < 0.5).encode("utf-8", "surrogatepass")
    for _ in range(rng.choice([0] * 6 + [1, 2]) if edits else 0):
        at = rng.randrange(len(data) + 1)
        data = (
            data[:at]
            + rng.choice([b"", b"\xff", b"\0", b"{", b'"', b"\r", b"\xe2\x80\xa8"])
            + data[at + rng.randint(0, 4) :]
        )
    return data


def differences(expected: Tables, found: Tables, what: str) -> list[str]:
    """A line for each table of the lake with other rows."""
    return [f"lost: {name} differs after {what}" for name, rows in expected.items() if found[name] != rows]


def unlike(world: World, wanted: Tables | None = None) -> list[str]:
    """A line for each table of the published warehouse that has other rows than the lake, or than it should have."""
    problems = [f"lost: rows in and out of {row['source']} differ" for row in unbalanced(world.warehouse)]
    wanted = wanted or tables_of(world, WITHOUT)
    for table in LOADED:
        if table.name not in wanted:
            continue
        left_out = WITHOUT.get(table.name, set())
        found = read(world.warehouse, f"FROM {table.name}")
        kept = sorted(json.dumps({k: v for k, v in r.items() if k not in left_out}, default=str) for r in found)
        if kept != wanted[table.name]:
            problems.append(f"lost: {table.name} of the warehouse differs")
    return problems


CAMPAIGNS: dict[str, Callable[[int, Bench], tuple[int, list[str]]]] = {
    "kills": kills, "damaged parts": damage, "fuzzed rows": fuzz, "writers at once": writers, "full disk": full_disk,
    "clock set back": clock,
}  # fmt: skip
