"""Ports for servers that tests start, below those that the system gives away."""

from __future__ import annotations

import secrets
import socket
from contextlib import suppress

FIRST, LAST = 20_000, 32_767
"""Above those of Ray's workers (10002 to 19999), and below those that Linux gives to who names none (from 32768)."""


def free_port() -> int:
    """A port of this machine that nobody listens on.

    A server may take seconds to start, in which the system gives the ports of its own range to others: Ray's agent, for
    one, then runs without its HTTP server. Two tests at once rarely draw the same of those below.
    """
    for _ in range(100):
        port = FIRST + secrets.randbelow(LAST + 1 - FIRST)
        with suppress(OSError), socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(("", port))
            return port
    raise AssertionError(f"100 ports from {FIRST} to {LAST} were all in use")
