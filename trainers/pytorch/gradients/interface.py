"""The network interface with a given address."""

from __future__ import annotations

import fcntl
import socket
import struct

_ADDRESS_OF = 0x8915
"""Linux's SIOCGIFADDR: the IPv4 address of an interface."""


def interface_of(address: str) -> str | None:
    """The interface that has an IPv4 address; None where none is found, or the system cannot be asked."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
        for _, name in socket.if_nameindex():
            try:
                answer = fcntl.ioctl(asked, _ADDRESS_OF, struct.pack("256s", name.encode()[:15]))
            except OSError:
                continue  # It has no such address, or this is no Linux.
            if socket.inet_ntoa(answer[20:24]) == address:
                return name
    return None
