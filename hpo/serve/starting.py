"""Starting of jobs and deployments in a process of its own, which goes on when the server dies: whole or not at all."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from hpo.record import Actor, acting
from hpo.serve.apart import answer, ask
from hpo.serve.deployments import begin, end
from hpo.serve.errors import RefusedError, as_refusal
from hpo.serve.security import Who
from hpo.serve.settings import ServeSettings
from trainers.errors import WarmbandError

AT_ONCE = 4
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
    from hpo.job_file import JobFileError, JobSpec, read_any
    from hpo.jobs import name_from
    from hpo.training import TrainingJob
    from hpo.tuner import HyperparameterTuner

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "job.yaml"
        file.write_text(given["text"], encoding="utf-8")
        try:
            spec = read_any(file, allow_code=given["allow_code"])
        except WarmbandError as error:
            message = str(error).replace(repr(str(file)), "of the request")
            if isinstance(error, JobFileError):
                raise JobFileError(message, error.fields) from None
            raise type(error)(message) from None
    arguments = {**spec.arguments(), "store": given["store"]}
    plan = None
    job: HyperparameterTuner | TrainingJob
    if isinstance(spec, JobSpec):
        job = HyperparameterTuner(**arguments, console=False)
        plan = job.plan().to_json()
    else:
        job = TrainingJob(**arguments, console=False)
    if given["kind"] == "check":
        return {"valid": True, "plan": plan}
    name = spec.name or name_from(spec.trainer.type.replace("_", ""))
    job.fit(spec.channels(given["data_dir"]), job_name=name, wait=False)
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
