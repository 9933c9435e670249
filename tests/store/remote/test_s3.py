"""Endpoint, region and keys are found where the AWS tools find them."""

from pathlib import Path

import pytest

from tasks.core.errors import UsageError
from tasks.store.remote.s3 import S3

URL = "s3://b/lake"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the AWS tools look for files; no variable says anything, and no machine in a cloud is asked."""
    for name in (
        "AWS_ACCESS_KEY_ID",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_SESSION_TOKEN",
        "AWS_PROFILE",
        "AWS_DEFAULT_REGION",
        "AWS_REGION",
        "AWS_ENDPOINT_URL",
        "AWS_ENDPOINT_URL_S3",
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    return tmp_path


def test_from_variables(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    assert (S3.of(URL).endpoint, S3.of(URL).region) == (None, "us-east-1")
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://all")
    monkeypatch.setenv("AWS_SESSION_TOKEN", "token")
    found = S3.of(URL)
    assert (found.endpoint, found.region) == ("http://all", "eu-west-1")
    keys = found()
    assert (keys["access_key_id"], keys["secret_access_key"], keys["token"]) == ("key", "secret", "token")
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "http://s3")
    assert S3.of(URL).endpoint == "http://s3"


def test_from_a_profile(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / "config").write_text("[profile team]\nregion = eu-north-1\nendpoint_url = https://minio.example\n")
    (home / "credentials").write_text("[team]\naws_access_key_id = key\naws_secret_access_key = secret\n")
    monkeypatch.setenv("AWS_PROFILE", "team")
    found = S3.of(URL)
    assert (found.endpoint, found.region) == ("https://minio.example", "eu-north-1")
    assert (found()["access_key_id"], found()["token"]) == ("key", None)


def test_where_none_are_found(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(
        UsageError, match=r"^s3://b/lake: needs credentials, and none were found\. Set AWS_ACCESS_KEY_ID"
    ):
        S3.of(URL)
    monkeypatch.setenv("AWS_PROFILE", "nobody")
    with pytest.raises(UsageError, match=r"^s3://b/lake: .*nobody.* Correct AWS_PROFILE or the files in ~/\.aws\.$"):
        S3.of(URL)
