"""Sockets of a parameter server, with a thread for each worker."""

from __future__ import annotations

import contextlib
import logging
import os
import pickle
import socket
import threading
from collections.abc import Callable
from typing import Any, Protocol

from trainers.errors import GangError, TrialError, WarmbandError
from trainers.parameter_server.flat import raw
from trainers.parameter_server.opening import Opening
from trainers.parameter_server.server.server import Server, Session
from trainers.parameter_server.wire import Address, Answer, Ask, Stream, failure_of, greet, kind_of, unpack_number

logger = logging.getLogger(__name__)


class Serving(Protocol):
    """What serves one worker over its connection."""

    def serve(self) -> None:
        """Answers until the worker is gone.

        Raises:
            OSError: it is.
        """


class Listener:
    """Serves whoever knows the token, until it is closed.

    Args:
        server: what is served; it has a `name`.
        host: the address to listen on.
        token: what callers have to show first; nothing of theirs is interpreted before.
        caller: makes what serves a worker, given the server, the connection and the worker's rank; None: that of a
            `Server`.
    """

    def __init__(
        self, server: Any, host: str, token: bytes, caller: Callable[[Any, Stream, int], Serving] | None = None
    ) -> None:
        self._server = server
        self._caller: Callable[[Any, Stream, int], Serving] = caller or _Caller
        self._token = token
        self._socket = socket.create_server((host, 0), backlog=128)
        self._streams: set[Stream] = set()
        self._threads = [threading.Thread(target=self._accept, name=f"{server.name} accepts", daemon=True)]
        port = int(self._socket.getsockname()[1])
        self.address = Address(name=server.name, host=host, port=port, token=token, pid=os.getpid())
        self._threads[0].start()

    def close(self) -> None:
        """Ends all connections."""
        # Closing alone does not wake who waits in it.
        for stream in [*self._streams]:
            stream.shut()
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        for thread in self._threads:
            thread.join(10.0)

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return  # Closed.
            name = f"{self._server.name} serves"
            thread = threading.Thread(target=self._serve, args=(connection,), name=name, daemon=True)
            thread.start()
            self._threads = [*filter(threading.Thread.is_alive, self._threads), thread]

    def _serve(self, connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            rank = greet(connection, self._token)
            if rank is None:
                logger.warning("%s refused a caller without its token", self._server.name)
                return
            stream = Stream(connection)
            self._streams.add(stream)
            try:
                self._caller(self._server, stream, rank).serve()
            finally:
                self._streams.discard(stream)


class _Caller:
    """One worker that is connected, and the training that it takes part in."""

    def __init__(self, server: Server, stream: Stream, rank: int) -> None:
        self._server = server
        self._stream = stream
        self._rank = rank
        self._session: Session | None = None
        self._left = False
        self._gradients: list[memoryview] = []
        self._values: list[memoryview] = []

    def serve(self) -> None:
        """Answers until the worker is gone; others who wait for it are told then."""
        try:
            while True:
                self._answer(*self._stream.receive())
        finally:
            if self._session is not None and not self._left:
                failure = GangError(f"rank {self._rank} is gone, says {self._server.name}")
                self._server.gone(self._session, self._rank, failure)

    def _answer(self, kind: int, number: int, size: int, follows: int) -> None:
        note = self._stream.note(size)
        if follows:
            for gradients in self._gradients:
                self._stream.fill(gradients)
        try:
            if kind in (Ask.BEGIN, Ask.JOIN):
                self._enter(kind, note)
                self._stream.send(Answer.DONE)
                return
            session = self._session
            if session is None:
                raise ConnectionAbortedError(f"rank {self._rank} asks for {kind} and takes part in no training")
            if kind == Ask.PUSH:
                self._server.carry(session, session.up, follows)
                self._server.push(session, self._rank, number, pickle.loads(note) if note else None)
                self._hand_out(session)
            elif kind == Ask.CLIP:
                self._server.clip(session, unpack_number(note))
                self._hand_out(session)
            elif kind == Ask.MEET:
                self._server.meet(session, self._rank, unpack_number(note))
                self._server.pull(session, self._rank, met=True)
                self._stream.send(Answer.DONE, 0, session.met_state if self._rank == 0 else b"", self._values)
            elif kind == Ask.ACCOUNT:
                self._stream.send(Answer.DONE, 0, pickle.dumps(self._server.account(session)))
            elif kind == Ask.LEAVE:
                self._left = True
                self._server.gone(session, self._rank, failure_of(number, note.decode()))
        except OSError:
            raise
        except WarmbandError as error:
            self._stream.send(kind_of(error), 0, str(error).encode())
        except Exception as error:
            logger.exception("%s could not answer rank %d", self._server.name, self._rank)
            answer = TrialError(f"{self._server.name}: {type(error).__name__}: {error}")
            self._stream.send(kind_of(answer), 0, str(answer).encode())

    def _hand_out(self, session: Session) -> None:
        """The values, or what the worker has to hear before."""
        if norm := self._server.pull(session, self._rank):
            self._stream.send(Answer.DONE, 0, norm)
            return
        self._server.carry(session, session.down, session.bytes)
        self._stream.send(Answer.DONE, 0, b"", self._values)

    def _enter(self, kind: int, note: bytes) -> None:
        server = self._server
        session = server.begin(Opening.unpack(note)) if kind == Ask.BEGIN else server.join(note.decode())
        desk = session.desks[self._rank]
        self._gradients, self._values = list(map(raw, desk.gradients)), list(map(raw, desk.values))
        self._session, self._left = session, False
