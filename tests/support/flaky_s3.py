"""A proxy in front of an S3 server, which counts what is fetched and answers some requests with errors of its own."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

_ERROR = '<?xml version="1.0"?><Error><Code>{code}</Code><Message>{code} of a test</Message></Error>'
Fault = Callable[[str, str], tuple[int, str] | None]


@dataclass
class Proxy:
    """Requests that went through the proxy.

    Args:
        port: where it listens.
        fault: what it answers to a method and a path, as (status, S3's code); None passes the request on.
        got: paths of objects that were fetched, and bytes of each answer.
        refused: how many requests it answered itself.
    """

    port: int = 0
    fault: Fault = lambda method, path: None
    got: list[tuple[str, int]] = field(default_factory=list)
    refused: int = 0

    def uri(self, path: str) -> str:
        """Of an object or folder behind it."""
        return f"s3://{path}?region=us-east-1&endpoint_override=http%3A%2F%2F127.0.0.1%3A{self.port}"


@contextmanager
def proxied(host: str, port: int) -> Iterator[Proxy]:
    """A proxy in front of a server."""
    proxy, lock = Proxy(), threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _serve(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            said = proxy.fault(self.command, self.path)
            if said is not None:
                with lock:
                    proxy.refused += 1
                text = _ERROR.format(code=said[1]).encode()
                self._answer(said[0], [("Content-Type", "application/xml")], text)
                return
            connection = http.client.HTTPConnection(host, port, timeout=30)
            connection.request(self.command, self.path, body, dict(self.headers))
            answer = connection.getresponse()
            data = answer.read()
            if self.command == "GET":
                with lock:
                    proxy.got.append((self.path.partition("?")[0], len(data)))
            kept = [(k, v) for k, v in answer.getheaders() if k.lower() not in ("transfer-encoding", "connection")]
            self._answer(answer.status, kept, data)
            connection.close()

        def _answer(self, status: int, headers: list[tuple[str, str]], data: bytes) -> None:
            self.send_response_only(status)
            for name, value in headers:
                if name.lower() != "content-length" or self.command == "HEAD":
                    self.send_header(name, value)
            if self.command != "HEAD":
                self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(data)

        do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = _serve  # noqa: N815

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    proxy.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield proxy
    server.shutdown()
    server.server_close()
