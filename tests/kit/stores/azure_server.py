"""A server of Azure's object storage on loopback, Azurite, from the environment of `make stores`; and its containers."""

import base64
import hashlib
import hmac
import os
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from email.utils import formatdate
from pathlib import Path
from urllib.parse import urlencode, urlsplit

import pytest
from conftest import free_port, serving

from kit.root import ROOT

ACCOUNT, KEY = "testing", base64.b64encode(b"not much of a secret").decode()
VERSION = "2021-10-04"
PROGRAM = ROOT / ".stores" / "azurite" / "node_modules" / ".bin" / "azurite-blob"


@contextmanager
def azurite(folder: Path) -> Iterator[str]:
    """URL of an account on a server that keeps all in memory, and its log in a folder."""
    if not PROGRAM.exists():
        pytest.skip(f"{PROGRAM} is not there: run `make stores`")
    port = free_port()
    # It knows the versions of the protocol up to its own release; DuckDB and obstore may name later ones.
    options = ["--inMemoryPersistence", "--skipApiVersionCheck", "--disableTelemetry", "--silent"]
    command = [str(PROGRAM), "--blobPort", str(port), *options]
    url = f"http://127.0.0.1:{port}/{ACCOUNT}"
    env = {**os.environ, "AZURITE_ACCOUNTS": f"{ACCOUNT}:{KEY}"}
    with serving(command, _signed("GET", url, comp="list"), folder / "log", env):
        yield url


def make_container(url: str, name: str) -> None:
    """Make a container, which obstore does not."""
    with urllib.request.urlopen(_signed("PUT", f"{url}/{name}", restype="container")):
        pass


def _signed(method: str, url: str, **parameters: str) -> urllib.request.Request:
    """A request without content, signed with the key of the account."""
    headers = {"x-ms-date": formatdate(usegmt=True), "x-ms-version": VERSION}
    named, asked = ([f"{name}:{value}" for name, value in given.items()] for given in (headers, parameters))
    text = "\n".join([method, *[""] * 11, *named, f"/{ACCOUNT}{urlsplit(url).path}", *asked])
    signature = base64.b64encode(hmac.digest(base64.b64decode(KEY), text.encode(), hashlib.sha256)).decode()
    headers |= {"Authorization": f"SharedKey {ACCOUNT}:{signature}", "Content-Length": "0"}
    return urllib.request.Request(f"{url}?{urlencode(parameters)}", method=method, headers=headers)
