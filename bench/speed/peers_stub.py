"""Judge 200 traces with a simulated language model of 50 ms latency: Leadline, its peers, and a bare client.

    python -m bench.speed.peers_stub [--rounds 5] [--json FILE]       # seconds, calls, tokens, CPU, memory
    python -m bench.speed.peers_stub --faults [--json FILE]           # 5% of the replies malformed, 5% HTTP 500
    python -m bench.speed.peers_stub --kill [--json FILE]             # SIGKILL halfway, and run again

The stub server and its traces are part of the shared data (`bench.speed.stub`), with which the peers were measured.
Every round runs a night (`bench.speed.night_on_stub`), a bare client that sends the same requests, and a bare client
that sends one request per trace. They run one after another, each in its own process against a server with an empty
prefix cache. Ratios are computed within a round; medians and ranges over the rounds are printed.
"""

import contextlib
import json
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from bench import common
from bench.common import load_average, spread
from bench.speed import stub

# Wall seconds; calls, prompt tokens and CPU milliseconds per trace. From README.md of the shared data, section
# "stub/traces_200.jsonl — the workload on which peers were measured", on the same server and traces, at 50 ms, 2 cores.
PEERS = {
    "Ragas 0.4.3": (30.4, 8, 10_000, 29),
    "DeepEval 4.3.1": (76.6, 13, 8_978, 346),
    "GroUSE 0.4.2": (2.7, 3, 5_464, 10),
    "TruLens 2.16": (9.9, 13, 12_468, 37),
    "RAGChecker 0.1.9": (23.9, 11, 6_996, 32),
    "bare client, one call per trace": (0.22, 1, 1_137, 0.2),
}
LATENCY_MS = 50
FAULTS = {"malformed": 0.05, "error": 0.05}
KILL_SHARD = 100  # requests per write in the killed run; the default of a night is 2,048
ENGINE = ("single pairs", "joint pairs", "grades")
Round = dict[str, Any]


# Children ---------------------------------------------------------------------------------------------------------


def night(folder: Path, server: stub.Stub, *options: str) -> Round:
    """A night on the stub in its own process."""
    found: Round = common.child("bench.speed.night_on_stub", folder, server.url, *options)
    return found


def one_request_each(path: Path) -> Path:
    """Write one request per trace, with all its chunks."""
    schema = {"type": "object", "properties": {"grounded": {"type": "boolean"}}, "required": ["grounded"]}
    reply = {"type": "json_schema", "json_schema": {"name": "reply", "schema": schema}}
    with path.open("w") as out:
        for row in stub.rows():
            text = "\n".join([*row["chunks"], row["question"], row["answer"]])
            body = {"model": "stub", "messages": [{"role": "user", "content": text}], "response_format": reply}
            out.write(json.dumps(body) + "\n")
    return path


# Rounds -----------------------------------------------------------------------------------------------------------


def plain(rounds: int) -> dict[str, Any]:
    """Run nights and bare clients alternately. The first night only records requests and is not counted."""
    load = load_average()
    with tempfile.TemporaryDirectory(prefix="leadline-bench-") as name, stub.running(latency_ms=LATENCY_MS) as server:
        folder = Path(name)
        same, single = folder / "same.jsonl", one_request_each(folder / "single.jsonl")
        night(folder / "recorded", server, "--record", str(same))
        done: list[Round] = []
        for n in range(rounds):
            server.reset()
            found = night(folder / str(n), server)
            found = {k: v for k, v in found.items() if k not in {"claims", "before", "after"}}
            for kind, path in (("bare, the same calls", same), ("bare, one call per trace", single)):
                server.reset()
                found[kind] = common.child("bench.speed.bare_client", path, server.url)
                found[kind] |= {k: server.stats()[v] for k, v in (("calls", "calls"), ("prompt", "prompt_tokens"))}
            found["failed"] = sum(1 for g in found.pop("grades").values() if g["failure"])
            found["judged"] = len(stub.rows())
            done.append(found)
        return {"rounds": done, "load": load}


