"""Connections of the server: how many are open, how many of one address, and which gives way to a new one."""

from __future__ import annotations

import ipaddress
from collections import Counter, OrderedDict
from typing import Generic, TypeVar

T = TypeVar("T")


class Connections(Generic[T]):
    """Open connections, which are counted.

    Args:
        most: that may be open.
        of_one: likewise, of one address that is not this machine's own: behind a proxy all come from one.
    """

    def __init__(self, most: int, of_one: int) -> None:
        self._most, self._of_one = most, of_one
        self._open: dict[T, str] = {}
        self._by_address: Counter[str] = Counter()
        self._idle: OrderedDict[T, None] = OrderedDict()

    def takes(self, connection: T, address: str) -> tuple[bool, T | None]:
        """Counts a new connection, if it may be there.

        Returns:
            Whether it may; and another one that has to be closed for it: the one that has waited longest for a request.
        """
        if self._by_address[address] >= self._of_one and not _is_own(address):
            return False, None
        over = None
        if len(self._open) >= self._most:
            if not self._idle:
                return False, None
            over = next(iter(self._idle))
            self.forget(over)
        self._open[connection] = address
        self._by_address[address] += 1
        self._idle[connection] = None
        return True, over

    def wait(self, connection: T, waits: bool) -> None:
        """Notes whether a connection waits for a request, or has one under way."""
        if not waits:
            self._idle.pop(connection, None)
        elif connection in self._open:
            self._idle.setdefault(connection, None)

    def forget(self, connection: T) -> None:
        """Does not count a connection any more."""
        address = self._open.pop(connection, None)
        self._idle.pop(connection, None)
        if address is not None:
            self._by_address[address] -= 1
            if not self._by_address[address]:
                del self._by_address[address]


def _is_own(address: str) -> bool:
    try:
        return ipaddress.ip_address(address.partition("%")[0]).is_loopback
    except ValueError:
        return False
