"""Posts to a real server: what it gets, when it gets it again, and what is not sent."""

from __future__ import annotations

import socket
import threading
import time

import pytest

from hpo import Webhook
from hpo.notices import announcer
from hpo.notices.announcer import announce
from hpo.notices.attempts import attempted
from hpo.notices.webhook import post
from hpo.record.store import Store
from tests.support.noticed import ended_job, notice
from tests.support.receivers import Hook
from tests.support.refusals import mentions


def sent(hook: Webhook, seconds: float = 20.0) -> str:
    made = notice(hook, reason="<b>no</b>\r\nroom")
    return attempted(lambda step: post(hook, made, step), time.monotonic() + seconds)


def test_attempts_end_with_their_time(receiver: Hook) -> None:
    receiver.answers = [500]
    mentions(sent(Webhook(url=receiver.url), 0.5), 500, "attempt")
    assert len(receiver.posted) > 1


def test_a_server_that_answers_letter_by_letter_is_given_up(
    receiver: Hook, tmp_path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And holds no other entry up."""
    monkeypatch.setattr(announcer, "DEADLINE", 1.0)
    over = threading.Event()

    def drip(server: socket.socket) -> None:
        connection, _ = server.accept()
        with connection:
            connection.sendall(b"HTTP/1.1 200 OK\r\nX-Slow: ")
            while not over.wait(0.05):
                try:
                    connection.sendall(b"x")
                except OSError:
                    return

    with socket.create_server(("127.0.0.1", 0)) as server, Store(f"sqlite:///{tmp_path}/record.db") as store:
        thread = threading.Thread(target=drip, args=(server,), daemon=True)
        thread.start()
        slow = Webhook(url=f"http://127.0.0.1:{server.getsockname()[1]}/")
        ended_job(store, {"slow": slow, "fast": Webhook(url=receiver.url)})
        said: list[str] = []
        announce(store, "job", said.append)
        over.set()
        thread.join(10)
    assert receiver.events() == ["ended"]
    late, ready = said
    assert late.startswith("warning: ")
    mentions(late, "ended", "slow", "127.0.0.1", "1 s")
    assert not ready.startswith("warning: ")
    mentions(ready, "ended", "fast", "127.0.0.1")
