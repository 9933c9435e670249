"""All errors that a user can see, with the exit code of each.

A message states what is wrong, the value, its location and how to fix it. Messages contain ids, lengths and counts,
never the text of a trace. `flows/__main__.py` prints them.
"""

from typing import ClassVar


class LeadlineError(Exception):
    """An error that is not a bug in Leadline: exit code 1.

    Attributes:
        transient: Whether a retry may succeed (connection lost, server restarting).
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
        key: Dotted path of the key, or an empty string for the whole file.
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
    """Another run has locked the lake: exit code 4."""

    exit_code = 4


class FoundError(LeadlineError):
    """The run is complete and meets a condition of `--fail-on`: exit code 5."""

    exit_code = 5


class StorageError(LeadlineError):
    """Object storage did not respond or was too busy: exit code 1. A retry may succeed."""

    transient = True


class ChangedError(LeadlineError):
    """Another process replaced a lake file while this process was changing it: exit code 1.

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
    """A source did not respond. A retry may succeed."""

    transient = True


class EngineError(LeadlineError):
    """A model could not be loaded or run: exit code 1."""


def interruption(error: BaseException) -> BaseException | None:
    """Return the exception that a signal raised if it is the error or one of its causes, or None.

    DuckDB wraps the exception in one of its own if the signal arrives during a query.
    """
    if not isinstance(error, Exception):
        return error
    return error.__cause__ and interruption(error.__cause__)
