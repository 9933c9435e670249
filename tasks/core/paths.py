"""Where the files that ship with Leadline are: beside the packages in a checkout, inside them when installed."""

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parents[1]
_CHECKOUT = _PACKAGE.parent


def assets() -> Path:
    """The directory that holds `sql/` and `configs/`."""
    return _CHECKOUT if (_CHECKOUT / "sql").is_dir() else _PACKAGE / "_assets"


def sql_dir() -> Path:
    """The directory of the SQL files."""
    return assets() / "sql"
