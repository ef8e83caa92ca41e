"""Routes of endpoints: what is refused at once, what the record says, and a deployment whose process died."""

from __future__ import annotations

import os
import subprocess
import sys

from hpo.record import Store
from hpo.serve import ServeSettings
from hpo.serve.deployments.files import DeploymentFiles
from tests.support.hpo.serve.deployments import (
    Ask,
    ask,  # noqa: F401  # A fixture.
    deployment,
)
from tests.support.listed import job
from tests.support.refusals import mentions

WITHOUT_SERVE = """
import sys
sys.modules["ray.serve"] = None
from hpo.serve.deployments import begin
try:
    begin({"job": "bank", "name": None, "replicas": 1, "cpus": 1, "port": 8000, "trial": None, "model_fn": None,
           "store": sys.argv[1], "folder": sys.argv[2], "allow_code": False})
except Exception as error:
    print(type(error).__name__, error)
"""


def test_a_machine_without_ray_serve_says_what_to_install(store: Store, settings: ServeSettings) -> None:
    command = [sys.executable, "-c", WITHOUT_SERVE, store.url, str(settings.folder)]
    said = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout
    assert said.startswith("ConfigurationError "), said
    mentions(said, "Ray Serve", "pip install 'warmband[deploy]'")
    assert DeploymentFiles(settings.folder).read() == {}


def test_a_job_without_a_model_is_refused_and_an_endpoint_that_is_none_not_ended(ask: Ask, store: Store) -> None:
    job(store, "open", values=[None])
    refused = ask("POST", "jobs/open/deploy", 409, {})["error"]
    assert refused["type"] == "NotReady"
    mentions(refused["message"], "open")
    assert ask("POST", "jobs/none/deploy", 404, {})["error"]["type"] == "NotFound"
    mentions(ask("POST", "jobs/bank/deploy", 400, {"name": "a/b"})["error"]["message"], "endpoint_name", "a/b")
    mentions(ask("DELETE", "endpoints/live", 404)["error"]["message"], "endpoint", "live")


def test_an_endpoint_whose_ray_has_ended_is_told_and_ended_in_the_record(
    ask: Ask, store: Store, settings: ServeSettings
) -> None:
    store.act(
        "bank", "deployed", {"endpoint": "live", "trial": "bank-001", "url": "http://127.0.0.1:1/live"}, by="actor"
    )
    files = DeploymentFiles(settings.folder)
    files.write(deployment(state="RUNNING", cluster="127.0.0.1:1", pid=os.getpid(), began=1.0))
    [one] = ask("GET", "endpoints", 200)["endpoints"]
    assert (one["state"], one["job"], one["by"]) == ("UNREACHABLE", "bank", "actor")
    mentions(one["reason"], "Ray", "deploy")
    assert ask("DELETE", "endpoints/live", 200) == {"endpoint": "live", "deleted": True}
    assert ask("GET", "endpoints", 200) == {"endpoints": []}
    [act] = [each for each in store.acts("bank") if each.kind == "undeployed"]
    assert (act.by, act.door, act.arguments) == ("actor", "REST", {"endpoint": "live", "ran": False})
