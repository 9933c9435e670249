"""How to reach a container of Azure Blob Storage: account and credentials, as Azure's tools find them."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, ClassVar
from urllib.parse import urlsplit

from tasks.core.errors import UsageError
from tasks.core.paths import ObjectUrl

if TYPE_CHECKING:
    from obstore.store import AzureConfig, AzureStore, RetryConfig

WHOLE = "AZURE_STORAGE_CONNECTION_STRING"
# The names in a connection string, and the variables that stand for them where there is none.
VARIABLES = {
    "AccountName": "AZURE_STORAGE_ACCOUNT_NAME",
    "AccountKey": "AZURE_STORAGE_ACCOUNT_KEY",
    "SharedAccessSignature": "AZURE_STORAGE_SAS_TOKEN",
    "BlobEndpoint": "AZURE_STORAGE_ENDPOINT",
}
CHAIN = "env;workload_identity;managed_identity;cli"  # where DuckDB looks, as obstore does by itself


@dataclass(frozen=True, slots=True)
class Azure:
    """See `Access`.

    Attributes:
        account: Name of the storage account.
        endpoint: URL of its blobs; None for that of Azure's public cloud.
        given: A connection string by its names. Without a key or a signature, obstore and DuckDB look for an identity.
    """

    extension: ClassVar[str] = "azure"
    # The default looks for certificates where only some systems have them.
    settings: ClassVar[Mapping[str, str]] = {"azure_transport_option_type": "curl"}
    account: str
    endpoint: str | None
    given: Mapping[str, str] = field(repr=False)

    @classmethod
    def of(cls, url: str) -> "Azure":
        """By the variables AZURE_….

        Raises:
            UsageError: They name no storage account.
        """
        if whole := os.environ.get(WHOLE):
            given = {name: value for name, _, value in (part.partition("=") for part in whole.split(";")) if value}
        else:
            given = {name: os.environ[variable] for name, variable in VARIABLES.items() if os.environ.get(variable)}
        account, endpoint = given.get("AccountName", ""), given.get("BlobEndpoint", "").rstrip("/")
        if account and not endpoint and (suffix := given.get("EndpointSuffix")):
            endpoint = f"{given.get('DefaultEndpointsProtocol', 'https')}://{account}.blob.{suffix}"
        account = account or urlsplit(endpoint).netloc.partition(".")[0]  # one with a signature may name no account
        if not account:
            raise UsageError(
                f"{url}: needs a storage account, and none is named. Set AZURE_STORAGE_ACCOUNT_NAME and "
                f"AZURE_STORAGE_ACCOUNT_KEY, or {WHOLE}."
            )
        return cls(account, endpoint or None, given)

    def store(self, place: ObjectUrl, retry: "RetryConfig", timeout: timedelta) -> "AzureStore":
        """See `Access`.

        Raises:
            UsageError: A variable can't be used.
        """
        from obstore.exceptions import BaseError  # noqa: PLC0415 - DuckDB alone needs none of it
        from obstore.store import AzureStore  # noqa: PLC0415

        plain = bool(self.endpoint and self.endpoint.startswith("http://"))
        config: AzureConfig = {"account_name": self.account}
        if self.endpoint:
            config["endpoint"] = self.endpoint
        if key := self.given.get("AccountKey"):
            config["account_key"] = key
        elif signature := self.given.get("SharedAccessSignature"):
            config["sas_key"] = signature
        try:
            return AzureStore(
                place.bucket,
                prefix=place.prefix or None,
                config=config,
                retry_config=retry,
                client_options={"allow_http": plain, "timeout": timeout},
            )
        except BaseError as error:
            problem = str(error).splitlines()[0].rpartition("error: ")[2]
            raise UsageError(f"{place.url}: {problem} Correct the variables AZURE_STORAGE_….") from None

    def secret(self) -> dict[str, str | None]:
        """See `Access`."""
        if self.given.keys() & {"AccountKey", "SharedAccessSignature"}:
            whole = ";".join(f"{name}={value}" for name, value in self.given.items())
            return {"TYPE": "azure", "CONNECTION_STRING": whole}
        host = self.endpoint and urlsplit(self.endpoint).netloc.removeprefix(f"{self.account}.")
        chain = {"PROVIDER": "credential_chain", "CHAIN": CHAIN}
        return {"TYPE": "azure", **chain, "ACCOUNT_NAME": self.account, "ENDPOINT": host}
