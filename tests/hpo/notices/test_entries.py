"""Entries of notices: what is refused, and what the record keeps of them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hpo import Email, Webhook
from hpo.notices.entries import check_notices, entries_from_json, unset
from trainers.errors import ConfigurationError

MAIL = {"host": "smtp.example.org", "sender": "hpo@example.org", "to": ["team@example.org"]}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, "url and url_variable: give one of them"),
        ({"url": "https://h/x", "url_variable": "WARMBAND_NOTICE_URL"}, "give one of them"),
        ({"url": "ftp://host/hook"}, "url is not of http or https"),
        ({"url": "file:///etc/passwd"}, "url is not of http or https"),
        ({"url": "https:///hook"}, "url is not of http or https"),
        ({"url": "https://me:hunter2@host/hook"}, "url has a user, a password"),
        ({"url": "https://host/hook?token=hunter2"}, "url has a query, which may hold a key"),
        ({"url": "https://host/hook#hunter2"}, "or a fragment"),
        ({"url": "https://host:99999/hunter2"}, "url is no URL"),
        ({"url": "https://host/a\r\nX-Evil: hunter2"}, "url is no URL"),
        ({"url": "https://host/", "secret_variable": "hunter2"}, "secret_variable names no such variable"),
        ({"url": "https://host/", "secret_variable": "AWS_SECRET_ACCESS_KEY"}, "WARMBAND_NOTICE_ and then capital"),
        ({"url_variable": "https://host/hunter2"}, "url_variable names no such variable"),
        ({"url": "https://host/", "events": []}, "events is []; give a list of some of ended, failed"),
        ({"url": "https://host/", "events": "failed"}, "events is 'failed'; give a list"),
        (
            {"url": "https://host/", "events": ["faild"]},
            "events has 'faild'; give some of ended, failed, stopped, budget",
        ),
        ({"url": "https://host/", "budget_share": 0}, "budget_share is 0; give a number above 0"),
        ({"url": "https://host/", "budget_share": 1.5}, "budget_share is 1.5"),
        ({"url": "https://host/", "budget_share": float("nan")}, "budget_share is nan"),
    ],
)
def test_a_webhook_that_cannot_be_is_refused_without_its_secret(given: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        Webhook(**given)
    assert words in str(caught.value)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"host": "smtp example"}, "host is 'smtp example'"),
        ({"port": 0}, "port is 0"),
        ({"port": True}, "port is True"),
        ({"to": []}, "to is []"),
        ({"to": "team@example.org"}, "to is 'team@example.org'; give a list"),
        ({"to": ["team@example.org\nBcc: x@y"]}, "to has"),
        ({"to": ["a@b, c@d"]}, "to has 'a@b, c@d'"),
        ({"sender": "nobody"}, "sender has 'nobody'; give an address"),
        ({"starttls": 1}, "starttls is 1"),
        ({"user_variable": "WARMBAND_NOTICE_USER"}, "go together"),
        ({"password_variable": "hunter2", "user_variable": "WARMBAND_NOTICE_USER"}, "password_variable names no such"),
        (
            {
                "user_variable": "WARMBAND_NOTICE_USER",
                "password_variable": "WARMBAND_NOTICE_PASSWORD",
                "starttls": False,
            },
            "the password would be sent as it is",
        ),
    ],
)
def test_mail_that_cannot_be_is_refused(given: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        Email(**{**MAIL, **given})
    assert words in str(caught.value)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("notices", [[Webhook(url="https://h/")], {"": Webhook(url="https://h/")}, {"a\nb": None}])
def test_notices_are_entries_by_name(notices: Any) -> None:
    with pytest.raises(ConfigurationError, match="notices"):
        check_notices(notices)
    with pytest.raises(ConfigurationError, match=r"give hpo.Webhook\(...\)"):
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
