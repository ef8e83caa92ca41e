"""Whether a cluster's head answers: with sockets that are there, that are not, and that come and go."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator

import pytest
import ray

from tests.support.refusals import mentions, refuses
from trainers.cluster import head
from trainers.errors import ConfigurationError, GangError, ResourcesError


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


@pytest.fixture
def port() -> Iterator[int]:
    """A port where nothing listens, and where nobody else will, since it is taken."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]


def until(there: Callable[[], object]) -> None:
    deadline = time.monotonic() + 30
    while not there():
        assert time.monotonic() < deadline
        time.sleep(0.01)


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


@pytest.mark.ray
def test_an_error_of_a_block_is_the_clusters_only_where_that_is_gone(
    ray_cluster: None, port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    with pytest.raises(RuntimeError, match="in the job"), head.watched(said.append):
        raise RuntimeError("in the job")
    monkeypatch.setattr(type(ray.get_runtime_context()), "gcs_address", f"127.0.0.1:{port}")
    with pytest.raises(ResourcesError, match="too few"), head.watched(said.append):
        raise ResourcesError("too few")
    place = f"127.0.0.1:{port}"
    with refuses(GangError, field=place, value="RuntimeError", remedy="hpo resume"), head.watched(said.append):
        raise RuntimeError("actor unavailable")
    assert not said
