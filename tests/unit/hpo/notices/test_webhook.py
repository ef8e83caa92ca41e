"""Posts to a real server: what it gets, when it gets it again, and what is not sent."""

from __future__ import annotations

import hashlib
import hmac
import socket
import time

import pytest

from hpo import Webhook
from hpo.notices.attempts import attempted
from hpo.notices.webhook import post
from tests.support.noticed import notice
from tests.support.receivers import Hook
from tests.support.refusals import mentions

SECRET = "hunter2"


def sent(hook: Webhook, seconds: float = 20.0) -> str:
    made = notice(hook, reason="<b>no</b>\r\nroom")
    return attempted(lambda step: post(hook, made, step), time.monotonic() + seconds)


def test_a_notice_is_json_that_is_signed_with_its_time(receiver: Hook, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WARMBAND_NOTICE_SECRET", SECRET)
    before = int(time.time())
    assert not sent(Webhook(url=f"{receiver.url}/jobs", secret_variable="WARMBAND_NOTICE_SECRET"))
    [posted] = receiver.posted
    timestamp = posted.headers["X-Warmband-Timestamp"]
    assert before <= int(timestamp) <= time.time()
    mac = hmac.new(SECRET.encode(), f"{timestamp}.".encode() + posted.body, hashlib.sha256).hexdigest()
    assert posted.headers["X-Warmband-Signature"] == f"v1={mac}"
    assert posted.path == "/jobs"
    assert posted.headers["Content-Type"] == "application/json"
    assert posted.content["id"] == posted.headers["X-Warmband-Id"]
    assert (posted.content["event"], posted.content["job"]) == ("failed", "job")
    assert posted.content["reason"] == "<b>no</b>\r\nroom"
    assert posted.content["at"] == "2023-11-14T22:13:20.250000+00:00"
    assert SECRET.encode() not in posted.body


def test_without_a_secret_nothing_is_signed(receiver: Hook) -> None:
    assert not sent(Webhook(url=receiver.url))
    assert "X-Warmband-Signature" not in receiver.posted[0].headers


@pytest.mark.parametrize("status", [500, 503, 429, 408])
def test_what_may_go_better_is_tried_again_with_the_same_id(receiver: Hook, status: int) -> None:
    receiver.answers = [status, status, 204]
    assert not sent(Webhook(url=receiver.url))
    assert len(receiver.posted) == 3
    assert len({posted.headers["X-Warmband-Id"] for posted in receiver.posted}) == 1


@pytest.mark.parametrize("status", [400, 401, 404, 410])
def test_what_will_not_go_better_is_not_tried_again(receiver: Hook, status: int) -> None:
    receiver.answers = [status]
    mentions(sent(Webhook(url=receiver.url)), status)
    assert len(receiver.posted) == 1


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirects_are_not_followed(receiver: Hook, status: int) -> None:
    receiver.answers = [status]
    mentions(sent(Webhook(url=receiver.url)), status, "redirects", "URL")
    assert [posted.path for posted in receiver.posted] == ["/"]


def test_nobody_who_listens_is_said_without_the_url(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    monkeypatch.setenv("WARMBAND_NOTICE_URL", f"http://127.0.0.1:{port}/{SECRET}")
    said = sent(Webhook(url_variable="WARMBAND_NOTICE_URL"), 0.1)
    mentions(said, "Connection refused", "attempt", 4)
    assert SECRET not in said
    assert str(port) not in said


@pytest.mark.parametrize("url", [f"ftp://host/{SECRET}", f"http://host/{SECRET} x", f"http://{SECRET}@host/", ""])
def test_a_variable_with_no_such_url_is_refused_without_it(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WARMBAND_NOTICE_URL", url)
    said = sent(Webhook(url_variable="WARMBAND_NOTICE_URL"))
    assert "WARMBAND_NOTICE_URL" in said
    assert SECRET not in said
