"""Connections: how many may be open, how many of one address, and which gives way."""

from __future__ import annotations

from hpo.serve.connections import Connections


def test_one_address_cannot_take_all_connections_and_this_machine_s_own_may() -> None:
    connections: Connections[str] = Connections(most=1000, of_one=200)
    taken = [connections.takes(f"far-{number}", "192.0.2.7")[0] for number in range(600)]
    assert sum(taken) == 200
    assert connections.takes("other", "192.0.2.8") == (True, None)
    assert all(connections.takes(f"proxied-{number}", "127.0.0.1")[0] for number in range(300))
    connections.forget("far-0")
    assert connections.takes("again", "192.0.2.7") == (True, None)
    assert not connections.takes("more", "192.0.2.7")[0]


def test_the_one_that_has_waited_longest_gives_way_and_none_with_a_request_does() -> None:
    connections: Connections[str] = Connections(most=3, of_one=3)
    for name in "abc":
        assert connections.takes(name, "::1") == (True, None)
    connections.wait("a", False)
    assert connections.takes("d", "::1") == (True, "b")
    connections.wait("c", False)
    connections.wait("c", True)
    assert connections.takes("e", "::1") == (True, "d")
    for name in "ce":
        connections.wait(name, False)
    assert connections.takes("f", "::1") == (False, None)
    connections.forget("a")
    connections.forget("a")
    assert connections.takes("f", "::1") == (True, None)
