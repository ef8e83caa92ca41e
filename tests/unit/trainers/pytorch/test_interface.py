"""Which network interface has an address."""

from __future__ import annotations

from trainers.pytorch.gradients.interface import interface_of


def test_the_loopback_is_found_and_an_address_of_nobody_here_is_not() -> None:
    assert interface_of("127.0.0.1") == "lo"
    assert interface_of("203.0.113.1") is None
    assert interface_of("::1") is None
