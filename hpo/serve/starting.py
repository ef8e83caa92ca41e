"""Starting of jobs and deployments in a process of its own, which goes on when the server dies: whole or not at all."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from typing import Any

from hpo.record import Actor, acting
from hpo.serve.apart import answer, ask
from hpo.serve.deployments import begin, end
from hpo.serve.errors import RefusedError, as_refusal
from hpo.serve.places import Places
from hpo.serve.security import Who
from hpo.serve.settings import ServeSettings
from trainers.errors import WarmbandError

AT_ONCE = 4
WIDTH = 100
"""Characters of a line of the plan that a check shows."""
_under_way = 0


async def start(settings: ServeSettings, who: Who, request: Mapping[str, Any]) -> dict[str, Any]:
    """Has another process check, create or resume a job, or deploy its model, or end an endpoint.

    Args:
        settings: of the server.
        who: asks for it.
        request: `kind` is "check", "create", "resume", "deploy" or "undeploy"; what else there is follows from that.

    Raises:
        RefusedError: it does not go; also where it has not come to an end in three minutes, and goes on.
    """
    global _under_way
    if _under_way >= AT_ONCE:
        raise RefusedError(503, "Busy", f"{_under_way} processes are at work already", wait=5.0)
    _under_way += 1
    try:
        own = ("store", "data_dir", "allow_code")
        given = {**request, **{name: getattr(settings, name) for name in own}, "folder": str(settings.folder)}
        given["places"] = settings.places.to_json()
        found: dict[str, Any] = await ask("hpo.serve.starting", given, Actor(by=who.name, door="REST"))
    finally:
        _under_way -= 1
    if error := found.get("error"):
        raise RefusedError(error["status"], error["type"], error["message"], fields=error["fields"])
    return found


def _perform(given: dict[str, Any]) -> dict[str, Any]:
    try:
        with acting(clone_of=given.get("clone_of") or None):
            return _ACTS[given["kind"]](given)
    except WarmbandError as error:
        refusal = as_refusal(error)
        told = {"status": refusal.status, "type": refusal.kind, "message": str(refusal), "fields": refusal.fields}
        return {"error": told}


def _create(given: dict[str, Any]) -> dict[str, Any]:
    from rich.console import Console

    from hpo.job_file import JobSpec, read_text
    from hpo.jobs import name_from
    from hpo.training import TrainingJob
    from hpo.tuner import HyperparameterTuner

    spec = read_text(given["text"], allow_code=given["allow_code"])
    Places.of_json(given["places"]).check(spec.model_dump(mode="json"))
    told = io.StringIO()
    arguments = {**spec.arguments(), "store": given["store"], "console": Console(file=told, width=WIDTH)}
    tuner = HyperparameterTuner(**arguments) if isinstance(spec, JobSpec) else None
    job = tuner or TrainingJob.of(**arguments)
    name = spec.name or name_from(spec.trainer.type.replace("_", ""))
    channels = spec.channels(given["data_dir"])
    if given["kind"] == "check":
        job.check(channels, name, wait=False)
        return {"valid": True, "plan": tuner and tuner.plan().to_json(), "text": told.getvalue()}
    job.fit(channels, name, wait=False)
    return {"job": name}


def _resume(given: dict[str, Any]) -> dict[str, Any]:
    from hpo.jobs import JobSettings, check_allowed, check_resumable, in_record, launch
    from hpo.record import Store

    name, limits = given["job"], given["set"]
    with Store(given["store"]) as store:
        row = store.job(name)
    named = in_record(row.spec)
    check_allowed(named, given["allow_code"], f"job {name!r}", "hpo serve --allow-code")
    settings = JobSettings.of(row, allow_code=True)
    check_resumable(given["store"], name, limits)
    server = launch.cluster_for(settings.estimator)
    allowed = [code.name for code in named]
    where = launch.start(name, given["store"], server, resume=True, allowed=allowed, limits=limits)
    return {"job": name, "where": where}


_ACTS: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "check": _create,
    "create": _create,
    "resume": _resume,
    "deploy": begin,
    "undeploy": end,
}


def main() -> None:
    """Does what standard input asks for, and says on standard output what came of it."""
    answer(_perform)


if __name__ == "__main__":
    main()
