"""The protocol between worker and parameter server: short headers, then tensors as they lie in memory."""

from __future__ import annotations

import contextlib
import hmac
import pickle
import socket
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from torch import Tensor

from trainers.errors import DivergedError, GangError, TrialError, WarmbandError
from trainers.parameter_server.flat import raw
from trainers.parameter_server.opening import Opening, Options

_HEAD = struct.Struct("<BIIQ")
_NUMBER = struct.Struct("<d")
_RANK = struct.Struct("<I")
_WELCOME = b"\x01"
CONNECT_SECONDS = 30.0
"""How long connecting and showing the token may take."""

GRACE_SECONDS = 30.0
"""A server is given so much more than its own patience before it counts as gone."""


class Ask(IntEnum):
    """Questions of a worker; `LEAVE` alone has no answer."""

    BEGIN = 1
    JOIN = 2
    PUSH = 3
    MEET = 4
    ACCOUNT = 5
    LEAVE = 6
    CLIP = 7


class Answer(IntEnum):
    """How a server answers: as asked, or with an error of one of these kinds."""

    DONE = 0
    TRIAL = 1
    DIVERGED = 2
    GANG = 3


_ERRORS: dict[Answer, type[WarmbandError]] = {
    Answer.TRIAL: TrialError,
    Answer.DIVERGED: DivergedError,
    Answer.GANG: GangError,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Where a server listens, and what has to be shown there.

    Args:
        name: for messages, as in "parameter server 1".
        host: address of its node.
        port: of its socket.
        token: 32 random bytes that only the workers of its gang know.
        pid: of its process, on that node.
    """

    name: str
    host: str
    port: int
    token: bytes
    pid: int = 0

    def __repr__(self) -> str:
        return f"Address({self.name!r}, {self.host}:{self.port}, pid={self.pid})"  # The token stays out of logs.


class Stream:
    """Heads, notes and buffers over one connected socket.

    Raises:
        OSError: the other side is gone, or did not send in time.
    """

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._head = bytearray(_HEAD.size)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        # A node that vanishes without a word is noticed after a minute.
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for option, value in (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3)):
            if hasattr(socket, option):
                connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)

    def send(self, kind: int, number: int = 0, note: bytes = b"", buffers: Sequence[memoryview] = ()) -> None:
        """Sends a head, a note and buffers."""
        parts: list[Any] = [_HEAD.pack(kind, number, len(note), sum(map(len, buffers))), note, *buffers]
        sent = self._connection.sendmsg(parts)
        for part in parts:
            if sent < len(part):
                self._connection.sendall(memoryview(part)[sent:])
            sent = max(0, sent - len(part))

    def receive(self) -> tuple[int, int, int, int]:
        """The next head: kind, number, and the bytes of the note and of the buffers behind it."""
        self.fill(memoryview(self._head))
        kind, number, note, size = _HEAD.unpack(self._head)
        return kind, number, note, size

    def note(self, size: int) -> bytes:
        """The note behind a head."""
        if not size:
            return b""
        note = bytearray(size)
        self.fill(memoryview(note))
        return bytes(note)

    def fill(self, buffer: memoryview) -> None:
        """Receives into a buffer until it is full."""
        done = 0
        while done < len(buffer):
            count = self._connection.recv_into(buffer[done:] if done else buffer, 0, socket.MSG_WAITALL)
            if not count:
                raise ConnectionResetError("the other side closed the connection")
            done += count

    def limit(self, seconds: float) -> None:
        """How long each transfer may take; by the system's own clock, which costs no further call."""
        limit = struct.pack("ll", int(seconds), 0)
        self._connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, limit)
        self._connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)

    def shut(self) -> None:
        """Wakes whoever waits in it: the connection is over."""
        with contextlib.suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Ends the connection."""
        self._connection.close()


def greet(connection: socket.socket, token: bytes) -> int | None:
    """A server's side of the first words: the rank of who calls, or None if it does not know the token."""
    connection.settimeout(CONNECT_SECONDS)
    greeting = b""
    while len(greeting) < len(token) + _RANK.size:
        more = connection.recv(len(token) + _RANK.size - len(greeting))
        if not more:
            return None
        greeting += more
    if not hmac.compare_digest(greeting[: len(token)], token):
        return None
    connection.sendall(_WELCOME)
    connection.settimeout(None)
    return int(_RANK.unpack(greeting[len(token) :])[0])


