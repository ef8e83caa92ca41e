"""Routes that act: jobs are created, stopped, resumed and deleted; trials are added and stopped."""

from __future__ import annotations

import json
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from hpo.job_file import MOST_BYTES, example_file, json_schema
from hpo.record import Store
from hpo.sagemaker import add_trial, stop_trial
from hpo.serve.errors import RefusedError, json_response
from hpo.serve.rest.reading import JobName, TrialName, service_of
from hpo.serve.starting import checks, start
from trainers import storage

router = APIRouter(tags=["act"])


def takes(kind: str, schema: dict[str, Any]) -> dict[str, Any]:
    """The body of a request in the API's description: routes read it themselves, so that all errors have one form."""
    return {"requestBody": {"content": {kind: {"schema": schema}}}}


_LIMITS = {"type": "object", "properties": {"set": {"type": "object"}}}
_VALUES = {"type": "object", "properties": {"hyperparameters": {"type": "object"}}, "required": ["hyperparameters"]}


@router.get("/schema")
async def schema(request: Request, training: bool = False) -> Response:
    """The JSON schema of job files."""
    made = await service_of(request).readers.run(lambda: json_schema(training=training))
    return json_response(made)


@router.get("/example")
async def example(request: Request) -> Response:
    """The job file that `hpo init` writes, to start a new one from."""
    if request.state.who.may_act:
        checks.prepare()  # The user writes a job file next, and has it checked.
    return json_response({"text": example_file()})


@router.post("/jobs", status_code=201, openapi_extra=takes("application/yaml", {"type": "object"}))
async def create(
    request: Request,
    dry_run: Annotated[
        bool, Query(description="Check the file and its data as a start does, and create nothing.")
    ] = False,
    clone_of: Annotated[str, Query(description="The job that it is a copy of.", max_length=64)] = "",
) -> Response:
    """Creates a job of a job file, which is the request's body as YAML or JSON."""
    body = await request.body()
    if len(body) > MOST_BYTES:
        message = f"the job file has {len(body):,} bytes; give at most {MOST_BYTES:,}, and name large data by its path"
        raise RefusedError(413, "TooLarge", message)
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise RefusedError(400, "Invalid", "the job file is not text in UTF-8") from error
    service = service_of(request)
    asked = {"kind": "check" if dry_run else "create", "text": text, "clone_of": clone_of}
    found = await start(service.settings, request.state.who, asked)
    return json_response(found, 200 if dry_run else 201)


@router.post("/jobs/{job}/stop")
async def stop(request: Request, job: JobName) -> Response:
    """Asks a job to stop; what it has found is kept."""
    from hpo.jobs import end_abandoned

    def call(store: Store) -> bool:
        return end_abandoned(store, job) or store.request_stop(job)

    stopping = await service_of(request).act(request.state.who, job, call)
    return json_response({"job": job, "stopping": stopping}, 202)


@router.post("/jobs/{job}/resume", openapi_extra=takes("application/json", _LIMITS))
async def resume(request: Request, job: JobName) -> Response:
    """Goes on with a job; `{"set": {"max_jobs": 60}}` raises limits for good."""
    limits = (await body_of(request)).get("set") or {}
    if not isinstance(limits, dict):
        raise RefusedError(
            400, "Invalid", 'set is no object; give limits by name, such as {"max_jobs": 60}', field="set"
        )
    service = service_of(request)
    asked = {"kind": "resume", "job": job, "set": limits}
    found = await start(service.settings, request.state.who, asked)
    service.hub.forget(job)
    return json_response(found, 202)


@router.post("/jobs/{job}/trials", status_code=201, openapi_extra=takes("application/json", _VALUES))
async def add(request: Request, job: JobName) -> Response:
    """Gives the values of one of the job's next trials: `{"hyperparameters": {"eta": 0.1}}`."""
    values = (await body_of(request)).get("hyperparameters")
    if not isinstance(values, dict):
        message = 'hyperparameters is no object; give values by name, such as {"eta": 0.1}'
        raise RefusedError(400, "Invalid", message, field="hyperparameters")
    service = service_of(request)
    added = await service.act(request.state.who, job, lambda store: add_trial(store, job, values))
    return json_response(added.to_json(), 201)


@router.post("/jobs/{job}/trials/{trial}/stop")
async def stop_one(request: Request, job: JobName, trial: TrialName) -> Response:
    """Asks for a trial to be stopped at its next report."""
    await service_of(request).act(request.state.who, job, lambda store: stop_trial(store, job, trial))
    return json_response({"job": job, "trial": trial, "stopping": True}, 202)


@router.delete("/jobs/{job}")
async def delete(
    request: Request,
    job: JobName,
    keep_files: Annotated[bool, Query(description="Leave models, copies of data and the log.")] = False,
) -> Response:
    """Deletes a job that is over: its record, and its files. `left` names what else was in its folder, and stays."""
    from hpo.jobs import Files, check_over

    left: list[str] = []

    def call(store: Store) -> None:
        row = store.job(job)
        check_over(row)
        store.delete_job(job, (lambda: None) if keep_files else lambda: left.extend(Files.of(row).remove()))

    await service_of(request).act(request.state.who, job, call)
    return json_response({"job": job, "deleted": True, "left": [storage.shown(each) for each in left]})


async def body_of(request: Request) -> dict[str, Any]:
    """A request's body, a JSON object; empty is one without anything."""
    text = await request.body()
    try:
        found = json.loads(text) if text.strip() else {}
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise RefusedError(
            400, "Invalid", f"the request's body is not JSON from {where} on; correct it there"
        ) from error
    except UnicodeDecodeError as error:
        raise RefusedError(400, "Invalid", "the request's body is not text in UTF-8; send JSON in UTF-8") from error
    except (ValueError, RecursionError) as error:
        told = "the request's body has a number of too many digits, or nests too deep; send less"
        raise RefusedError(400, "Invalid", told) from error
    if not isinstance(found, dict):
        raise RefusedError(400, "Invalid", "the request's body is no JSON object; send one, such as {}")
    return found