def with_faults() -> dict[str, Any]:
    """Run a night without faults, a night with faults, and the repair of the latter."""
    load = load_average()
    with tempfile.TemporaryDirectory(prefix="leadline-bench-") as name:
        folder = Path(name)
        with stub.running(latency_ms=LATENCY_MS) as server:
            clean = night(folder / "clean", server)
        with stub.running(latency_ms=LATENCY_MS, **FAULTS) as server:
            faulty = night(folder / "faulty", server)
            injected = server.stats()
            server.configure(**dict.fromkeys(FAULTS, 0))
            server.reset()
            repaired = night(folder / "faulty", server, "--retry-failures")
            repair = server.stats()
    grades = {"before": clean["grades"], "after": repaired["grades"]}
    failed = [key for key, failure in faulty["after"].items() if failure]
    no_grades = [trace for trace, g in faulty["grades"].items() if g["failure"]]
    return {
        "injected": {k: injected[k] for k in ("calls", "http_500", "malformed")},
        "traces": [clean["traces"], faulty["traces"], repaired["traces"]],
        "claims": [len(r["claims"]) for r in (clean, faulty, repaired)],
        "failed requests": len(failed),
        "failures": sorted({f for f in faulty["after"].values() if f}),
        "unjudged claims": sum(1 for status, _, _ in faulty["claims"].values() if status == "unjudged"),
        "labels changed": changed(clean["claims"], faulty["claims"]),
        "misuse left open": sum(
            1
            for claim, (status, _, misused) in faulty["claims"].items()
            if status == "judged" and misused is None and clean["claims"][claim][2] is not None
        ),
        "grades failed": len(no_grades),
        "grades changed": sum(
            1 for trace, g in faulty["grades"].items() if not g["failure"] and g != clean["grades"][trace]
        ),
        "repair calls": repair["calls"],
        "repair expected": len(failed) + len(no_grades) + len(set(repaired["after"]) - set(faulty["after"])),
        "failed after repair": sum(1 for f in repaired["after"].values() if f),
        "differ after repair": differing(clean["claims"], repaired["claims"]) + differing(**grades),
        "seconds": [engine_seconds(r) for r in (clean, faulty, repaired)],
        "load": load,
    }  # fmt: skip


def killed() -> dict[str, Any]:
    """Run an undisturbed night, and a night that is killed halfway through judging and run again."""
    options = ("--shard-requests", str(KILL_SHARD))
    load = load_average()
    with tempfile.TemporaryDirectory(prefix="leadline-bench-") as name:
        folder = Path(name)
        with stub.running(latency_ms=LATENCY_MS) as server:
            whole = night(folder / "whole", server, *options)
            needed = server.stats()["calls"]
        with stub.running(latency_ms=LATENCY_MS) as server:
            half = sum(whole["phases"][p]["calls"] for p in ENGINE[:2]) / 2
            command = [sys.executable, "-m", "bench.speed.night_on_stub", str(folder / "cut"), server.url, *options]
            run = subprocess.Popen(command, stdout=subprocess.DEVNULL, cwd=common.ROOT)
            while run.poll() is None and server.stats()["calls"] < half:
                time.sleep(0.005)
            run.send_signal(signal.SIGKILL)
            status = run.wait(10)
            time.sleep(2 * LATENCY_MS / 1000)  # wait for requests that were in progress
            before = server.stats()
            again = night(folder / "cut", server, *options)
            after = server.stats()
    return {
        "status": status,
        "shard": KILL_SHARD,
        "calls of a whole run": needed,
        "calls before the kill": before["calls"],
        "cancelled by the kill": before["cancelled"],
        "verdicts kept": len(again["before"]),
        "calls after it": after["calls"] - before["calls"],
        "missing": needed - len(again["before"]),
        "paid twice": after["repaid_calls"],
        "traces": [whole["traces"], again["traces"]],
        "differ": differing(whole["claims"], again["claims"]) + differing(whole["grades"], again["grades"]),
        "load": load,
    }


# Pure parts -------------------------------------------------------------------------------------------------------


def changed(before: Mapping[str, Sequence[Any]], after: Mapping[str, Sequence[Any]]) -> int:
    """Count claims `{id: [status, label, misused]}` whose label changed. Claims that are now unjudged don't count."""
    return sum(
        1
        for claim, (status, label, _) in before.items()
        if claim not in after or (after[claim][0] != "unjudged" and list(after[claim][:2]) != [status, label])
    )


def differing(before: Mapping[str, Any], after: Mapping[str, Any]) -> int:
    """Count keys that only one mapping has, or whose values differ."""
    absent = object()
    return sum(1 for key in {*before, *after} if before.get(key, absent) != after.get(key, absent))