class SocketLink:
    """A worker's link to one server, over a socket that stays open from one training to the next.

    Args:
        address: of the server.
        rank: of the worker.
    """

    def __init__(self, address: Address, rank: int) -> None:
        self.name = address.name
        self.address = address
        self._rank = rank
        self._stream: Stream | None = None
        self._open = False
        self._asked = False
        self._gradients: list[memoryview] = []
        self._values: list[memoryview] = []

    def begin(self, opening: Opening, gradients: Sequence[Tensor], values: Sequence[Tensor]) -> None:
        """See `Link.begin`."""
        self._enter(opening.patience, gradients, values)
        self._ask(Ask.BEGIN, note=opening.pack())
        self.pull()

    def join(self, session: str, patience: float, gradients: Sequence[Tensor], values: Sequence[Tensor]) -> None:
        """See `Link.join`."""
        self._enter(patience, gradients, values)
        self._ask(Ask.JOIN, note=session.encode())
        self.pull()

    def push(self, rows: int, options: Options | None) -> None:
        """See `Link.push`."""
        note = pickle.dumps(options) if options is not None else b""
        self._ask(Ask.PUSH, rows, note, self._gradients if rows else ())

    def clip(self, norm: float) -> None:
        """See `Link.clip`."""
        self._ask(Ask.CLIP, note=pack_number(norm))

    def meet(self, waited: float) -> None:
        """See `Link.meet`."""
        self._ask(Ask.MEET, note=pack_number(waited))

    def pull(self) -> bytes:
        """See `Link.pull`."""
        try:
            stream = self._connected()
            kind, _, size, follows = stream.receive()
            note = stream.note(size)
            if follows:
                for buffer in self._values:
                    stream.fill(buffer)
        except OSError as error:
            raise self._lost(error) from error
        self._asked = False
        if kind != Answer.DONE:
            raise failure_of(kind, note.decode())
        return note

    def account(self) -> dict[str, Any]:
        """See `Link.account`."""
        self._ask(Ask.ACCOUNT)
        account: dict[str, Any] = pickle.loads(self.pull())
        return account

    def leave(self, failure: WarmbandError) -> None:
        """See `Link.leave`."""
        if self._open:
            self._open = False
            with contextlib.suppress(GangError):
                self._send(Ask.LEAVE, kind_of(failure), str(failure).encode())

    def close(self) -> None:
        """Ends the connection."""
        if self._stream is not None:
            self._stream.close()
            self._stream = None

    def _enter(self, patience: float, gradients: Sequence[Tensor], values: Sequence[Tensor]) -> None:
        if self._asked:
            self.close()  # The answer to something that was broken off would be taken for another's.
        if self._stream is None:
            self._stream = self._connect()
        self._stream.limit(patience + GRACE_SECONDS)
        self._gradients, self._values = list(map(raw, gradients)), list(map(raw, values))
        self._open = True

    def _connect(self) -> Stream:
        address = self.address
        try:
            connection = socket.create_connection((address.host, address.port), CONNECT_SECONDS)
            try:
                connection.sendall(address.token + _RANK.pack(self._rank))
                if connection.recv(1) != _WELCOME:
                    raise ConnectionRefusedError("it does not know this gang")
                connection.settimeout(None)
                return Stream(connection)
            except OSError:
                connection.close()
                raise
        except OSError as error:
            raise self._lost(error) from error

    def _ask(self, ask: Ask, number: int = 0, note: bytes = b"", buffers: Sequence[memoryview] = ()) -> None:
        self._asked = True
        self._send(ask, number, note, buffers)

    def _send(self, ask: Ask, number: int = 0, note: bytes = b"", buffers: Sequence[memoryview] = ()) -> None:
        try:
            self._connected().send(ask, number, note, buffers)
        except OSError as error:
            raise self._lost(error) from error

    def _connected(self) -> Stream:
        if self._stream is None:
            raise ConnectionResetError("it was gone before")
        return self._stream

    def _lost(self, error: OSError) -> GangError:
        self.close()
        self._open = self._asked = False
        silent = isinstance(error, BlockingIOError | TimeoutError)
        reason = "did not answer in time" if silent else f"is gone ({error})"
        return GangError(f"{self.name} at {self.address.host}:{self.address.port} {reason}")


def kind_of(failure: WarmbandError) -> Answer:
    """How an error is told over the wire."""
    return next((kind for kind, error in _ERRORS.items() if type(failure) is error), Answer.TRIAL)


def failure_of(kind: int, text: str) -> WarmbandError:
    """The error that was told so."""
    return _ERRORS[Answer(kind)](text)


def pack_number(number: float) -> bytes:
    """A note of one number, such as seconds or a norm."""
    return _NUMBER.pack(number)


def unpack_number(note: bytes) -> float:
    """The number in a note."""
    return float(_NUMBER.unpack(note)[0])
