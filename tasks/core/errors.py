"""Every error a user can meet, and the exit code each one ends the command with.

A message says what is wrong, the value, where it stands, and what to do about it. It carries ids, lengths and
counts, never the text of a trace. Nothing here knows how a message is printed; `flows/__main__.py` does that.
"""

from typing import ClassVar


class LeadlineError(Exception):
    """Something went wrong that is not a bug: exit code 1.

    Attributes:
        transient: The same call may succeed later (a connection lost, a server restarting): worth a retry.
    """

    exit_code: ClassVar[int] = 1
    transient: ClassVar[bool] = False


class UsageError(LeadlineError):
    """The command line or a config file is wrong: exit code 2."""

    exit_code = 2


class ConfigError(UsageError):
    """A config file is wrong.

    Args:
        where: The file, as the user named it.
        key: Dotted path of the key, or an empty string when the whole file is meant.
        problem: What is wrong, with the value.
        remedy: What to do.
    """

    def __init__(self, where: object, key: str, problem: str, remedy: str) -> None:
        place = f"{where}: {key}" if key else str(where)
        super().__init__(f"{place} {problem}. {remedy}")


class DataError(LeadlineError):
    """The data is worse than the configured limits allow: exit code 3."""

    exit_code = 3


class DamagedError(LeadlineError):
    """A part of the lake can't be read: exit code 1."""


class BusyError(LeadlineError):
    """Another run holds the lake: exit code 4."""

    exit_code = 4


class FoundError(LeadlineError):
    """The run is complete, and found what `--fail-on` names: exit code 5."""

    exit_code = 5


class StorageError(LeadlineError):
    """Object storage did not answer, or was too busy: worth a retry. Exit code 1."""

    transient = True


class ChangedError(LeadlineError):
    """Another process replaced a file of the lake that this one was changing: exit code 1.

    Args:
        where: The file.
    """

    transient = True

    def __init__(self, where: str) -> None:
        super().__init__(
            f"{where}: another process has replaced it. Nothing was overwritten. Make sure that only one run "
            "works on this lake, then run again."
        )


class SourceError(LeadlineError):
    """A source could not be read (missing, no permission, connection lost): exit code 1."""


class ConnectionLostError(SourceError):
    """A source did not answer: worth a retry."""

    transient = True


class EngineError(LeadlineError):
    """A model could not be loaded or run: exit code 1."""


def interruption(error: BaseException) -> BaseException | None:
    """What a signal has raised, if this error comes of it: DuckDB raises one of its own in the middle of a query."""
    if not isinstance(error, Exception):
        return error
    return error.__cause__ and interruption(error.__cause__)
