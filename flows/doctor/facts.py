"""Collect the facts for `checks.py`: about this machine, the config and the lake.

Nothing is written and no model is loaded. For torch, vLLM and Prefect, only the installed version is read. If a fact
can't be found, only its own check fails.
"""

import os
import platform
import shutil
import subprocess
import urllib.request
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from http.client import HTTPException
from importlib.metadata import PackageNotFoundError, metadata, requires, version
from pathlib import Path

from flows.doctor import checks
from flows.doctor.checks import Disk, Night, Package, Result
from flows.runtime.temporary_server import configured_url
from tasks.core.config import Nightly, load_nightly
from tasks.core.errors import ConfigError, LeadlineError, UsageError
from tasks.core.paths import CONFIG, SHIPPED
from tasks.core.schemas import RUNS, TRACES
from tasks.ingest import check as sources
from tasks.run.build import build_contexts, source_of
from tasks.run.cascade import name as judges_name
from tasks.run.context import Context
from tasks.run.record import BACKFILL
from tasks.store import backup
from tasks.store.key_index import damaged_indexes
from tasks.store.lake import PENDING, Lake

ENGINE = "vllm_offline"
SEEN = 1_000  # traces to read from a source
WITHIN_S = 5  # timeout in seconds for Prefect's server and the GPU's driver


@dataclass
class Findings:
    """Collected results.

    Attributes:
        wrong_config: Whether the config can't be used.
    """

    results: list[Result] = field(default_factory=list)
    wrong_config: bool = False

    def add(self, name: str, check: Callable[[], Result]) -> None:
        """Run a check and add its result. An error becomes a problem, so that other checks can continue."""
        try:
            self.results.append(check())
        except LeadlineError as error:
            self.results.append(Result(name, "problem", str(error)))
        except OSError as error:
            self.results.append(unreadable(name, error))


def unreadable(name: str, error: OSError) -> Result:
    """Result of a check whose facts can't be read."""
    return Result(name, "problem", f"can't be checked ({error})", "Grant access, or repair it.")


def examine(path: Path, now: datetime) -> Findings:
    """Run all checks in order.

    Args:
        path: The nightly config's file.
    """
    found = Findings()
    found.add("python", _python)
    settings, contexts, failure = _config(path, now)
    found.wrong_config = isinstance(failure, UsageError)
    local = sorted(set(_local(contexts))) if contexts else None
    found.add("gpu", lambda: checks.gpu(local, _gpus(), _installed("vllm")))
    found.add("vllm", lambda: checks.vllm(local, _installed("vllm")))
    found.add("prefect", _prefect)
    recipes = [f"recipe {ctx.settings.name}, judge {judges_name(ctx.judges)}" for ctx in contexts]
    found.add("config", lambda: checks.config(path, recipes, str(failure) if failure else None))
    lake = Lake(settings.lake) if settings else None
    found.add("clock", lambda: checks.clock(now, _seen(lake)))
    if settings is None or lake is None:
        found.results += map(checks.unchecked, ("disk", "source", "lake", "index", "last night"))
        return found
    try:
        disks = list(_disks(settings))
    except OSError as error:
        found.results.append(unreadable("disk", error))
        disks = []
    for disk in disks:
        found.add("disk", partial(checks.disk, disk))
    for given in settings.sources:
        found.add("source", partial(_source, given, settings, path, now))
    found.add("lake", lambda: _lake(lake, now))
    found.add("index", lambda: _index(lake))
    found.add("last night", lambda: checks.last_night(*_nights(lake), now))
    return found


def _python() -> Result:
    from packaging.requirements import Requirement  # noqa: PLC0415 - only here
    from packaging.specifiers import SpecifierSet  # noqa: PLC0415 - only here

    packages = []
    for text in requires("leadline") or ():
        requirement = Requirement(text)
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
            installed = _installed(requirement.name)
            fits = installed is not None and requirement.specifier.contains(installed, prereleases=True)
            packages.append(Package(f"{requirement.name}{requirement.specifier}", installed, fits))
    ours, wanted = platform.python_version(), str(metadata("leadline")["Requires-Python"])
    return checks.python(ours, wanted, SpecifierSet(wanted).contains(ours, prereleases=True), packages)


