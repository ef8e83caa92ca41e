"""Planted secrets: a job uses a password, keys and a token, and none of them is found anywhere afterwards."""

from __future__ import annotations

import pytest

from hpo.text import holds_secret, masked
from trainers import ConfigurationError, DataError, storage


def test_an_object_store_that_refuses_does_not_tell_its_keys(s3: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hidden-secret")
    with pytest.raises(ConfigurationError) as refused:
        storage.check_no_credentials(s3.replace("s3://", "s3://key:hidden-secret@"), "storage_path")
    assert "hidden-secret" not in str(refused.value)
    nowhere = s3.replace("warmband", "no-such-bucket").replace("&allow_bucket_creation=true", "")
    with pytest.raises(DataError) as no:
        storage.read(storage.join(nowhere, "none"))
    assert "hidden-secret" not in str(no.value)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me:pl/anted@host/db",
        "postgresql://me:pl?anted@host/db",
        "postgresql://me:pl@anted@host/db",
        "postgresql://me:pl'anted@host/db",
        "postgresql://host/db?user=me&password=anted",
        "postgresql://host/db?user=me&sslpassword=anted&sslmode=require",
        "https://host/api?token=anted",
    ],
)
def test_text_is_shown_without_the_passwords_of_its_urls(url: str) -> None:
    for text in (url, f"cannot open {url!r}, sorry", f"[{url}]"):
        assert "anted" not in masked(text)
        assert "***" in masked(text)
        assert "host" in masked(text)
        assert holds_secret(text)


@pytest.mark.parametrize("text", ["postgresql://me@host:5432/db?sslmode=require", "s3://bucket/a", "a@b: c://d", ""])
def test_text_without_a_password_is_told_from_one_with(text: str) -> None:
    assert not holds_secret(text)
