"""The server as a process under faults: databases that are away, requests that are none, clients that take nothing."""

from __future__ import annotations

import socket
import time
from contextlib import ExitStack
from pathlib import Path

import httpx
import psutil

from hpo.record import Store, TrialRow
from tests.support.listed import job
from tests.support.rows import sqlite_url, until
from tests.support.served import served

HOST = b"Host: localhost\r\n"
MALFORMED = {
    "no request": b"\r\n\r\n",
    "no target": b"GET\r\n\r\n",
    "an unknown version": b"GET /api/jobs HTTP/9.9\r\n" + HOST + b"\r\n",
    "no host": b"GET /api/jobs HTTP/1.1\r\n\r\n",
    "two hosts": b"GET /api/jobs HTTP/1.1\r\n" + HOST + b"Host: other\r\n\r\n",
    "bytes that are no text": b"GET /\xff\xfe HTTP/1.1\r\n" + HOST + b"\r\n",
    "an escape that is none": b"GET /api/%zz%ff%00 HTTP/1.1\r\n" + HOST + b"\r\n",
    "a target that is no URL": b"GET http://[ HTTP/1.1\r\n" + HOST + b"\r\n",
    "a huge head": b"GET / HTTP/1.1\r\n" + HOST + b"X: " + b"x" * 300_000 + b"\r\n\r\n",
    "a header without a name": b"GET / HTTP/1.1\r\n" + HOST + b": x\r\n\r\n",
    "a negative length": b"POST /api/jobs HTTP/1.1\r\n" + HOST + b"Content-Length: -1\r\n\r\n",
    "two lengths": b"POST /api/jobs HTTP/1.1\r\n" + HOST + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\nab",
    "a huge length": b"POST /api/jobs HTTP/1.1\r\n" + HOST + b"Content-Length: 99999999999\r\n\r\n",
    "a body that does not come": b"POST /login HTTP/1.1\r\n" + HOST + b"Content-Length: 50\r\n\r\n",
    "chunks that are none": b"POST /login HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\nZZ\r\n",
    "an unknown encoding": b"POST /login HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: x\r\n\r\n",
    "TLS": b"\x16\x03\x01" + b"\0" * 200,
    "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "CONNECT": b"CONNECT localhost:80 HTTP/1.1\r\n" + HOST + b"\r\n",
    "a web socket": b"GET /api/events HTTP/1.1\r\n" + HOST + b"Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
}


def test_requests_that_are_none_are_refused_and_the_server_goes_on(tmp_path: Path, home: Path) -> None:
    url = sqlite_url(tmp_path)
    with Store(url) as store:
        job(store, "bank", values=[0.5])
    with served(url, home, body_seconds=1.0) as (process, client):
        answers = {name: answer_to(client, sent) for name, sent in MALFORMED.items()}
        codes = {name: answer.split(b" ")[1:2] for name, answer in answers.items()}
        assert all(not code or code[0].startswith(b"4") for code in codes.values()), answers
        assert codes["a huge length"] == [b"413"]
        assert codes["a body that does not come"] == [b"408"]
        assert process.poll() is None
        assert client.get("/api/jobs").json()["total"] == 1


def answer_to(client: httpx.Client, sent: bytes) -> bytes:
    """The head of the response to bytes; empty where the server only closes."""
    answer = b""
    with socket.create_connection(("127.0.0.1", client.base_url.port or 0), timeout=60) as connection:
        try:
            connection.sendall(sent)
            while b"\r\n\r\n" not in answer and (more := connection.recv(65536)):
                answer += more
        except ConnectionError:
            pass  # It may close before all is sent.
    return answer


def test_a_client_that_takes_nothing_of_a_large_document_is_cut_off(tmp_path: Path, home: Path) -> None:
    url = sqlite_url(tmp_path)
    with Store(url) as store:
        job(store, "large", values=[0.5])
        with store.writer("large") as writer:
            said = "x" * 16_000_000
            writer.trial(TrialRow(job="large", trial_id="t", number=9, status="Failed", failure_reason=said))
    with served(url, home, send_seconds=1.0) as (process, client), socket.socket() as slow:
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.connect(("127.0.0.1", client.base_url.port))
        token = client.headers["authorization"].encode()
        head = b"GET /api/jobs/large/trials HTTP/1.1\r\n" + HOST + b"Authorization: " + token + b"\r\n\r\n"
        slow.sendall(head * 2)
        port = slow.getsockname()[1]
        until(lambda: port in peers(process.pid))
        until(lambda: port not in peers(process.pid))
        assert len(client.get("/api/jobs/large/trials").content) > len(said)


def peers(pid: int) -> set[int]:
    """The ports of those that a process is connected to."""
    return {each.raddr.port for each in psutil.Process(pid).net_connections("tcp") if each.raddr}


def test_a_body_that_is_too_large_is_answered_and_not_cut_off(tmp_path: Path, home: Path) -> None:
    with served(sqlite_url(tmp_path), home) as (_, client):
        for content in (b"x" * 12_000_000, iter([b"x" * 1_000_000] * 12)):
            for _ in range(3):  # A connection that is cut off loses the answer now and then.
                answer = client.post("/api/jobs", content=content)
                assert (answer.status_code, answer.json()["error"]["type"]) == (413, "TooLarge")
                content = b"x" * 12_000_000


def test_idle_connections_give_way_to_new_ones(tmp_path: Path, home: Path) -> None:
    with ExitStack() as stack:
        _, client = stack.enter_context(served(sqlite_url(tmp_path), home, connections=50, header_seconds=60.0))
        for _ in range(200):
            stack.enter_context(socket.create_connection(("127.0.0.1", client.base_url.port or 0), timeout=60))
        began = time.monotonic()
        assert client.get("/api/jobs").json()["total"] == 0
        assert time.monotonic() - began < 5.0
