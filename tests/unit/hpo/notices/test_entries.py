"""Entries of notices: what is refused, and what the record keeps of them."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import pytest

from hpo import Email, Webhook
from hpo.notices.entries import check_notices, entries_from_json, unset
from tests.support.refusals import refuses, refuses_each
from trainers.errors import ConfigurationError

MAIL = {"host": "smtp.example.org", "sender": "hpo@example.org", "to": ["team@example.org"]}


EVENTS = ("ended", "failed", "stopped", "budget")


def test_a_webhook_that_cannot_be_is_refused_without_its_secret() -> None:
    url = "https://host/"
    cases: list[tuple[dict[str, Any], tuple[object, ...]]] = [
        ({}, ("url", "url_variable")),
        ({"url": "https://h/x", "url_variable": "WARMBAND_NOTICE_URL"}, ("url", "url_variable")),
        ({"url": "ftp://host/hook"}, ("url", "http", "https")),
        ({"url": "file:///etc/passwd"}, ("url", "http", "https")),
        ({"url": "https:///hook"}, ("url", "http", "https")),
        ({"url": "https://me:hunter2@host/hook"}, ("url", "user", "password")),
        ({"url": "https://host/hook?token=hunter2"}, ("url", "query", "key", "url_variable")),
        ({"url": "https://host/hook#hunter2"}, ("url", "fragment")),
        ({"url": "https://host:99999/hunter2"}, ("url", "https://example.org/hook")),
        ({"url": "https://host/a\r\nX-Evil: hunter2"}, ("url", "https://example.org/hook")),
        ({"url": url, "secret_variable": "hunter2"}, ("secret_variable", "WARMBAND_NOTICE_")),
        ({"url": url, "secret_variable": "AWS_SECRET_ACCESS_KEY"}, ("secret_variable", "WARMBAND_NOTICE_")),
        ({"url_variable": "https://host/hunter2"}, ("url_variable", "WARMBAND_NOTICE_")),
        ({"url": url, "events": []}, ("events", "[]", *EVENTS)),
        ({"url": url, "events": "failed"}, ("events", "'failed'", *EVENTS)),
        ({"url": url, "events": ["faild"]}, ("events", "faild", *EVENTS)),
        ({"url": url, "budget_share": 0}, ("budget_share", 0, 1)),
        ({"url": url, "budget_share": 1.5}, ("budget_share", 1.5, 0, 1)),
        ({"url": url, "budget_share": float("nan")}, ("budget_share", "nan", 0, 1)),
    ]
    refuses_each([(partial(Webhook, **given), names) for given, names in cases], ConfigurationError)
    assert not [given for given, _ in cases if "hunter2" in refusal_of(Webhook, given)]


def refusal_of(kind: type[Webhook | Email], given: dict[str, Any]) -> str:
    with pytest.raises(ConfigurationError) as caught:
        kind(**given)
    return str(caught.value)


def test_mail_that_cannot_be_is_refused() -> None:
    user, password = "WARMBAND_NOTICE_USER", "WARMBAND_NOTICE_PASSWORD"
    cases: list[tuple[dict[str, Any], tuple[object, ...]]] = [
        ({"host": "smtp example"}, ("host", "smtp example")),
        ({"port": 0}, ("port", 0, 65535)),
        ({"port": True}, ("port", True, 65535)),
        ({"to": []}, ("to", "[]", "addresses")),
        ({"to": "team@example.org"}, ("to", "'team@example.org'", "addresses")),
        ({"to": ["team@example.org\nBcc: x@y"]}, ("to", r"team@example.org\nBcc: x@y")),
        ({"to": ["a@b, c@d"]}, ("to", "a@b, c@d")),
        ({"sender": "nobody"}, ("sender", "nobody", "address")),
        ({"starttls": 1}, ("starttls", 1, True, False)),
        ({"user_variable": user}, ("user_variable", "password_variable")),
        ({"password_variable": "hunter2", "user_variable": user}, ("password_variable", "WARMBAND_NOTICE_")),
        (
            {"user_variable": user, "password_variable": password, "starttls": False},
            ("starttls", False, "password"),
        ),
    ]
    cases = [({**MAIL, **given}, names) for given, names in cases]
    refuses_each([(partial(Email, **given), names) for given, names in cases], ConfigurationError)
    assert not [given for given, _ in cases if "hunter2" in refusal_of(Email, given)]


@pytest.mark.parametrize("notices", [[Webhook(url="https://h/")], {"": Webhook(url="https://h/")}, {"a\nb": None}])
def test_notices_are_entries_by_name(notices: Any) -> None:
    with refuses(ConfigurationError, field="notices"):
        check_notices(notices)
    with refuses(ConfigurationError, field=("notices", "ops"), value="https://host/", remedy="hpo.Webhook"):
        check_notices({"ops": "https://host/"})


def test_the_record_gives_entries_back(monkeypatch: pytest.MonkeyPatch) -> None:
    entries = {
        "ops": Webhook(url_variable="WARMBAND_NOTICE_URL", secret_variable="WARMBAND_NOTICE_SECRET"),
        "team": Email(**MAIL, events=["failed", "failed"], budget_share=0.5),
    }
    state = json.loads(json.dumps({name: entry.to_json() for name, entry in entries.items()}))
    assert entries_from_json(state) == entries
    assert entries_from_json(None) == {}
    monkeypatch.setenv("WARMBAND_NOTICE_URL", "https://host/")
    assert unset(entries) == ["WARMBAND_NOTICE_SECRET"]
    assert entries["ops"].named() == "webhook, WARMBAND_NOTICE_URL"
