"""Atomic writes of files and directories, so that readers of the report never see a partial page."""

import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tasks.core.errors import LeadlineError


def write(path: Path, text: str) -> None:
    """Write or replace a file atomically.

    Raises:
        LeadlineError: The file can't be written.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    with _explained(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            temporary.write_text(text, encoding="utf-8", newline="")
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)


@contextmanager
def replacing(place: Path) -> Iterator[Path]:
    """Yield a new directory that replaces `place` if the block succeeds, and is deleted if it fails.

    Not every file system can swap two directories in one step, so `place` does not exist for an instant.

    Raises:
        LeadlineError: The directory can't be made or moved.
    """
    token = secrets.token_hex(4)
    fresh, old = (place.with_name(f".{place.name}.{token}.{kind}") for kind in ("new", "old"))
    with _explained(place):
        _tidy(place)
        fresh.mkdir(parents=True)
    try:
        yield fresh
        with _explained(place):
            if place.exists():
                place.rename(old)
            fresh.rename(place)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
        if old.exists():
            with _explained(place):
                _tidy(place)


def _tidy(place: Path) -> None:
    """Remove leftovers of killed builds. If `place` is missing, first restore the directory that was moved aside."""
    for leftover in sorted(place.parent.glob(f".{place.name}.*")):
        if leftover.suffix == ".old" and not place.exists():
            leftover.rename(place)
        else:
            shutil.rmtree(leftover)


@contextmanager
def _explained(place: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise LeadlineError(
            f"{error.filename or place}: the report can't be written ({error.strerror}). Free space or grant access, "
            "then publish again; the previous report is unchanged."
        ) from error
