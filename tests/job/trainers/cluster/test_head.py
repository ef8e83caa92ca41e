"""Whether a cluster's head answers: with sockets that are there, that are not, and that come and go."""

from __future__ import annotations

import socket
import threading

import pytest

from tests.support.refusals import refuses
from tests.support.trainers.cluster.head import port  # noqa: F401  # A fixture.
from trainers.cluster import head
from trainers.errors import ConfigurationError


def test_a_head_that_is_not_there_is_waited_for_and_named(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(head, "ANSWER_SECONDS", 0.2)
    place = f"127.0.0.1:{port}"
    with refuses(ConfigurationError, field="RAY_ADDRESS", value=place, remedy=("0.2 s", "refused", "ray start --head")):
        head.join(place)


def test_a_head_that_comes_up_meanwhile_is_joined() -> None:
    with socket.socket() as late:
        late.bind(("127.0.0.1", 0))
        place = late.getsockname()
        threading.Timer(0.2, late.listen).start()
        head._wait_for("an address", place)
