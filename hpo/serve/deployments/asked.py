"""What is done at once when an endpoint is asked for, or its end: all is checked, and the rest left to a process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

from hpo.record import Store, actor
from hpo.serve.deployments.files import Deployment, DeploymentFiles
from hpo.serve.deployments.listing import problem_of
from hpo.serve.errors import RefusedError
from trainers.errors import ConfigurationError, WarmbandError

END_SECONDS = 120.0
"""Within which an endpoint has to have been ended."""


def begin(given: Mapping[str, Any]) -> dict[str, Any]:
    """Checks that a job's model can be deployed, and starts the process that does it.

    Args:
        given: `job`, `name`, `replicas`, `cpus`, `port`, `trial` and `model_fn` of the endpoint; `store`, `folder` and
            `allow_code` of the server.

    Raises:
        ConfigurationError, WarmbandError: it cannot be, since Ray Serve is not installed, say.
        RefusedError: it is being deployed already.
    """
    from hpo import endpoints
    from hpo.tuner import attached

    name = given["job"] if given["name"] is None else given["name"]
    endpoints.check_place(name, given["replicas"], given["cpus"], 1)
    if given["model_fn"] is not None and not given["allow_code"]:
        raise ConfigurationError(f"model_fn {given['model_fn']} is Python code, which needs hpo serve --allow-code")
    endpoints.ray_serve()
    job = attached(given["job"], given["store"], allow_code=given["allow_code"])
    trial = job.deployable(given["trial"], given["model_fn"])
    files = DeploymentFiles(Path(given["folder"]))
    before = files.read().get(name)
    if before is not None and before.state == "DEPLOYING" and before.lives:
        raise RefusedError(409, "InUse", f"endpoint {name} is being deployed already, by {before.by}")
    one = Deployment(name=name, job=given["job"], trial=trial, by=actor().by, at=time.time())
    files.write(one)
    with files.log(name).open("wb") as log:
        start({**given, "name": name, "trial": trial}, log)
    return {"endpoint": name, "job": one.job, "trial": trial, "state": one.state, "look": "/api/endpoints"}


def start(given: Mapping[str, Any], output: IO[bytes] | None = None, entry: Mapping[str, str] | None = None) -> int:
    """Starts the process that deploys a model, in a session of its own; returns its pid.

    Args:
        given: what it reads of its standard input: that of `begin`, with the endpoint's name and the trial.
        output: what it prints to; None is the output of this process.
        entry: environment variables by which it is let into a cluster.
    """
    process = subprocess.Popen(
        [sys.executable, "-m", "hpo.serve.deployments.process"],
        stdin=subprocess.PIPE,
        stdout=output,
        stderr=None if output is None else subprocess.STDOUT,
        env={**os.environ, **(entry or {})},
        start_new_session=True,
    )
    assert process.stdin is not None
    with process.stdin as to:
        to.write(json.dumps(given).encode())
    return process.pid


def end(given: Mapping[str, Any]) -> dict[str, Any]:
    """Ends an endpoint, or forgets one that could not be deployed.

    Args:
        given: `name` of the endpoint; `store` and `folder` of the server.

    Raises:
        RefusedError: there is none, it is being deployed, or another process has it in its hands.
    """
    from hpo import endpoints
    from hpo.sagemaker import delete_endpoint

    name, files = given["name"], DeploymentFiles(Path(given["folder"]))
    one = files.read().get(name)
    with Store(given["store"]) as store:
        recorded = endpoints.deployed(store, name)
        if one is None and not recorded:
            known = ", ".join(each.name for each in endpoints.deployed(store)) or "none"
            raise RefusedError(404, "NotFound", f"there is no endpoint named {name!r}; the record has {known}")
        if one is not None and one.state == "DEPLOYING" and one.lives:
            raise RefusedError(409, "InUse", f"endpoint {name} is being deployed; end it once that is over")
        held = one is not None and bool(one.cluster) and one.lives
        if held or os.environ.get("RAY_ADDRESS"):
            with files.locked():
                if one is not None and held:
                    _end_within(one, given["store"])
                else:
                    delete_endpoint(name, store=given["store"])
        else:
            for each in recorded:
                if not problem_of(name, each.url):
                    message = f"endpoint {name} lives with the process that deployed it; end that one: Ctrl-C ends it"
                    raise RefusedError(409, "InUse", message)
                store.act(each.job, "undeployed", {"endpoint": name, "ran": False})
    files.drop(name)
    return {"endpoint": name, "deleted": True}


ENDING = """
import sys
from hpo.sagemaker import delete_endpoint
delete_endpoint(sys.argv[1], store=sys.stdin.read() or None)
"""


def _end_within(one: Deployment, store: str | None) -> None:
    """Ends an endpoint from a process that its Ray lets in.

    Raises:
        WarmbandError: it could not be ended.
    """
    command = [sys.executable, "-c", ENDING, one.name]
    environment = {**os.environ, **one.entry}
    try:
        done = subprocess.run(
            command, input=store or "", env=environment, capture_output=True, text=True, timeout=END_SECONDS
        )
    except subprocess.TimeoutExpired:
        raise WarmbandError(f"endpoint {one.name} was not ended within {END_SECONDS:g} s; try again") from None
    if done.returncode:
        why = (done.stderr.strip().splitlines() or [f"its process ended with code {done.returncode}"])[-1]
        raise WarmbandError(f"endpoint {one.name} was not ended: {why}")


def failed(error: Exception) -> str:
    """Why a deployment failed, in words."""
    return str(error) if isinstance(error, WarmbandError) else f"{type(error).__name__}: {error}"
