"""Account and credentials of Azure are found where its tools find them; DuckDB gets the same, or looks by itself."""

import base64
import hashlib
import hmac
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import urlencode

import duckdb
import pytest
from kit.stores.azure_server import ACCOUNT, KEY, VERSION
from kit.stores.server import Asked, Reply, TraceServer, serve
from obstore.exceptions import GenericError

from tasks.core.errors import LeadlineError, StorageError, UsageError
from tasks.core.paths import ObjectUrl
from tasks.store.remote.access import attach
from tasks.store.remote.azure import Azure
from tasks.store.remote.objects import Objects, objects
from tasks.store.remote.refusals import explained

PLACE = ObjectUrl("az://con/lake")
PORTAL = "DefaultEndpointsProtocol=https;AccountName=acc;AccountKey=a2V5;EndpointSuffix="
PUBLIC, CHINA = "https://acc.blob.core.windows.net", "https://acc.blob.core.chinacloudapi.cn"


@pytest.fixture(autouse=True)
def no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith(("AZURE_", "IDENTITY_"))]:
        monkeypatch.delenv(name)


class TestVariables:
    @pytest.mark.parametrize(
        ("variables", "endpoint"),
        [
            ({"ACCOUNT_NAME": "acc", "ACCOUNT_KEY": "a2V5"}, None),
            ({"ACCOUNT_NAME": "acc", "ENDPOINT": "http://127.0.0.1:1/acc/"}, "http://127.0.0.1:1/acc"),
            # As the portal shows them: of the public cloud, of another one, and one with a signature but no account.
            ({"CONNECTION_STRING": f"{PORTAL}core.windows.net"}, PUBLIC),
            ({"CONNECTION_STRING": f"{PORTAL}core.chinacloudapi.cn"}, CHINA),
            ({"CONNECTION_STRING": f"BlobEndpoint={PUBLIC}/;SharedAccessSignature=sv=1&sig=a%3D"}, PUBLIC),
            ({"CONNECTION_STRING": "AccountName=acc;AccountKey=a2V5", "ACCOUNT_NAME": "other"}, None),
        ],
    )
    def test_account_and_endpoint(
        self, variables: dict[str, str], endpoint: str | None, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for name, value in variables.items():
            monkeypatch.setenv(f"AZURE_STORAGE_{name}", value)
        found = Azure.of(PLACE.url)
        assert (found.account, found.endpoint) == ("acc", endpoint)

    def test_what_is_missing_or_wrong(self, monkeypatch: pytest.MonkeyPatch) -> None:
        with pytest.raises(UsageError, match=r"^az://con/lake: needs a storage account, and none .* AZURE_STORAGE_ACC"):
            objects.__wrapped__(PLACE)
        monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_NAME", "acc")
        monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_KEY", "no base64!")
        with pytest.raises(
            UsageError, match=r"^az://con/lake: Invalid Access Key: .* Correct the variables AZURE_"
        ) as e:
            objects.__wrapped__(PLACE)
        assert "base64" not in str(e.value)


def signature() -> str:
    """Allows everything in the account, for an hour."""
    until = f"{datetime.now(UTC) + timedelta(hours=1):%Y-%m-%dT%H:%M:%SZ}"
    given = {
        "sp": "rwdlac",
        "ss": "b",
        "srt": "sco",
        "st": "",
        "se": until,
        "sip": "",
        "spr": "",
        "sv": VERSION,
        "ses": "",
    }
    text = "".join(f"{value}\n" for value in (ACCOUNT, *given.values()))
    signed = base64.b64encode(hmac.digest(base64.b64decode(KEY), text.encode(), hashlib.sha256)).decode()
    return urlencode({name: value for name, value in given.items() if value} | {"sig": signed})


@pytest.mark.parametrize("way", ["connection string", "signature"])
def test_obstore_and_duckdb_use_the_same(way: str, container: ObjectUrl, monkeypatch: pytest.MonkeyPatch) -> None:
    if way == "connection string":
        whole = f"AccountName={ACCOUNT};AccountKey={KEY};BlobEndpoint={os.environ['AZURE_STORAGE_ENDPOINT']}"
        monkeypatch.setenv("AZURE_STORAGE_CONNECTION_STRING", whole)
    else:
        monkeypatch.setenv("AZURE_STORAGE_SAS_TOKEN", signature())
    for name in ("ACCOUNT_KEY", "ENDPOINT") if way == "connection string" else ("ACCOUNT_KEY",):
        monkeypatch.delenv(f"AZURE_STORAGE_{name}")
    held = objects.__wrapped__(container)
    held.put("t/a.csv", b"n\n7\n")
    if way == "connection string":  # Azurite knows no deletion with a signature
        held.put("t/b.csv", b"n\n7\n")
        held.delete("t/b.csv")
    with duckdb.connect() as connection:
        attach(connection, container.url)
        assert connection.execute(f"FROM '{container}/t/*.csv'").fetchall() == [(7,)]


class TestIdentities:
    @pytest.fixture
    def server(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[TraceServer]:
        """Gives tokens to an identity, and takes what is written with one."""

        def answer(asked: Asked) -> Reply:
            if asked.path == "/token":
                later = str(int(time.time()) + 3600)
                return Reply({"access_token": "abc", "expires_on": later, "resource": "", "token_type": "Bearer"})
            granted = asked.headers.get("authorization") == "Bearer abc"
            return Reply(b"", 201 if granted else 403, {"ETag": '"0x1"'})

        with serve(answer) as running:
            monkeypatch.setenv("IDENTITY_ENDPOINT", f"{running.url}/token")
            monkeypatch.setenv("IDENTITY_HEADER", "x")
            monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_NAME", "acc")
            monkeypatch.setenv("AZURE_STORAGE_ENDPOINT", f"{running.url}/acc")
            yield running

    def test_a_token_is_asked_for(self, server: TraceServer) -> None:
        assert objects.__wrapped__(PLACE).put("t/a", b"x").etag == '"0x1"'
        assert [asked.path for asked in server.asked] == ["/token", "/acc/con/lake/t/a"]

    def test_where_none_is_given(self, server: TraceServer, tmp_path: Path) -> None:
        server.answer = lambda _: Reply({"error": "invalid_request"}, 400)
        with pytest.raises(
            UsageError, match=r"t/a: needs credentials; none were found, .* Set AZURE_STORAGE_ACCOUNT_KEY"
        ):
            objects.__wrapped__(PLACE).put("t/a", b"x")

    def test_a_token_file_that_is_not_there(self, server: TraceServer, monkeypatch: pytest.MonkeyPatch) -> None:
        for name, value in {"CLIENT_ID": "c", "TENANT_ID": "t", "FEDERATED_TOKEN_FILE": "/no/such/file"}.items():
            monkeypatch.setenv(f"AZURE_{name}", value)
        with pytest.raises(UsageError, match=r"t/a: needs credentials; none were found"):
            objects.__wrapped__(PLACE).put("t/a", b"x")

    def test_duckdb_looks_for_one_itself(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_NAME", "acc")
        monkeypatch.setenv("AZURE_STORAGE_ENDPOINT", CHINA)
        with duckdb.connect() as connection:
            attach(connection, PLACE.url)
            ((provider, scope, shown),) = connection.execute(
                "SELECT provider, scope, secret_string FROM duckdb_secrets()"
            ).fetchall()
        assert (provider, scope) == ("credential_chain", ["az://con/lake/"])
        assert "account_name=acc;" in shown
        assert "endpoint=blob.core.chinacloudapi.cn" in shown


@contextmanager
def refusing(status: int, code: str, detail: str = "") -> Iterator[Objects]:
    """A container whose server refuses all, asked twice at most."""
    body = f"<Error><Code>{code}</Code><Message>no</Message>{detail}</Error>" if code else ""
    with serve(lambda _: Reply(body.encode(), status)) as server:
        brief = {"init_backoff": timedelta(milliseconds=1), "max_backoff": timedelta(milliseconds=2), "base": 2}
        found = Azure("acc", f"{server.url}/acc", {"AccountKey": "a2V5"})
        retry = {"max_retries": 1, "retry_timeout": timedelta(seconds=30), "backoff": brief}
        yield Objects(PLACE, found.store(PLACE, retry, timedelta(seconds=30)))


OLD = "<AuthenticationErrorDetail>Request date header too old: 'Fri'</AuthenticationErrorDetail>"
ROLE = "access denied. Grant the identity the role Storage Blob Data Contributor here, then run again"


@pytest.mark.parametrize(
    ("status", "code", "detail", "kind", "message"),
    [
        (404, "ContainerNotFound", "", UsageError, r"there is no container 'con'\. Create it, or correct `lake`"),
        (409, "ContainerBeingDeleted", "", UsageError, r"there is no container 'con'"),
        (409, "BlobImmutableDueToPolicy", "", LeadlineError, r"refuses to write it \(BlobImmutableDueToPolicy\)"),
        (
            403,
            "AuthenticationFailed",
            "",
            UsageError,
            r"not accept the credentials \(AuthenticationFailed\)\. Correct AZ",
        ),
        (403, "AuthenticationFailed", OLD, LeadlineError, r"the store refuses this machine's clock\. Set it"),
        (403, "KeyBasedAuthenticationNotPermitted", "", UsageError, r"not accept the credentials \(KeyBased"),
        (403, "AuthorizationPermissionMismatch", "", LeadlineError, ROLE),
        (
            403,
            "AuthorizationFailure",
            "",
            LeadlineError,
            r"access denied \(AuthorizationFailure\)\. Let the firewall of",
        ),
        (403, "", "", LeadlineError, ROLE),
        (
            503,
            "ServerBusy",
            "",
            StorageError,
            r"the store is too busy \(ServerBusy\), also after several tries\. Wait, t",
        ),
        (500, "OperationTimedOut", "", StorageError, r"the store is too busy \(OperationTimedOut\)"),
    ],
)
def test_what_azure_refuses_has_a_remedy(
    status: int, code: str, detail: str, kind: type[LeadlineError], message: str
) -> None:
    with refusing(status, code, detail) as held, pytest.raises(LeadlineError, match=message) as caught:
        held.put("t/a", b"x")
    assert type(caught.value) is kind
    assert str(caught.value).startswith("az://con/lake/t/a: ")


def test_a_wrong_key_may_not_remove_anything(container: ObjectUrl, monkeypatch: pytest.MonkeyPatch) -> None:
    objects.__wrapped__(container).put("t/a", b"x")
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_KEY", "a2V5")
    with pytest.raises(LeadlineError, match=r"t/a: access denied \(AuthorizationFailure\)"):
        objects.__wrapped__(container).delete("t/a")


@pytest.mark.parametrize(("status", "kind"), [(403, "access denied"), (503, "too busy")])
def test_what_a_batch_says_of_one_deletion(status: int, kind: str) -> None:
    error = GenericError(f"Bulk delete request failed for key lake/t/a: Not now. (code: {status})")
    assert kind in str(explained(error, PLACE, "t/a", "delete"))


def test_an_account_that_is_not_there() -> None:
    with serve(lambda _: Reply()) as gone:
        pass
    found = Azure("acc", f"{gone.url}/acc", {"AccountKey": "a2V5"})
    held = Objects(PLACE, found.store(PLACE, {"max_retries": 0}, timedelta(seconds=30)))
    with pytest.raises(
        StorageError, match=r"can't be reached\. Check the network and AZURE_STORAGE_ACCOUNT_NAME, then"
    ):
        held.read("t/a")