def _installed(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _config(path: Path, now: datetime) -> tuple[Nightly | None, tuple[Context, ...], LeadlineError | None]:
    """Load the config and the contexts of a night; returns them with the first error."""
    settings = None
    try:
        settings = load_nightly(path)
        night = now.date() - timedelta(days=1)
        return settings, build_contexts(path, night, night, today=now.date()), None
    except LeadlineError as error:
        return settings, (), error


def _local(contexts: Iterable[Context]) -> Iterator[str]:
    """Models that vLLM runs on this machine."""
    for ctx in contexts:
        yield from (f"judge {judge.name}" for judge in ctx.judges if judge.judge.engine == ENGINE)
        yield from (f"a model of {kind}" for s in ctx.scorers if s.engine == ENGINE for kind in s.kinds)
        yield from ["the grader"] if ctx.grader and ctx.grader.engine == ENGINE else []
        yield from ["the extractor"] if ENGINE in ctx.extractor.engines else []


def _gpus() -> list[str]:
    """Names and memory of the GPUs, from the driver's tool, because torch takes seconds to load."""
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return []
    command = [tool, "--query-gpu=name,memory.total", "--format=csv,noheader"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=WITHIN_S, check=False)  # noqa: S603
    except subprocess.TimeoutExpired:
        return []
    return done.stdout.strip().splitlines() if done.returncode == 0 else []


def _prefect() -> Result:
    url, failure = configured_url(), None
    if url:
        try:
            with urllib.request.urlopen(f"{url.rstrip('/')}/health", timeout=WITHIN_S):  # noqa: S310 - the user's own URL
                pass
        except (OSError, ValueError, HTTPException) as error:
            failure = str(getattr(error, "reason", error))
    return checks.prefect(url, _installed("prefect"), failure)


def _seen(lake: Lake | None) -> Mapping[str, datetime]:
    """Times of past events, for the check of the clock."""
    installed = datetime.fromtimestamp((SHIPPED / CONFIG).stat().st_mtime, UTC)
    seen = {"Leadline's own files": installed}
    if runs := lake.parts(RUNS) if lake else []:
        began = runs[-1].name.partition("-")[0]  # see `Record`
        seen["the latest run"] = datetime.strptime(began, "%Y%m%dT%H%M%S").replace(tzinfo=UTC)
    return seen


def _disks(settings: Nightly) -> Iterator[Disk]:
    """The file systems that a night writes to."""
    places = {"lake": Lake(settings.lake).home, "warehouse": settings.warehouse.parent, "report": settings.report.dir}
    copied = settings.warehouse.stat().st_size if settings.warehouse.exists() else 0
    folders = {what: next(p for p in (path, *path.parents) if p.exists()) for what, path in places.items()}
    for device in dict.fromkeys(folder.stat().st_dev for folder in folders.values()):
        mine = {what: folder for what, folder in folders.items() if folder.stat().st_dev == device}
        first = next(iter(mine.values()))
        closed = tuple(f for f in dict.fromkeys(mine.values()) if not os.access(f, os.W_OK | os.X_OK))
        needed = copied if "warehouse" in mine else 0
        yield Disk(first, tuple(mine), shutil.disk_usage(first).free, needed, closed)


def _source(given: object, settings: Nightly, path: Path, now: datetime) -> Result:
    name = str(given) if isinstance(given, Path) else f"in {path}"
    day = now.date() - timedelta(days=1)
    seen = of_day = 0
    failure = None
    try:
        source = source_of(given, str(path), path.resolve().parent)  # type: ignore[arg-type]  # of the config
        if source.files(day, day):  # a night without files is not a failure
            found = sources.check(source, day, now.date(), SEEN, gates=settings.gates)
            seen, of_day = found.seen, found.of_day
    except LeadlineError as error:
        failure = str(error)
    return checks.source(name, str(day), seen, of_day, SEEN, failure)


def _lake(lake: Lake, now: datetime) -> Result:
    nights = len({p.date for p in lake.parts(TRACES)})
    others = [Lake(lake.root, writer=writer).holder() for writer in (BACKFILL, backup.WRITER)]
    redacting = lake.note(PENDING) is not None
    return checks.lake(
        lake.root, nights, lake.holder(), now, [other[0] for other in others if other], redacting=redacting
    )


def _index(lake: Lake) -> Result:
    number, damaged = damaged_indexes(lake)
    return checks.index(damaged, number)


def _nights(lake: Lake) -> tuple[Night | None, Night | None]:
    """The latest completed nightly run, and the latest nightly run."""
    latest = None
    for part in reversed(lake.parts(RUNS)):
        row = part.read().to_pylist()[0]
        if row["flow"] == "nightly":
            night = Night(row["status"], row["started_at"], row["ended_at"], str(row["to_date"]), row["error"])
            latest = latest or night
            if night.status == "completed":
                return night, latest
    return None, latest


def exit_code(found: Findings) -> int:
    """0 if nothing stops a night tonight, 2 for a config that can't be used, else 1."""
    if found.wrong_config:
        return ConfigError.exit_code
    return int(any(result.status == "problem" for result in found.results))
