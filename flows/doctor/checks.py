"""The checks of `leadline doctor`: one pure function per check, from facts to a result.

Left out: finding the facts (`facts.py`), and showing results (`command.py`).
"""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Literal

from tasks.core.paths import ObjectUrl

Status = Literal["ok", "warning", "problem"]
LEAST_FREE, PLENTY_FREE = 200_000_000, 2_000_000_000  # bytes, besides the warehouse
FRESH = timedelta(hours=36)  # a nightly starts every 24 hours and takes up to 12
STUCK = timedelta(hours=24)
DRIFT = timedelta(minutes=5)
_UNKNOWN = "not known whether it is needed: see config"


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a check.

    Attributes:
        status: A `problem` prevents a nightly run, a `warning` does not.
        remedy: What to do; empty if there is nothing to do.
    """

    check: str
    status: Status
    text: str
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class Package:
    """A package that Leadline requires.

    Attributes:
        wanted: The requirement, such as `polars>=1.30`.
        installed: The installed version; None if it is missing.
        fits: Whether the installed version meets the requirement.
    """

    wanted: str
    installed: str | None
    fits: bool


@dataclass(frozen=True, slots=True)
class Disk:
    """A file system that a night writes to.

    Attributes:
        path: An existing folder on the file system.
        holds: What is written there.
        free: Free bytes.
        needed: Bytes of files that a night writes to a copy before replacing them.
        unwritable: Folders that this user may not write to.
    """

    path: Path
    holds: Sequence[str]
    free: int
    needed: int
    unwritable: Sequence[Path] = ()


@dataclass(frozen=True, slots=True)
class Night:
    """A run of the nightly.

    Attributes:
        last_day: Last day that the run was asked to complete.
    """

    status: str
    started: datetime
    ended: datetime | None
    last_day: str
    error: str | None = None


def python(version: str, wanted: str, fits: bool, packages: Sequence[Package]) -> Result:
    """The interpreter, and the packages that Leadline requires."""
    if not fits:
        return Result("python", "problem", f"Python {version}; Leadline needs {wanted}", f"Install Python {wanted}.")
    wrong = [f"{p.wanted} ({p.installed or 'missing'})" for p in packages if not p.fits]
    if any(p.installed is None for p in packages):
        text = f"packages are missing or too old: {', '.join(wrong)}"
        return Result("python", "problem", text, "Install Leadline again: pip install -r requirements.lock.")
    if wrong:
        text = f"other versions than Leadline was tested with: {', '.join(wrong)}"
        return Result("python", "warning", text, "Install Leadline again: pip install -r requirements.lock.")
    return Result("python", "ok", f"Python {version}, {len(packages)} packages")


def disk(of: Disk) -> Result:
    """Free space and write access for a night."""
    place = f"{of.path} ({', '.join(of.holds)})"
    if of.unwritable:
        names = ", ".join(map(str, of.unwritable))
        return Result("disk", "problem", f"{names} can't be written by this user", "Grant write access.")
    text = f"{_bytes(of.free)} free at {place}"
    if of.free < of.needed + LEAST_FREE:
        wanted = _bytes(of.needed + LEAST_FREE)
        return Result("disk", "problem", f"{text}; a night needs {wanted}", "Free space, or move `lake` in the config.")
    if of.free < of.needed + PLENTY_FREE:
        return Result("disk", "warning", text, f"Free space until at least {_bytes(of.needed + PLENTY_FREE)} are free.")
    return Result("disk", "ok", text)


def gpu(local: Sequence[str] | None, found: Sequence[str], vllm: str | None) -> Result:
    """The GPU, if vLLM runs models on this machine.

    Args:
        local: Judges and other models that vLLM runs on this machine; None if the config can't be used.
        found: Names of the GPUs.
        vllm: The installed version; None if it is missing.
    """
    names = ", ".join(found) or "none"
    if not local:
        return Result("gpu", "ok", f"{names}; {_UNKNOWN if local is None else 'no model of the config needs one'}")
    if found:
        return Result("gpu", "ok", f"{names}, for {', '.join(local)}")
    text = f"none, and vLLM runs {', '.join(local)} on this machine"
    if vllm and "cpu" in vllm:
        return Result("gpu", "warning", f"{text}: on the CPU, which is slow")
    return Result("gpu", "problem", text, "Install the GPU's driver, or name a judge for the CPU or behind a server.")


def vllm(local: Sequence[str] | None, installed: str | None) -> Result:
    """vLLM, if a model needs it. For the arguments, see `gpu`."""
    if not local:
        need = _UNKNOWN if local is None else "no model of the config needs it"
        return Result("vllm", "ok", f"{installed or 'not installed'}; {need}")
    if installed is None:
        text = f"not installed, and {', '.join(local)} needs it"
        return Result("vllm", "problem", text, "pip install -r requirements-gpu.lock, where Leadline is installed.")
    return Result("vllm", "ok", f"{installed}, for {', '.join(local)}")


def prefect(url: str | None, installed: str | None, failure: str | None) -> Result:
    """Prefect and its server.

    Args:
        url: URL of the server; None if none is configured, empty if Prefect is turned off.
        failure: Why the server does not respond; None if it does or was not contacted.
    """
    if url == "":
        return Result("prefect", "ok", "turned off: PREFECT_API_URL is empty")
    if installed is None:
        return Result("prefect", "problem", "not installed", "Install Leadline again, or run with --no-prefect.")
    if url is None:
        return Result("prefect", "ok", f"{installed}; no server is configured, so each run starts a temporary one")
    if failure:
        text = f"the server {url} does not answer ({failure})"
        return Result("prefect", "problem", text, "Start it (docs/operations.md), or run with --no-prefect.")
    return Result("prefect", "ok", f"{installed}, server {url}")


def clock(now: datetime, seen: Mapping[str, datetime]) -> Result:
    """The clock, which must not be behind past events. It determines the day (UTC) of a night.

    Args:
        seen: Times of past events by description.
    """
    ahead = {what: at for what, at in seen.items() if at > now + DRIFT}
    if ahead:
        what, at = max(ahead.items(), key=lambda one: one[1])
        text = f"it shows {now:%Y-%m-%d %H:%M} UTC, but {what} is from {at:%Y-%m-%d %H:%M} UTC"
        return Result("clock", "problem", text, "Set the clock (timedatectl): it decides which day a night is.")
    text = f"{now:%Y-%m-%d %H:%M} UTC; a night that starts now completes {now.date() - timedelta(days=1)}"
    return Result("clock", "ok", text)


def config(path: Path, recipes: Sequence[str], failure: str | None) -> Result:
    """The config and all files that it names.

    Args:
        recipes: Descriptions of the recipes with their judges.
        failure: The error in the config, with its remedy; None without error.
    """
    if failure:
        return Result("config", "problem", failure)
    return Result("config", "ok", f"{path}: {'; '.join(recipes)}")


def unchecked(name: str) -> Result:
    """Result of a check that was skipped because the config can't be used."""
    return Result(name, "warning", "not checked: see config")


