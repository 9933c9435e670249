"""Access to object storage with obstore and DuckDB. Selects the implementation for each kind of store."""

from collections.abc import Mapping
from datetime import timedelta
from functools import cache
from hashlib import blake2b
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Protocol

import duckdb

from tasks.core.errors import UsageError
from tasks.core.paths import ObjectUrl

if TYPE_CHECKING:
    from obstore.store import ObjectStore, RetryConfig


class Access(Protocol):
    """Address and credentials of a store, as its own tools find them.

    Attributes:
        extension: Of DuckDB; it reads the store.
        settings: Of DuckDB, for all places of this store.
    """

    extension: ClassVar[str]
    settings: ClassVar[Mapping[str, str]]

    def store(self, place: ObjectUrl, retry: "RetryConfig", timeout: timedelta) -> "ObjectStore":
        """A store of obstore, whose keys are paths below the place's prefix; opens no connection.

        Args:
            timeout: Of one request.
        """

    def secret(self) -> dict[str, str | None]:
        """Parameters of a secret of DuckDB; None for those that are left out."""


def access(url: str) -> Access:
    """How to reach a place.

    Raises:
        UsageError: There are no credentials.
    """
    if url.startswith("az://"):
        from tasks.store.remote.azure import Azure  # noqa: PLC0415 - a lake elsewhere needs none of it

        return Azure.of(url)
    from tasks.store.remote.s3 import S3  # noqa: PLC0415 - a lake elsewhere needs none of it

    return S3.of(url)


def attach(connection: duckdb.DuckDBPyConnection, url: str) -> None:
    """Let DuckDB read and write a place on object storage, and nothing else there."""
    found = _access(url)
    connection.execute(f"LOAD '{quote(installed(found.extension))}'")
    for name, value in found.settings.items():
        connection.execute(f"SET {name} = '{quote(value)}'")
    secret = f"leadline_{blake2b(url.encode(), digest_size=4).hexdigest()}"  # places may need keys of their own
    given = {**found.secret(), "SCOPE": f"{url}/"}
    parameters = ", ".join(f"{name} '{quote(value)}'" for name, value in given.items() if value)
    connection.execute(f"CREATE OR REPLACE SECRET {secret} ({parameters})")


_access = cache(access)  # a run opens its warehouse often


def quote(text: str) -> str:
    """A text for a string of SQL."""
    return text.replace("'", "''")


def installed(extension: str, lock: str = "requirements.lock") -> str:
    """The file of an extension of DuckDB in its package: DuckDB would look for it in the network.

    Args:
        lock: What installs the package.

    Raises:
        UsageError: The package is not installed.
    """
    found = find_spec(f"duckdb_extension_{extension}")
    for folder in (found and found.submodule_search_locations) or ():
        for path in Path(folder).glob(f"extensions/v{duckdb.__version__}/*.duckdb_extension"):
            return str(path)
    raise UsageError(
        f"The extension {extension} of DuckDB {duckdb.__version__} is not installed. Run: pip install -r {lock}"
    )
