"""Where files are: the default config, and the SQL, configs, sample and judge suite that come with Leadline."""

import shlex
from dataclasses import dataclass, replace
from datetime import date
from hashlib import blake2b
from pathlib import Path

CONFIG = Path("configs/nightly.yaml")
_PACKAGE = Path(__file__).resolve().parents[1]
_INSTALLED = _PACKAGE / "_files"  # the wheel's copy, laid out like the repository (pyproject.toml)
SHIPPED = _INSTALLED if _INSTALLED.is_dir() else _PACKAGE.parent


@dataclass(frozen=True, slots=True)
class ObjectUrl:
    """A place on object storage.

    Attributes:
        url: `s3://bucket/prefix` or `az://container/prefix`, without a slash at its end.
        cache: Folder of this machine for copies of its files, and for what belongs to it but is none of its files.
    """

    url: str
    cache: Path = Path()

    @property
    def bucket(self) -> str:
        """Name of the bucket or container."""
        return self.url.split("/")[2]

    @property
    def prefix(self) -> str:
        """Path in the bucket, without slashes around it."""
        return "/".join(self.url.split("/")[3:])

    def copied_to(self, folder: Path) -> "ObjectUrl":
        """The same place with its copies below a folder, in a subfolder per place."""
        return replace(self, cache=folder / f"{self.bucket}-{blake2b(self.url.encode(), digest_size=4).hexdigest()}")

    def __str__(self) -> str:
        return self.url


def config_option(config: Path) -> str:
    """The option of a command that names a config, with a space before it; empty for the default one."""
    return "" if config == CONFIG else f" -c {shlex.quote(str(config))}"


def refused_command(option: str, first: date, last: date) -> str:
    """The command that lists the refused rows of some nights, without their texts.

    Args:
        option: The option that names the config, with a space before it.
    """
    nights = f"= '{first}'" if first == last else f"BETWEEN '{first}' AND '{last}'"
    columns = "source, line, date, stage, reason, detail"
    return f'leadline sql{option} "SELECT {columns} FROM quarantine WHERE date {nights}"'  # noqa: S608 - it is shown


def sql_dir() -> Path:
    """The directory of the SQL files."""
    return SHIPPED / "sql"


def suite_dir() -> Path:
    """The judge suite to measure on."""
    return SHIPPED / "data" / "judge_suite" / "test"
