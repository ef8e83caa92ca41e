"""Jobs of the service's requests: written into the record whole, with their request, and started in a process apart."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from collections.abc import Mapping
from contextlib import redirect_stdout
from dataclasses import replace
from typing import Any

from hpo.record import ACTS_AS, JobRow, Store, actor
from hpo.serve.aws.creating.tables import Image, Instance, Tables
from hpo.serve.aws.errors import ServiceError, as_service_error
from trainers.errors import WarmbandError

_log = logging.getLogger("warmband.serve")

REQUEST = "request"
"""Of a job's `spec`: the service's request that created it."""
SECONDS = 180.0
LEFT_SECONDS = 2 * SECONDS
"""After which a job that no driver has taken was left behind."""
NAME_LENGTH = 63
"""Of a training job's name, as the service has it."""


def create_tuning_job(store_url: str | None, request: dict[str, Any], tables: Tables) -> None:
    """Creates a tuning job and starts it.

    Args:
        store_url: of the record; None is the default one.
        request: of CreateHyperParameterTuningJob, checked.
        tables: of images and instance types.

    Raises:
        ServiceError: the request asks for what does not go; then there is no job.
    """
    _apart({"kind": "tuning", "store": store_url, "request": request}, tables)


def create_training_job(store_url: str | None, request: dict[str, Any], tables: Tables) -> None:
    """Creates a training job and starts it; as `create_tuning_job`."""
    _apart({"kind": "training", "store": store_url, "request": request}, tables)


def request_of(row: JobRow) -> dict[str, Any] | None:
    """The request that created a job; None where it came otherwise."""
    found = row.spec.get(REQUEST)
    return found if isinstance(found, dict) else None


def start_left_behind(store: Store, store_url: str | None) -> None:
    """Starts the jobs that were written into the record and not started, since the machine went down between.

    Raises:
        WarmbandError: the record cannot be read.
    """
    from hpo.jobs import JobSettings, launch

    for row in store.jobs():
        # One that was written a moment ago may be under way to its driver.
        if request_of(row) is None or row.status != "InProgress" or row.lease or row.silent <= LEFT_SECONDS:
            continue
        try:
            settings = JobSettings.of(row, allow_code=True)
            launch.start(row.name, store_url, launch.cluster_for(settings.estimator), allowed=_code(settings))
            _log.info("%s was left behind, and runs", row.name)
        except WarmbandError as error:
            _log.warning("%s was left behind, and does not start: %s", row.name, error)


def _apart(given: dict[str, Any], tables: Tables) -> None:
    """Has a process of its own create a job: it imports what trains, and goes on when the server dies.

    Raises:
        ServiceError: it does not go, or has not come to an end in time.
    """
    images, instances = ([each.model_dump() for each in of] for of in (tables.images, tables.instances))
    given |= {"images": images, "instances": instances, "allow_code": tables.allow_code}
    process = subprocess.Popen(
        [sys.executable, "-m", "hpo.serve.aws.creating.jobs"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
        env={**os.environ, ACTS_AS: actor().to_text()},
    )
    try:
        out, _ = process.communicate(json.dumps(given).encode(), timeout=SECONDS)
    except subprocess.TimeoutExpired:
        message = f"the job has not begun within {SECONDS:g} s, and goes on to; look at the list of jobs"
        raise ServiceError("ServiceUnavailable", message, 503) from None
    try:
        told = json.loads(out)
    except ValueError:
        message = f"the process that was to create the job ended with code {process.returncode}"
        raise ServiceError("InternalFailure", message, 500) from None
    if told:
        raise ServiceError(told["code"], told["message"], told["status"])


def _create(given: Mapping[str, Any]) -> None:
    from hpo import jobs
    from hpo.serve.aws.creating.asked import training_of, tuning_of

    tables = Tables(
        images=tuple(Image(**each) for each in given["images"]),
        instances=tuple(Instance(**each) for each in given["instances"]),
        allow_code=given["allow_code"],
    )
    request, store = given["request"], given["store"]
    made, inputs = (tuning_of if given["kind"] == "tuning" else training_of)(request, tables, store)
    name = request["HyperParameterTuningJobName" if given["kind"] == "tuning" else "TrainingJobName"]
    settings = made.settings.changed()
    server = jobs.apart(settings, ())
    settings = jobs.sized(settings, inputs, lambda line: None)
    longest = jobs.NAME_LENGTH if given["kind"] == "tuning" else NAME_LENGTH
    job = jobs.NewJob.of(settings, inputs, name, store, longest, apart=True)
    archives = {jobs.ARCHIVES: job.row.spec["storage_path"]}
    job = replace(job, row=replace(job.row, spec={**job.row.spec, REQUEST: request, **archives}))
    job.write()
    jobs.launch.start(name, store, server, allowed=_code(settings))


def _code(settings: Any) -> list[str]:
    return list(settings.code().values())


def main() -> None:
    """Creates the job that standard input asks for, and says on standard output what is wrong, or nothing."""
    out, told = sys.stdout, {}
    with redirect_stdout(sys.stderr):
        try:
            _create(json.load(sys.stdin))
        except (WarmbandError, ServiceError) as error:
            found = as_service_error(error)
            told = {"code": found.code, "message": str(found), "status": found.status}
    try:
        out.write(json.dumps(told))
        out.flush()
    except BrokenPipeError:
        os._exit(0)  # The server is gone, and the job runs.


if __name__ == "__main__":
    main()
