"""How to reach a bucket: endpoint, region and keys, from where the AWS tools find them; and DuckDB's access."""

import os
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from hashlib import blake2b
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import duckdb

from tasks.core.errors import UsageError

if TYPE_CHECKING:
    from obstore.store import S3Credential

RENEWED = timedelta(minutes=15)  # keys are asked for again; botocore renews those that expire sooner


@dataclass(frozen=True, slots=True)
class Access:
    """Endpoint, region and a provider of keys.

    Attributes:
        endpoint: URL of the server; None for Amazon's.
        keys: botocore's credentials, which renew themselves.
    """

    endpoint: str | None
    region: str
    keys: Any

    def __call__(self) -> "S3Credential":
        """Keys as obstore wants them."""
        frozen = self.keys.get_frozen_credentials()
        return {
            "access_key_id": frozen.access_key,
            "secret_access_key": frozen.secret_key,
            "token": frozen.token,
            "expires_at": datetime.now(UTC) + RENEWED,
        }


def access(url: str) -> Access:
    """How to reach a bucket, by the variables AWS_… and the files in `~/.aws`.

    Raises:
        UsageError: There are no keys.
    """
    from botocore.exceptions import BotoCoreError  # noqa: PLC0415 - half a second
    from botocore.session import Session  # noqa: PLC0415

    try:
        session = Session()
        keys = session.get_credentials()
        settings = session.get_scoped_config()
    except BotoCoreError as error:
        raise UsageError(f"{url}: {error} Correct AWS_PROFILE or the files in ~/.aws.") from None
    if keys is None:
        raise UsageError(
            f"{url}: needs credentials, and none were found. Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY or "
            "AWS_PROFILE, or run where a role is attached."
        )
    given = os.environ
    endpoint = given.get("AWS_ENDPOINT_URL_S3") or given.get("AWS_ENDPOINT_URL") or settings.get("endpoint_url")
    region = session.get_config_variable("region") or given.get("AWS_REGION") or "us-east-1"
    return Access(endpoint, region, keys)


def attach(connection: duckdb.DuckDBPyConnection, url: str) -> None:
    """Let DuckDB read and write a place on object storage, and nothing else there."""
    found = _access(url)
    keys = found()
    server = urlsplit(found.endpoint) if found.endpoint else None
    settings = {
        "KEY_ID": keys["access_key_id"],
        "SECRET": keys["secret_access_key"],
        "SESSION_TOKEN": keys["token"],
        "REGION": found.region,
        "ENDPOINT": server and server.netloc + server.path.rstrip("/"),
        "URL_STYLE": server and "path",
        "SCOPE": f"{url}/",
    }
    quoted = [f"{name} '{quote(value)}'" for name, value in settings.items() if value]
    if server and server.scheme == "http":
        quoted.append("USE_SSL false")
    name = f"leadline_{blake2b(url.encode(), digest_size=4).hexdigest()}"  # places may need keys of their own
    connection.execute(f"LOAD '{quote(installed('httpfs'))}'")
    connection.execute(f"CREATE OR REPLACE SECRET {name} (TYPE s3, {', '.join(quoted)})")


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
