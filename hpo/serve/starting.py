"""Starting of jobs and deployments in a process of its own, which goes on when the server dies: whole or not at all.

Checks are made in processes that a warm one forks, and end at their deadline or with the server.
"""

from __future__ import annotations

import io
import os
import signal
import socket
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from hpo.record import Actor, Store, acting
from hpo.serve.apart import SECONDS, answer, ask
from hpo.serve.deployments import begin, end
from hpo.serve.errors import RefusedError, as_refusal
from hpo.serve.places import Places
from hpo.serve.security import Who
from hpo.serve.settings import ServeSettings
from hpo.serve.warm import WarmChecks, serve
from trainers.errors import WarmbandError

AT_ONCE, OF_ONE_TOKEN = 4, 2
"""Processes at once, and those of one token."""

WIDTH = 100
"""Characters of a line of the plan that a check shows."""
checks = WarmChecks()
_under_way: Counter[str] = Counter()
"""Processes by the names of tokens."""


async def start(settings: ServeSettings, who: Who, request: Mapping[str, Any]) -> dict[str, Any]:
    """Has another process check, create or resume a job, or deploy its model, or end an endpoint.

    Args:
        settings: of the server.
        who: asks for it.
        request: `kind` is "check", "create", "resume", "deploy" or "undeploy"; what else there is follows from that.

    Raises:
        RefusedError: it does not go, or takes more than three minutes: a check and a creation are ended then, unless
            the job is in the record; all else goes on.
    """
    if (own_count := _under_way[who.name]) >= OF_ONE_TOKEN:
        message = f"{own_count} checks or starts of the token {who.name!r} are under way; wait for one of them"
        raise RefusedError(429, "TooManyRequests", message, wait=5.0)
    if (count := _under_way.total()) >= AT_ONCE:
        raise RefusedError(503, "Busy", f"{count} processes are at work already", wait=5.0)
    _under_way[who.name] += 1
    try:
        own = ("store", "data_dir", "allow_code")
        given = {**request, **{name: getattr(settings, name) for name in own}, "folder": str(settings.folder)}
        given["places"] = settings.places.to_json()
        actor = Actor(by=who.name, door="REST")
        found: dict[str, Any]
        if request["kind"] == "check":
            found = await checks.ask(given, actor, SECONDS)
        else:
            found = await ask("hpo.serve.starting", given, actor)
    finally:
        _under_way[who.name] -= 1
        if not _under_way[who.name]:
            del _under_way[who.name]
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
    if given["kind"] == "check":
        job.check(spec.channels(given["data_dir"]), name, wait=False)
        return {"valid": True, "plan": tuner and tuner.plan().to_json(), "text": told.getvalue()}
    with _in_time(given["store"], name):
        job.fit(spec.channels(given["data_dir"]), name, wait=False)
    return {"job": name}


@contextmanager
def _in_time(store: str | None, name: str) -> Iterator[None]:
    """Has this process and its group end in time, unless the job is in the record by then: that one goes on."""

    def look() -> None:
        with suppress(WarmbandError), Store(store) as opened:
            opened.job(name)
            return
        os.killpg(0, signal.SIGKILL)

    timer = threading.Timer(SECONDS, look)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


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


def _import_for_checks() -> None:
    """Imports what most checks need: it makes the example's tuner and its plan, and imports PyTorch if it can."""
    from rich.console import Console

    from hpo.job_file import example_file, read_text
    from hpo.tuner import HyperparameterTuner

    with suppress(ImportError):
        import torch  # noqa: F401
    arguments = read_text(example_file()).arguments()
    HyperparameterTuner(**arguments, console=Console(file=io.StringIO(), width=WIDTH)).plan()


if __name__ == "__main__":
    if len(sys.argv) > 1:
        serve(socket.socket(fileno=int(sys.argv[1])), _import_for_checks, _perform)
    else:
        main()
