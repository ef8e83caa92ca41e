"""The server's process: uvicorn with bounds of time, and an end within a deadline."""

from __future__ import annotations

import asyncio
import os
import resource
import socket
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any, ClassVar

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from hpo.serve.app import make_app
from hpo.serve.connections import Connections
from hpo.serve.service import Service
from hpo.serve.settings import ServeSettings
from trainers.errors import ConfigurationError

MOST_HEAD = 64 * 1024
"""Bytes of a request's head."""

OTHER_FILES = 256
"""Files that the server has open beside connections: databases, logs, pipes of processes."""


_TOO_MANY = (
    b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 5\r\nConnection: close\r\nContent-Length: 22\r\n\r\n"
    b"too many connections\r\n"
)


class BoundedProtocol(H11Protocol):
    """uvicorn's protocol, which waits for a request's head, and for a client to take its response, as long as it takes.

    This one does not, and counts connections.
    """

    head_seconds: ClassVar[float] = 10.0
    send_seconds: ClassVar[float] = 20.0
    open: ClassVar[dict[tuple[str, int], asyncio.Transport]] = {}
    counted: ClassVar[Connections[BoundedProtocol]]
    _timer: asyncio.TimerHandle | None = None
    _taking: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """As asyncio has it."""
        super().connection_made(transport)
        taken, over = self.counted.takes(self, self.client[0] if self.client else "")
        if over is not None:
            over.transport.abort()
        if not taken:
            transport.write(_TOO_MANY)
            transport.close()
            return
        if self.client is not None:
            self.open[self.client] = transport
        self._timer = self.loop.call_later(self.head_seconds, self._too_late)

    def data_received(self, data: bytes) -> None:
        """As asyncio has it."""
        super().data_received(data)
        waiting = self.cycle is None or self.cycle.response_complete
        self.counted.wait(self, waiting)
        if not waiting and self._timer is not None:
            self._timer.cancel()
            self._timer = None
        elif waiting and self._timer is None:
            self._timer = self.loop.call_later(self.head_seconds, self._too_late)

    def connection_lost(self, exc: Exception | None) -> None:
        """As asyncio has it."""
        for timer in (self._timer, self._taking):
            if timer is not None:
                timer.cancel()
        self.counted.forget(self)
        if self.client is not None and self.open.get(self.client) is self.transport:
            del self.open[self.client]
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        """As uvicorn has it."""
        self.counted.wait(self, True)
        super().on_response_complete()

    def pause_writing(self) -> None:
        """As asyncio has it: the client has not taken yet what was written."""
        super().pause_writing()
        self._look_what_is_taken(None)

    def resume_writing(self) -> None:
        """As asyncio has it."""
        super().resume_writing()
        if self._taking is not None:
            self._taking.cancel()

    def timeout_keep_alive_handler(self) -> None:
        """As uvicorn has it, which closes once all is taken; a little that is not taken would keep the connection."""
        if self.transport.get_write_buffer_size() and not self.flow.write_paused:
            self.transport.abort()
        else:
            super().timeout_keep_alive_handler()

    def _look_what_is_taken(self, before: int | None) -> None:
        """Cuts a client off that has taken nothing since the look before; `before` are the bytes that were left."""
        left = self.transport.get_write_buffer_size()
        if before is not None and left >= before:
            self.transport.abort()
        else:
            self._taking = self.loop.call_later(self.send_seconds, self._look_what_is_taken, left)

    def _too_late(self) -> None:
        self._timer = None
        if self.cycle is None or self.cycle.response_complete:
            self.transport.abort()


class _Server(uvicorn.Server):
    """Ends streams of events first, which else would last until the deadline."""

    def __init__(self, config: uvicorn.Config, end: Callable[[], None]) -> None:
        super().__init__(config)
        self._end = end

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        super().handle_exit(sig, frame)
        asyncio.get_running_loop().call_soon_threadsafe(self._end)


def run(settings: ServeSettings, say: Callable[[str], Any]) -> None:
    """Serves until SIGTERM or Ctrl-C.

    Args:
        settings: of the server.
        say: prints a line.

    Raises:
        ConfigurationError: it cannot listen there, or not without tokens, or a file or the record's URL is wrong.
    """
    service = Service(settings)
    token = ""
    if not len(service.tokens):
        if not settings.on_loopback:
            raise ConfigurationError(
                f"host is {settings.host!r}, which other machines can reach, and {service.tokens.file} has no token; "
                "make one first: hpo serve token NAME"
            )
        token = service.tokens.add("first", "act")
    app = make_app(settings, service)
    listening = _listening(settings)
    port = listening.getsockname()[1]
    shown = f"[{settings.host}]" if ":" in settings.host else settings.host
    say(f"Serving on http://{shown}:{port}")
    if token and (first := service.tokens.find(token)) is not None:
        say(f"Log in, once and within 10 minutes: http://{shown}:{port}/login?code={service.codes.begin(first)}")
        say(f"The token of {first.name!r}, which is shown this once: {token}")
    BoundedProtocol.counted = Connections(_most_open(settings.connections), settings.connections_of_one)
    BoundedProtocol.head_seconds, BoundedProtocol.send_seconds = settings.header_seconds, settings.send_seconds
    service.drop = _drop
    config = uvicorn.Config(
        app,
        http=BoundedProtocol,
        ws="none",
        lifespan="on",
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        h11_max_incomplete_event_size=MOST_HEAD,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=max(1, round(settings.end_seconds)),
    )
    try:
        _Server(config, service.end).run(sockets=[listening])
    finally:
        # A thread that waits for a database that hangs does not keep the process.
        last = threading.Timer(settings.end_seconds, os._exit, (0,))
        last.daemon = True
        last.start()


def _most_open(wanted: int) -> int:
    """How many connections may be open: as many as are wanted, if the process may have so many files open."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = wanted + OTHER_FILES
    if soft != resource.RLIM_INFINITY and soft < needed:
        soft = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        return max(1, soft - OTHER_FILES)
    return wanted


def _drop(client: tuple[str, int] | None) -> None:
    """Cuts a client off that takes nothing: what is left for it would else be kept until the kernel gives it up."""
    if client is not None and (transport := BoundedProtocol.open.get((client[0], client[1]))) is not None:
        transport.abort()


def _listening(settings: ServeSettings) -> socket.socket:
    try:
        family, _, _, _, address = socket.getaddrinfo(settings.host, settings.port, type=socket.SOCK_STREAM)[0]
        made = socket.socket(family, socket.SOCK_STREAM)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(address)
    except OSError as error:
        raise ConfigurationError(
            f"{settings.host} port {settings.port} cannot be listened on: {error.strerror or error}; give --port"
        ) from error
    made.listen(2048)
    return made
