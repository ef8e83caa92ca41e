"""Receivers of notices: a real HTTP server with the answers that a test wants, and a real SMTP server."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from aiosmtpd.controller import Controller

WAIT_SECONDS = 60.0


@dataclass(frozen=True)
class Posted:
    """One request."""

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def content(self) -> dict[str, Any]:
        return json.loads(self.body)


@dataclass
class Hook:
    """An HTTP server: `answers` are statuses, one a request, of which the last stays; `before` is called first."""

    url: str
    answers: list[int] = field(default_factory=lambda: [200])
    before: Callable[[int], None] = lambda number: None
    posted: list[Posted] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def wait_for(self, number: int) -> list[Posted]:
        """The requests, once there are so many."""
        deadline = time.monotonic() + WAIT_SECONDS
        while len(self.posted) < number:
            assert time.monotonic() < deadline, f"{len(self.posted)} of {number} requests came"
            time.sleep(0.02)
        return list(self.posted)

    def events(self) -> list[str]:
        return [each.headers["X-Warmband-Event"] for each in self.posted]


@contextmanager
def hook() -> Iterator[Hook]:
    """A server of notices on a port of this machine."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            with made.lock:
                made.posted.append(Posted(path=self.path, headers=dict(self.headers), body=body))
                number = len(made.posted)
                status = made.answers.pop(0) if len(made.answers) > 1 else made.answers[0]
            made.before(number)
            self.send_response(status)
            if 300 <= status < 400:
                self.send_header("Location", f"{made.url}/elsewhere")
            self.send_header("Content-Length", "0")
            self.end_headers()

        do_GET = do_POST  # noqa: N815

        def log_message(self, format: str, *arguments: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    made = Hook(f"http://127.0.0.1:{server.server_address[1]}")
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield made
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)


@dataclass
class Mailbox:
    """An SMTP server: its port, the mail that it took, and the addresses that it refuses."""

    port: int = 0
    mail: list[EmailMessage] = field(default_factory=list)
    recipients: list[list[str]] = field(default_factory=list)
    refused: Sequence[str] = ()
    answers: list[str] = field(default_factory=list)
    """Answers to messages in the place of taking them, one each."""

    async def handle_RCPT(  # noqa: N802
        self, server: Any, session: Any, envelope: Any, address: str, options: Any
    ) -> str:
        if address in self.refused:
            return "550 no such mailbox"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:  # noqa: N802
        if self.answers:
            return self.answers.pop(0)
        self.mail.append(message_from_bytes(envelope.content, policy=policy.default))
        self.recipients.append(list(envelope.rcpt_tos))
        return "250 OK"


class _AnyPort(Controller):
    """aiosmtpd's controller, on a port that the machine chooses."""

    def _trigger_server(self) -> None:
        self.port = self.server.sockets[0].getsockname()[1]
        super()._trigger_server()


@contextmanager
def mailbox(**options: Any) -> Iterator[Mailbox]:
    """A server of mail on a port of this machine; the options are aiosmtpd's."""
    box = Mailbox()
    controller = _AnyPort(box, hostname="127.0.0.1", port=0, ready_timeout=WAIT_SECONDS, **options)
    controller.start()
    try:
        box.port = controller.port
        yield box
    finally:
        controller.stop()
