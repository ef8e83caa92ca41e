"""The process of a deployment: it deploys, says in a file how that went, and holds the Ray that it has started."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil

from hpo.record import actor
from hpo.serve.deployments.asked import failed, start
from hpo.serve.deployments.files import Deployment, DeploymentFiles

LOOK_SECONDS = 2.0
"""Between two looks whether an endpoint is left."""


def main() -> None:
    """Deploys what standard input asks for."""
    given: dict[str, Any] = json.load(sys.stdin)
    files = DeploymentFiles(Path(given["folder"]))
    own = {"pid": os.getpid(), "began": psutil.Process().create_time()}
    mine = Deployment(name=given["name"], job=given["job"], trial=given["trial"], by=actor().by, at=time.time(), **own)
    files.write(mine)
    joins = bool(os.environ.get("RAY_ADDRESS"))
    try:
        with files.locked():
            running = [one for one in files.read().values() if one.cluster and one.lives]
            if running and not joins:
                # Ray has been imported already, and would not be let in.
                pid = start(given, entry=running[0].entry)
                files.write(replace(mine, pid=pid, began=psutil.Process(pid).create_time()))
                return
            _deploy(given)
            holder = next((one for one in running if one.cluster == os.environ.get("RAY_ADDRESS")), None)
            if joins and holder is None:
                files.drop(mine.name)  # The record has it, and its cluster is not ours.
            else:
                kept = own if holder is None else {"pid": holder.pid, "began": holder.began}
                files.write(replace(mine, state="RUNNING", cluster=_cluster(), keys=_keys(), **kept))
    except Exception as error:
        files.write(replace(mine, state="DEPLOY_FAILED", reason=failed(error)))
        raise
    if not joins:
        _hold(files)


def _deploy(given: Mapping[str, Any]) -> None:
    from hpo.tuner import attached

    attached(given["job"], given["store"], allow_code=given["allow_code"]).deploy(
        given["replicas"],
        endpoint_name=given["name"],
        training_job_name=given["trial"],
        model_fn=given["model_fn"],
        cpus=given["cpus"],
        port=given["port"],
    )


def _cluster() -> str:
    import ray

    return str(ray.get_runtime_context().gcs_address)


def _keys() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name.startswith("RAY_AUTH_")}


def _hold(files: DeploymentFiles) -> None:
    """Keeps the Ray that this process has started until the last endpoint on it has been ended."""
    from hpo.endpoints import states

    while True:
        time.sleep(LOOK_SECONDS)
        with files.locked():
            if not states():
                return


if __name__ == "__main__":
    main()
