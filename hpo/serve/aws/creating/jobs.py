"""Jobs of the service's requests: written into the record whole, with their request, and started in a process apart."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from hpo.record import JobRow, Store, actor
from hpo.serve.apart import SECONDS, answer, ask
from hpo.serve.aws.creating.tables import LENGTH, Image, Instance, Tables
from hpo.serve.aws.errors import ServiceError, as_service_error
from hpo.serve.places import Places
from trainers.errors import WarmbandError

_log = logging.getLogger("warmband.serve")

REQUEST = "request"
"""Of a job's `spec`: the service's request that created it."""
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
        ServiceError: it does not go.
        RefusedError: it has not come to an end in time.
    """
    images, instances = ([each.model_dump() for each in of] for of in (tables.images, tables.instances))
    given |= {"images": images, "instances": instances, "allow_code": tables.allow_code}
    given["places"] = tables.places.to_json()
    if told := asyncio.run(ask("hpo.serve.aws.creating.jobs", given, actor())):
        raise ServiceError(told["code"], told["message"], told["status"])


def _created(given: dict[str, Any]) -> dict[str, Any]:
    """What is wrong with a request; empty once its job is there."""
    try:
        _create(given)
    except (WarmbandError, ServiceError) as error:
        told = as_service_error(error)
        message = str(told).replace("the trainer's length", f"{LENGTH} in the estimator's environment")
        return {"code": told.code, "message": message, "status": told.status}
    return {}


def _create(given: Mapping[str, Any]) -> None:
    from hpo import jobs
    from hpo.serve.aws.creating.asked import training_of, tuning_of

    tables = Tables(
        images=tuple(Image(**each) for each in given["images"]),
        instances=tuple(Instance(**each) for each in given["instances"]),
        allow_code=given["allow_code"],
    )
    request, store = given["request"], given["store"]
    Places.of_json(given["places"]).check(request)
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
    answer(_created)


if __name__ == "__main__":
    main()