def source(name: str, day: str, seen: int, of_day: int, most: int, failure: str | None) -> Result:
    """A source, and its traces of yesterday.

    Args:
        day: The day to look for (yesterday).
        seen: Number of rows read, including invalid ones, at most `most`.
        of_day: Number of these traces that are of the day.
        most: Largest number of rows to read.
        failure: Why the source can't be read; None if it can.
    """
    check = "" if name.startswith("in ") else f": leadline sources check {shlex.quote(name)}"  # it has its own file
    if failure:
        return Result("source", "problem", f"{name}: {failure}", f"Correct it, then check it{check}")
    if of_day:
        return Result("source", "ok", f"{name}: {f'{of_day:,} or more' if seen >= most else f'{of_day:,}'} of {day}")
    if seen >= most:
        return Result("source", "ok", f"{name}: the first {most:,} traces are of other days than {day}")
    text = f"{name}: {f'{seen:,} traces, none' if seen else 'nothing'} of {day}"
    return Result("source", "warning", text, f"If there should be some, check it{check}")


def lake(
    path: Path | ObjectUrl,
    nights: int,
    holder: tuple[str, datetime] | None,
    now: datetime,
    beside: Sequence[str] = (),
    *,
    redacting: bool = False,
) -> Result:
    """The lake and its locks.

    Args:
        nights: Number of nights with traces.
        holder: Holder of the lock that a night needs, and the start time; None if the lock is free.
        beside: Holders of other locks, such as a backfill or a backup.
        redacting: Whether a removal of texts is incomplete.
    """
    if holder:
        who, since = holder
        text = f"{path} is locked by {who}"
        if now - since > STUCK:
            return Result("lake", "problem", f"{text}, for {_age(now - since)}", "End it if it hangs.")
        return Result("lake", "warning", text, "A night that starts now ends with exit code 4. Wait for the other run.")
    if redacting:
        text = f"{path}: a removal of texts was interrupted"
        return Result("lake", "warning", text, "Complete it: leadline retention")
    if not nights and not beside:
        return Result("lake", "ok", f"{path} has no night yet; the first run creates it")
    work = f"in use by {'; '.join(beside)}" if beside else "not locked"
    return Result("lake", "ok", f"{path}: {nights} night{'' if nights == 1 else 's'}, {work}")


def index(damaged: Sequence[tuple[Path, str]], number: int) -> Result:
    """The index of keys. A night detects most damage by itself and rebuilds the index.

    Args:
        damaged: Damaged files, and why they can't be read.
        number: Number of files.
    """
    if damaged:
        text = "; ".join(f"{path} is damaged ({why})" for path, why in damaged)
        files = " ".join(str(path) for path, _ in damaged)
        return Result("index", "warning", text, f"Remove it: rm {files}. The next run rebuilds it.")
    return Result("index", "ok", f"{number} file{'' if number == 1 else 's'}, whole" if number else "none yet")


def last_night(good: Night | None, latest: Night | None, now: datetime) -> Result:
    """The age of the last night that was completed.

    Args:
        good: The latest completed run; None if there is none.
        latest: The latest run; None if there is none.
    """
    failed = ""
    if latest and latest != good:
        failed = f"; the run of {latest.started:%Y-%m-%d %H:%M} UTC is {latest.status}"
        failed += f" ({latest.error})" if latest.error else ""
    if good is None:
        text = f"none yet{failed}"
        remedy = "Run the same command again: leadline nightly"
        return Result("last night", "warning", text, remedy) if failed else Result("last night", "ok", text)
    ended = good.ended or good.started
    text = f"{good.last_day}, completed {_age(now - ended)} ago{failed}"
    if failed or now - ended > FRESH:
        return Result("last night", "warning", text, "Check the schedule and its log, then run: leadline nightly")
    return Result("last night", "ok", text)


def _bytes(n: int) -> str:
    return f"{n / 1e9:.1f} GB" if n >= 1e9 else f"{n / 1e6:.0f} MB"


def _age(length: timedelta) -> str:
    hours = length.total_seconds() / 3600
    return f"{hours / 24:.0f} days" if hours >= 48 else f"{hours:.0f} h"
