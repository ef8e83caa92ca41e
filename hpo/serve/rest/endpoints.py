"""Routes of endpoints: a job's model is deployed, endpoints are listed, and ended."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Request
from starlette.responses import Response

from hpo.serve.deployments import listed
from hpo.serve.errors import RefusedError, json_response
from hpo.serve.rest.acts import body_of, takes
from hpo.serve.rest.reading import JobName, service_of
from hpo.serve.starting import start

router = APIRouter(tags=["endpoints"])

_DEFAULTS: dict[str, Any] = {"name": None, "replicas": 1, "cpus": 1.0, "port": 8000, "trial": None, "model_fn": None}
_KINDS = {"name": "string", "replicas": "integer", "cpus": "number", "port": "integer", "trial": "string"}
_ENDPOINT = {
    "type": "object",
    "properties": {name: {"type": _KINDS.get(name, "string"), "default": each} for name, each in _DEFAULTS.items()},
}


@router.post("/jobs/{job}/deploy", status_code=202, openapi_extra=takes("application/json", _ENDPOINT))
async def deploy(request: Request, job: JobName) -> Response:
    """Deploys the job's best model, or a trial's, on Ray Serve, in a process apart; the list of endpoints tells how."""
    given = await body_of(request)
    if wrong := sorted(set(given) - set(_DEFAULTS)):
        message = f"{wrong[0]} is no setting of an endpoint; there are {', '.join(_DEFAULTS)}"
        raise RefusedError(400, "Invalid", message, field=wrong[0])
    for name in ("name", "trial", "model_fn"):
        if not isinstance(given.get(name), str | None):
            raise RefusedError(400, "Invalid", f"{name} is {given[name]!r}; give text", field=name)
    port = given.get("port", 8000)
    if isinstance(port, bool) or not isinstance(port, int) or not 0 < port < 65536:
        raise RefusedError(400, "Invalid", f"port is {port!r}; give a number from 1 to 65535", field="port")
    service = service_of(request)
    asked = {"kind": "deploy", "job": job, **_DEFAULTS, **given}
    found = await start(service.settings, request.state.who, asked)
    return json_response(found, 202, {"Location": "/api/endpoints"})


@router.get("/endpoints")
async def endpoints(request: Request) -> Response:
    """Endpoints that were deployed and not ended, and those under way, each with its state."""
    service = service_of(request)
    found = await service.readers.run(lambda: listed(service.open(), service.settings.folder))
    return json_response({"endpoints": found})


@router.delete("/endpoints/{name}")
async def delete(
    request: Request, name: Annotated[str, Path(description="The endpoint's name.", max_length=63)]
) -> Response:
    """Ends an endpoint."""
    found = await start(service_of(request).settings, request.state.who, {"kind": "undeploy", "name": name})
    return json_response(found)
