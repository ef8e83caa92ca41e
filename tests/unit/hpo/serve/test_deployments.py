"""Routes of endpoints: what is refused at once, what the record says, and a deployment whose process died."""

from __future__ import annotations

import os

from hpo.record import Store
from hpo.serve import ServeSettings
from hpo.serve.deployments.files import DeploymentFiles
from hpo.serve.deployments.listing import listed
from tests.support.hpo.serve.deployments import (
    Ask,
    ask,  # noqa: F401  # A fixture.
    deployment,
)
from tests.support.refusals import mentions


def test_wrong_requests_are_refused_and_name_the_field(ask: Ask) -> None:
    assert ask("POST", "jobs/bank/deploy", 400, {"name": 3})["error"]["field"] == "name"
    assert ask("POST", "jobs/bank/deploy", 400, {"port": 0})["error"]["field"] == "port"
    assert ask("POST", "jobs/bank/deploy", 400, {"workers": 2})["error"]["field"] == "workers"
    assert ask("GET", "endpoints", 200) == {"endpoints": []}
    refused = ask("POST", "jobs/bank/deploy", 403, {}, rights="look")
    mentions(refused["error"]["message"], "looker", "act")
    assert ask("DELETE", "endpoints/live", 403, rights="look")["error"]["type"] == "Forbidden"


def test_a_deployment_whose_process_died_has_failed(ask: Ask, store: Store, settings: ServeSettings) -> None:
    files = DeploymentFiles(settings.folder)
    files.write(deployment(pid=os.getpid(), began=1.0))
    [one] = ask("GET", "endpoints", 200)["endpoints"]
    assert (one["name"], one["state"], one["url"]) == ("live", "DEPLOY_FAILED", None)
    mentions(one["reason"], "process")
    files.write(deployment())
    assert [each["state"] for each in listed(store, settings.folder)] == ["DEPLOYING"]
