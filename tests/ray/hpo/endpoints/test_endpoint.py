"""Endpoints on Ray Serve: they answer what the model predicts, live through a killed replica, and end."""

from __future__ import annotations

import json
import os
import signal
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import ray
from typer.testing import CliRunner

from hpo import TrainingJob
from hpo.cli import app
from hpo.endpoints import Predictor, deployed
from hpo.record import Store
from hpo.sagemaker import delete_endpoint
from tests.support.hpo.endpoints.endpoint import (
    FRAME,
    TRAIN,
    expected,
    job,  # noqa: F401  # Fixtures.
)
from tests.support.ports import free_port
from tests.support.refusals import mentions, refuses
from trainers import ConfigurationError, DataError, WarmbandError


@pytest.fixture(scope="module")
def port() -> int:
    return free_port()


@pytest.fixture(scope="module")
def endpoint(ray_cluster: None, job: TrainingJob, port: int) -> Iterator[Predictor]:
    from ray import serve

    yield job.deploy(2, endpoint_name="churn-live", cpus=0.1, port=port)
    serve.shutdown()


def test_it_answers_what_the_model_predicts(endpoint: Predictor, job: TrainingJob) -> None:
    for rows in (FRAME, FRAME.to_numpy(), TRAIN[["c", "b", "y", "a"]], FRAME.to_csv(index=False, header=False)):
        np.testing.assert_allclose(endpoint.predict(rows), expected(job), rtol=1e-5)
    with Store(job._store) as store:
        [one] = deployed(store)
        assert (one.name, one.job, one.trial) == ("churn-live", "churn", job._model_of(None)[1])
        assert [act.kind for act in store.acts("churn")][-1] == "deployed"


def test_requests_at_once_are_predicted_together(endpoint: Predictor, job: TrainingJob) -> None:
    with ThreadPoolExecutor(24) as pool:
        found = list(pool.map(lambda at: endpoint.predict(FRAME[at : at + 1])[0], range(240)))
    np.testing.assert_allclose(found, expected(job)[:240], rtol=1e-5)
    assert max(endpoint.ping()["largest_batch"] for _ in range(20)) > 1


def test_wrong_rows_are_told_and_others_answered(endpoint: Predictor) -> None:
    with refuses(DataError, field="'b'"):
        endpoint.predict(FRAME[["a", "c"]])
    with refuses(DataError, field=("row", "1", "'a'"), value="'x'"):
        endpoint.predict("x,1,2\n")
    for body, status in ((b"{", 400), (b'{"instances": [[1], [1, 2]]}', 400), (b"[]", 400), (b"\xff\xfe", 400)):
        request = urllib.request.Request(f"{endpoint.url}/invocations", body, {"Content-Type": "application/json"})
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(request, timeout=30)
        assert refused.value.code == status
        assert "error" in json.load(refused.value)
    with refuses(WarmbandError, field="none", value=404):
        Predictor("none", endpoint.url.replace("churn-live", "none")).ping()


@pytest.mark.fault
def test_a_replica_that_is_killed_is_replaced(endpoint: Predictor, job: TrainingJob) -> None:
    first = {endpoint.ping()["pid"] for _ in range(40)}
    os.kill(next(iter(first)), signal.SIGKILL)
    until, now = time.monotonic() + 120, set()
    while len(now - first) < 1 and time.monotonic() < until:
        try:
            now.add(endpoint.ping(10.0)["pid"])
        except WarmbandError:
            time.sleep(0.5)
    assert now - first, "no replica came in its place within 120 s"
    np.testing.assert_allclose(endpoint.predict(FRAME), expected(job), rtol=1e-5)


def test_what_a_cluster_serves_is_listed_also_where_the_record_has_it_not(
    endpoint: Predictor, job: TrainingJob, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As of a job that was deleted; whoever ends it needs its name."""

    def listed(store: str, *more: str) -> str:
        done = CliRunner(env={"COLUMNS": "300"}).invoke(app, ["endpoints", "--store", store, *more])
        assert done.exit_code == 0, done.output
        return done.stdout

    other = f"sqlite:///{tmp_path}/other.db"
    mentions(listed(other), "hpo deploy")
    monkeypatch.setenv("RAY_ADDRESS", ray.get_runtime_context().gcs_address)
    [line] = [line for line in listed(other).splitlines() if "churn-live" in line]
    mentions(line, "RUNNING")
    assert endpoint.url not in line
    [line] = [line for line in listed(job._store).splitlines() if "churn-live" in line]
    mentions(line, endpoint.url, job._model_of(None)[1], "RUNNING")
    [one] = json.loads(listed(other, "--json"))
    assert (one["name"], one["job"], one["state"]) == ("churn-live", None, "RUNNING")


def test_it_ends_and_the_record_says_so(endpoint: Predictor, job: TrainingJob, port: int) -> None:
    again = job.deploy(endpoint_name="churn-2", cpus=0.1, port=port)
    again.predict(FRAME)
    again.delete_endpoint()
    with refuses(WarmbandError, field="churn-2", value=404):
        again.ping()
    with Store(job._store) as store:
        assert [one.name for one in deployed(store)] == ["churn-live"]
    with refuses(ConfigurationError, field="churn-2", remedy="churn-live"):
        delete_endpoint("churn-2", store=job._store)
    with refuses(ConfigurationError, field="churn-live", value="Predictor", remedy="hpo undeploy churn-live"):
        Predictor("churn-live", endpoint.url).delete_endpoint()
