"""Documents and acts of the REST API, on a record filled by hand."""

from __future__ import annotations

import json
import time
from dataclasses import replace

from starlette.testclient import TestClient

from hpo.record import JobRow, Store
from hpo.serve import ServeSettings, make_app
from tests.support.hpo.serve.rest import (
    Get,
    get,  # noqa: F401  # A fixture.
)
from tests.support.listed import hpo
from tests.support.refusals import mentions


def test_documents_are_those_of_the_command(store: Store, get: Get) -> None:
    url = ("--json", "--store", store.url)
    told = json.loads(hpo("describe", "bank", *url))
    found = get("jobs/bank")
    assert {**found, "LastModifiedTime": 0} == {**told, "LastModifiedTime": 0}
    page = get("jobs/bank/trials?sort=best")
    assert [{**each, "Number": 0} for each in page["trials"]] == [
        {**each, "Number": 0} for each in json.loads(hpo("trials", "bank", *url))
    ]
    assert page["total"] == 3
    (line,) = get("jobs")["jobs"]
    assert json.loads(hpo("jobs", *url))[0].items() <= line.items()


def test_a_large_job_file_is_refused_at_once(settings: ServeSettings, tokens: dict[str, str]) -> None:
    text = "a: [" + "1," * 900_000 + "1]"
    headers = {"Authorization": f"Bearer {tokens['act']}"}
    with TestClient(make_app(replace(settings, most_bytes=4_000_000)), base_url="http://localhost") as client:
        began = time.monotonic()
        refused = client.post("/api/jobs?dry_run=true", content=text, headers=headers)
        assert time.monotonic() - began < 1.0, "no process parses it"
    assert (refused.status_code, refused.json()["error"]["type"]) == (413, "TooLarge")
    mentions(refused.json()["error"]["message"], len(text), 256 * 1024)


def test_acts_bear_the_token_s_name(store: Store, client: TestClient, tokens: dict[str, str], get: Get) -> None:
    spec = store.job("bank").spec
    store.create_job(JobRow(name="open", created_at=1000.0, spec=spec))
    headers = {"Authorization": f"Bearer {tokens['act']}"}
    answer = client.post("/api/jobs/open/trials", json={"hyperparameters": {"eta": 0.1}}, headers=headers)
    assert answer.status_code == 201, answer.text
    assert client.post("/api/jobs/open/trials", json={"hyperparameters": 3}, headers=headers).status_code == 400
    assert client.post("/api/jobs/open/trials", content=b"{", headers=headers).status_code == 400
    assert client.post("/api/jobs/open/stop", headers=headers).json() == {"job": "open", "stopping": True}
    acts = [act for act in get("jobs/open/acts")["acts"] if act["Kind"] != "created"]
    assert [(act["Kind"], act["By"], act["Door"]) for act in acts] == [
        ("trial_added", "actor", "REST"),
        ("stopped", "actor", "REST"),
    ]
    assert client.delete("/api/jobs/bank", headers=headers).json() == {"job": "bank", "deleted": True, "left": []}
    assert [row.name for row in store.jobs()] == ["open"]
