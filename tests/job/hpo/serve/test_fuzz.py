"""Requests at random over the API's own description, and job files at random: a clear error each, and never a fault."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given, settings as examples, strategies as st
from starlette.testclient import TestClient

from hpo.record import JobRow, Store
from hpo.serve import ServeSettings, Tokens, make_app, starting
from hpo.serve.errors import RefusedError
from hpo.serve.following.feed import Position
from hpo.serve.security import guard
from tests.support import properties
from tests.support.listed import job
from tests.support.small_job import write_job
from tests.support.yaml_text import load

TEXTS = st.one_of(
    st.text(max_size=30),
    st.sampled_from(
        ["bank", "open", "bank-000", "-1", "0", "1e999", "nan", "9" * 400, "\0", "a\0b", "..", "/", "%", "bänk", "[]"]
    ),
)
NUMBERS = st.integers() | st.floats() | st.sampled_from([10**400, -1, 0, 2**63])
JSON = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=8,
)
BODIES = st.one_of(
    st.binary(max_size=200),
    JSON.map(lambda value: json.dumps(value).encode()),
    JSON.map(lambda value: json.dumps({"hyperparameters": value, "set": value}).encode()),
    st.dictionaries(st.sampled_from(["eta", "max_depth", "alpha", "max_jobs"]) | TEXTS, JSON, max_size=3).map(
        lambda value: json.dumps({"hyperparameters": value, "set": value}).encode()
    ),
    st.sampled_from([b"[" * 9000, b'{"set":' * 1000, b'{"set": {"max_jobs": ' + b"9" * 5000 + b"}}", b"\xff\xfe"]),
)
HEADERS = st.dictionaries(
    st.sampled_from(["if-none-match", "last-event-id", "origin", "cookie", "range", "content-type", "accept", "host"]),
    st.sampled_from(
        ["http://[", "warmband=a.b.c", "a=b; warmband=", '"', "*", "text/plain", "bytes=0-1", "é", "[::1", ""]
    ),
    max_size=2,
)
PATCHED = examples(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=properties.examples(150))


@pytest.fixture
def api(database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[TestClient]:
    """The app over a record with a job that is over and one that is not; what begins jobs does so in this process."""
    monkeypatch.setattr(guard, "ACTS_A_SECOND", 1e9)
    monkeypatch.setattr(starting.checks, "prepare", lambda: None)
    for module in ("acts", "endpoints"):
        monkeypatch.setattr(f"hpo.serve.rest.{module}.start", in_this_process)
    settings = ServeSettings(store=database, folder=tmp_path / "serve", most_bytes=10_000, rate=1e9)
    with Store(database) as store:
        job(store, "bank", values=[0.5, 0.75, None])
        store.create_job(JobRow(name="open", created_at=1000.0, spec=store.job("bank").spec))
        headers = {"Authorization": f"Bearer {Tokens(settings.tokens_file).add('actor', 'act')}"}
        with TestClient(make_app(settings), base_url="http://localhost", headers=headers) as client:
            yield client


async def in_this_process(settings: ServeSettings, who: Any, request: Mapping[str, Any]) -> dict[str, Any]:
    """As `starting.start`, but nothing is begun: a file is checked alone."""
    given = {**request, "store": settings.store, "data_dir": None, "allow_code": False, "folder": str(settings.folder)}
    given["places"] = settings.places.to_json()
    kind = "check" if given["kind"] == "create" else given["kind"]
    found = started({**given, "kind": kind})
    if error := found.get("error"):
        raise RefusedError(error["status"], error["type"], error["message"])
    return found


def started(given: Mapping[str, Any]) -> dict[str, Any]:
    """What the process that starts jobs answers."""
    with pytest.MonkeyPatch.context() as patch:
        out = io.StringIO()
        patch.setattr(sys, "stdin", io.StringIO(json.dumps(given)))
        patch.setattr(sys, "stdout", out)
        patch.setattr("hpo.jobs.launch.start", lambda *_, **__: "nowhere")
        starting.main()
    found: dict[str, Any] = json.loads(out.getvalue())
    return found


@PATCHED
@given(data=st.data())
def test_no_request_makes_a_fault(api: TestClient, data: st.DataObject) -> None:
    routes = api.get("/api/openapi.json").json()["paths"]
    path = data.draw(st.sampled_from(sorted(each for each in routes if not each.endswith("/events"))))
    method = data.draw(st.sampled_from(sorted(routes[path])))
    query: dict[str, str] = {}
    for parameter in routes[path][method].get("parameters", []):
        name = parameter["name"]
        if parameter["in"] == "path":
            value = data.draw(TEXTS if method == "delete" else TEXTS | st.sampled_from(["bank", "open", "bank-000"]))
            if method == "delete" and value in ("bank", "open"):
                value = "other"
            path = path.replace(f"{{{name}}}", quote(value, safe=""))
        elif data.draw(st.booleans()):
            query[name] = data.draw(TEXTS)
    headers = {name: value.encode() for name, value in data.draw(HEADERS).items()}
    body = data.draw(BODIES) if method == "post" else b""
    answer = api.request(method.upper(), f"/api{path}", params=query, content=body, headers=headers)
    check(answer)


def check(answer: Any) -> None:
    assert answer.status_code < 500, answer.text
    if answer.status_code >= 400:
        error = answer.json()["error"]
        assert error["type"]
        assert error["message"]
        assert "Traceback" not in error["message"]
    elif answer.status_code == 200:
        answer.json()


@examples(PATCHED, max_examples=properties.examples(30))
@given(data=st.data())
def test_no_job_file_makes_a_fault(api: TestClient, tmp_path: Path, data: st.DataObject) -> None:
    values = load(write_job(tmp_path).read_text())
    place, key = values, data.draw(st.sampled_from(list(values)))
    while isinstance(place[key], dict) and place[key] and data.draw(st.booleans()):
        place = place[key]
        key = data.draw(st.sampled_from(list(place)))
    place[key] = data.draw(JSON)
    check(api.post("/api/jobs?dry_run=true", content=json.dumps(values)))


@given(
    method=st.sampled_from(["GET", "HEAD", "POST", "PUT", "PATCH", "OPTIONS", "TRACE", "X"]),
    path=st.sampled_from(["/api", "/api/", "/healthz", "/login", "/logout", "//api//jobs", "/api/../x"])
    | TEXTS.map(quote),
    body=BODIES,
)
@PATCHED
def test_no_path_and_no_method_makes_a_fault(api: TestClient, method: str, path: str, body: bytes) -> None:
    answer = api.request(method, f"/{path.lstrip('/')}", content=body, follow_redirects=False)
    assert answer.status_code < 500, answer.text


@given(text=TEXTS | st.from_regex(r"[0-9a-f]{8}\.\d{1,20}\.\d{1,15}\.\d{3}"))
def test_any_id_of_a_last_event_is_a_position_or_none(text: str) -> None:
    found = Position.of(text)
    assert found is None or (found.number >= 0 and found.at >= 0)
