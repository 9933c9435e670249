"""Small words and writes that verbs share."""

from pathlib import Path

from tasks.core.errors import LeadlineError


def save(path: Path, text: str) -> None:
    """Write a file that the user named, its lines as they are.

    Raises:
        LeadlineError: It can't be written.
    """
    try:
        path.write_text(text, encoding="utf-8", newline="")
    except OSError as error:
        raise LeadlineError(f"{path}: can't be written ({error.strerror}). Choose another place.") from error


def counted(n: int, noun: str) -> str:
    """A number and its noun."""
    return f"{n:,} {noun}{'' if n == 1 else 's'}"
