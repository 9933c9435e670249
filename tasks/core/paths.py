"""Where files are: the config that is meant where none is named, and the SQL and the suite that come with Leadline."""

from pathlib import Path

CONFIG = Path("configs/nightly.yaml")
_PACKAGE = Path(__file__).resolve().parents[1]


def sql_dir() -> Path:
    """The directory of the SQL files: beside the packages in a checkout, inside them when installed."""
    checkout = _PACKAGE.parent / "sql"
    return checkout if checkout.is_dir() else _PACKAGE / "_sql"


def suite_dir() -> Path:
    """The judge suite to measure on; it is there in a checkout only."""
    return _PACKAGE.parent / "data" / "judge_suite" / "test"
