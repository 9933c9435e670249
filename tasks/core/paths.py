"""Where the files are that come with Leadline: the SQL, and the suite that judges are measured on."""

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parents[1]


def sql_dir() -> Path:
    """The directory of the SQL files: beside the packages in a checkout, inside them when installed."""
    checkout = _PACKAGE.parent / "sql"
    return checkout if checkout.is_dir() else _PACKAGE / "_sql"


def suite_dir() -> Path:
    """The judge suite to measure on; it is there in a checkout only."""
    return _PACKAGE.parent / "data" / "judge_suite" / "test"
