"""How to reach a bucket of S3: endpoint, region and keys, from where the AWS tools find them."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import urlsplit

from tasks.core.errors import UsageError
from tasks.core.paths import ObjectUrl

if TYPE_CHECKING:
    from obstore.store import RetryConfig, S3Config, S3Credential, S3Store

RENEWED = timedelta(minutes=15)  # keys are asked for again; botocore renews those that expire sooner


@dataclass(frozen=True, slots=True)
class S3:
    """See `Access`.

    Attributes:
        endpoint: URL of the server; None for Amazon's.
        keys: botocore's credentials, which renew themselves.
    """

    extension: ClassVar[str] = "httpfs"
    settings: ClassVar[Mapping[str, str]] = {}
    endpoint: str | None
    region: str
    keys: Any

    @classmethod
    def of(cls, url: str) -> "S3":
        """By the variables AWS_… and the files in `~/.aws`.

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
        return cls(endpoint, region, keys)

    def __call__(self) -> "S3Credential":
        """Keys as obstore wants them."""
        frozen = self.keys.get_frozen_credentials()
        return {
            "access_key_id": frozen.access_key,
            "secret_access_key": frozen.secret_key,
            "token": frozen.token,
            "expires_at": datetime.now(UTC) + RENEWED,
        }

    def store(self, place: ObjectUrl, retry: "RetryConfig", timeout: timedelta) -> "S3Store":
        """See `Access`."""
        from obstore.store import S3Store  # noqa: PLC0415 - DuckDB alone needs none of it

        plain = bool(self.endpoint and self.endpoint.startswith("http://"))
        config: S3Config = {"region": self.region}
        if self.endpoint:
            config["endpoint"] = self.endpoint
        return S3Store(
            place.bucket,
            prefix=place.prefix or None,
            config=config,
            credential_provider=self,
            retry_config=retry,
            client_options={"allow_http": plain, "timeout": timeout},
        )

    def secret(self) -> dict[str, str | None]:
        """See `Access`."""
        keys = self()
        server = urlsplit(self.endpoint) if self.endpoint else None
        return {
            "TYPE": "s3",
            "KEY_ID": keys["access_key_id"],
            "SECRET": keys["secret_access_key"],
            "SESSION_TOKEN": keys["token"],
            "REGION": self.region,
            "ENDPOINT": server and server.netloc + server.path.rstrip("/"),
            "URL_STYLE": server and "path",
            "USE_SSL": "false" if server and server.scheme == "http" else None,
        }
