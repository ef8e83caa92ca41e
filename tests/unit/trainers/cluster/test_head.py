"""Whether a cluster's head answers: with sockets that are there, that are not, and that come and go."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable

import pytest

from tests.support.refusals import mentions
from trainers.cluster import head


@pytest.mark.parametrize(
    ("address", "place"),
    [
        ("10.0.0.5:6379", ("10.0.0.5", 6379)),
        ("[fd00::1]:6379", ("fd00::1", 6379)),
        ("head.example:6379 ", ("head.example", 6379)),
        ("auto", None),
        ("local", None),
        ("ray://10.0.0.5:10001", None),
        ("10.0.0.5", None),
        (":6379", None),
    ],
)
def test_an_address_names_a_place_or_leaves_it_to_ray(address: str, place: tuple[str, int] | None) -> None:
    assert head._place(address) == place


def until(there: Callable[[], object]) -> None:
    deadline = time.monotonic() + 30
    while not there():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_head_that_goes_and_comes_back_is_told_of_once_each(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(head, "LOOK_SECONDS", 0.02)
    said: list[str] = []
    ended = threading.Event()
    first = socket.create_server(("127.0.0.1", 0))
    place = first.getsockname()
    watch = threading.Thread(target=head._watch, args=("the-head:1", place, said.append, ended))
    watch.start()
    first.close()
    until(lambda: said)
    time.sleep(0.2)
    (gone,) = said
    mentions(gone, "warning", "the-head:1", "minute", "hpo resume")
    with socket.create_server(place):
        until(lambda: len(said) == 2)
    ended.set()
    watch.join(10)
    mentions(said[1], "the-head:1")
    assert "hpo resume" not in said[1]
