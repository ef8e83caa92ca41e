"""A job's best model is deployed from the console on a real Ray Serve, answers, outlives the server, and is ended."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import httpx
import numpy as np
import psutil
import pytest
from playwright.sync_api import Page, expect

from hpo import HyperparameterTuner
from hpo.endpoints import Predictor
from hpo.job_file import read_any
from hpo.record import Store
from hpo.serve.deployments.files import DeploymentFiles
from tests.support.console import Served
from tests.support.ports import free_port
from tests.support.rows import until
from tests.support.small_job import write_job


def test_a_model_is_deployed_answers_and_is_ended(
    visit: Callable[..., Page], record: Store, served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    file = write_job(tmp_path)
    file.write_text(file.read_text().replace("type: xgboost", "type: xgboost\n  num_workers: 0"))
    spec = read_any(file)
    tuner = HyperparameterTuner(**{**spec.arguments(), "store": record.url}, console=False)
    tuner.fit(spec.channels(None), job_name="tiny")

    page = visit("#/jobs/tiny")
    expect(page.locator("section[aria-label=Endpoints]")).to_be_hidden()
    page.get_by_role("button", name="Deploy").click()
    dialog = page.get_by_role("dialog", name="Deploy tiny?")
    port = free_port()
    dialog.get_by_label("Endpoint").fill("a/b")
    dialog.get_by_label("CPUs of each").fill("0.1")
    dialog.get_by_label("Port").fill(str(port))
    dialog.get_by_role("button", name="Deploy").click()
    for name in ("endpoint_name", "a/b"):
        expect(dialog.get_by_role("alert")).to_contain_text(name)
    dialog.get_by_label("Endpoint").fill("tiny-live")
    dialog.get_by_role("button", name="Deploy").click()
    expect(dialog.locator("p.good")).to_contain_text("tiny-live")
    dialog.get_by_role("button", name="Close").click()
    row = page.locator("section[aria-label=Endpoints] tbody tr")
    expect(row.locator(".chip")).to_have_attribute("data-status", "DEPLOYING")
    served.end()  # What deploys is a process of its own.
    served.start()
    expect(row.locator(".chip")).to_have_attribute("data-status", "RUNNING")
    rows = np.zeros((2, 3), dtype=np.float32)
    assert Predictor("tiny-live", f"http://127.0.0.1:{port}/tiny-live").predict(rows).shape == (2,)

    # Another one joins the Ray that was started for the first, which goes on when the first is ended.
    asked = {"name": "tiny-too", "cpus": 0.1, "port": port}
    api = {"Authorization": f"Bearer {served.token}"}
    httpx.post(f"{served.base}/api/jobs/tiny/deploy", json=asked, headers=api, timeout=120).raise_for_status()
    files = DeploymentFiles(served.folder)
    until(lambda: files.read()["tiny-too"].state != "DEPLOYING", seconds=120)
    one, other = files.read()["tiny-live"], files.read()["tiny-too"]
    assert (other.state, other.reason, other.pid) == ("RUNNING", "", one.pid)
    httpx.delete(f"{served.base}/api/endpoints/tiny-live", headers=api, timeout=120).raise_for_status()
    assert Predictor("tiny-too", f"http://127.0.0.1:{port}/tiny-too").predict(rows).shape == (2,)

    expect(row).to_have_count(1)
    row.get_by_role("button", name="End").click()
    page.get_by_role("button", name="End the endpoint").click()
    expect(page.locator("section[aria-label=Endpoints]")).to_be_hidden()
    done = [(act.kind, act.by, act.door) for act in record.acts("tiny")][-4:]
    assert done == [(kind, "person", "REST") for kind in ("deployed", "deployed", "undeployed", "undeployed")]
    assert DeploymentFiles(served.folder).read() == {}
    psutil.Process(one.pid).wait(60)  # The Ray that was started for it ends with its last endpoint.
