"""Where the SQL files are: beside the packages in a checkout, inside them when installed."""

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parents[1]


def sql_dir() -> Path:
    """The directory of the SQL files."""
    checkout = _PACKAGE.parent / "sql"
    return checkout if checkout.is_dir() else _PACKAGE / "_sql"