def engine_seconds(found: Round) -> float:
    """Wall seconds in judge and grader."""
    return sum(float(found["engine"][phase]["wall"]) for phase in ENGINE)


def per_trace(found: Round, phases: Sequence[str]) -> dict[str, float]:
    """Cost of phases: total seconds, and counts per trace. `fresh` tokens were not in the prefix cache."""
    n = found["judged"]
    counts = {k: sum(found["phases"][p][k] for p in phases) / n for k in ("calls", "prompt", "cached", "written")}
    engine = {k: sum(found["engine"][p][k] for p in phases if p in ENGINE) for k in ("wall", "cpu")}
    return {
        "wall": engine["wall"],
        "cpu": 1000 * engine["cpu"] / n,
        **counts,
        "fresh": counts["prompt"] - counts["cached"],
        "peak": max(found["phases"][p]["peak_mb"] for p in phases),
    }


# Tables -----------------------------------------------------------------------------------------------------------


def show(found: dict[str, Any]) -> None:
    console = Console(width=150)
    rounds = found["rounds"]
    title = f"{rounds[0]['judged']} traces, {LATENCY_MS} ms, median [range] of {len(rounds)} rounds"
    columns = ("", "engine, s", "calls", "prompt", "cached", "prompt less cached", "CPU ms", "peak MB")
    table = common.table(title, columns)
    parts = {
        "single pairs": ENGINE[:1],
        "joint pairs": ENGINE[1:2],
        "grades of relevance": ENGINE[2:],
        "single pairs and grades": (ENGINE[0], ENGINE[2]),
        "all": ENGINE,
    }
    for name, phases in parts.items():
        rows = [per_trace(r, phases) for r in rounds]
        digits = {"wall": 2, "calls": 2, "prompt": 0, "cached": 0, "fresh": 0, "cpu": 2, "peak": 0}
        table.add_row(name, *(spread([r[k] for r in rows], d) for k, d in digits.items()))
    n = rounds[0]["judged"]
    for name in ("bare, the same calls", "bare, one call per trace"):
        shown = (("wall", 1, 2), ("calls", 1 / n, 2), ("prompt", 1 / n, 0), ("cpu", 1000 / n, 2), ("peak_mb", 1, 0))
        cells = [spread([r[name][k] * factor for r in rounds], digits) for k, factor, digits in shown]
        table.add_row(name, *cells[:3], "", "", *cells[3:])
    for name, (wall, calls, prompt, cpu) in PEERS.items():
        table.add_row(f"{name} (published)", f"{wall}", f"{calls}", f"{prompt:,}", "", "", f"{cpu}")
    console.print(table)
    same = "bare, the same calls"
    walls = [engine_seconds(r) / r[same]["wall"] for r in rounds]
    cpus = [sum(r["engine"][p]["cpu"] for p in ENGINE) / r[same]["cpu"] for r in rounds]
    first = [r["phases"]["single pairs"] for r in rounds]
    whole = [1000 * sum(p["cpu"] for name, p in r["phases"].items() if name != "imports") / r["judged"] for r in rounds]
    for line in (
        f"all / bare, the same calls: wall {spread(walls, 2)}×, CPU {spread(cpus, 2)}×",
        f"completion tokens for a claim's single pair: {spread([p['written'] / p['calls'] for p in first], 1)}",
        f"CPU of all stages, imports apart: {spread(whole, 1)} ms per trace",
        f"grades failed: {sum(r['failed'] for r in rounds)}; load average before {found['load']}",
    ):
        console.print(line, highlight=False, markup=False)


def show_facts(title: str, found: Mapping[str, Any]) -> None:
    table = common.table(title, ("", ""))
    for name, value in found.items():
        for part, one in value.items() if isinstance(value, dict) else [("", value)]:
            items = one if isinstance(one, list) else [one]
            text = ", ".join(f"{i:.2f}" if isinstance(i, float) else str(i) for i in items)
            table.add_row(f"{name} {part}".strip(), text)
    Console(width=110).print(table)


def main() -> None:
    parser = common.parser(__doc__, rounds=5)
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--faults", action="store_true")
    what.add_argument("--kill", action="store_true")
    args = parser.parse_args()
    result = with_faults() if args.faults else killed() if args.kill else plain(args.rounds)
    common.save(args.json, result)
    if args.faults:
        show_facts("without faults, with, and repaired", result)
    elif args.kill:
        show_facts("killed halfway and run again", result)
    else:
        show(result)


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        main()
