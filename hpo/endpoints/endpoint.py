"""Endpoints: a job's model on replicas of Ray Serve, and in the record who deployed it and ended it."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hpo.endpoints.predictor import Predictor
from hpo.endpoints.replica import Replica
from hpo.endpoints.scoring import Scorer
from hpo.record import Store
from trainers.checking import check_whole, is_number, shown
from trainers.errors import ConfigurationError, WarmbandError
from trainers.extras import install

_NAME = re.compile(r"[A-Za-z0-9](-?[A-Za-z0-9]){0,62}")
BATCH_SECONDS = 0.005
"""That a request waits for others to be predicted with."""
_HEALTH_SECONDS = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """One that was deployed and not ended, as the record has it.

    Args:
        name: its name.
        job: whose model it has.
        trial: which of the job's.
        url: where it answers.
        by: who deployed it.
        at: when, in unix seconds.
    """

    name: str
    job: str
    trial: str
    url: str
    by: str
    at: float


def check_place(name: str, replicas: Any, cpus: Any, batch: Any) -> None:
    """Refuses what no endpoint can be deployed with.

    Raises:
        ConfigurationError: naming the argument.
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ConfigurationError(f"endpoint_name is {name!r}; give letters, digits and hyphens, 63 at most")
    for what, value in (("initial_instance_count", replicas), ("max_batch_size", batch)):
        check_whole(what, value, 1, required=True)
    if not is_number(cpus) or not 0 < cpus < 1e6:
        raise ConfigurationError(f"cpus is {shown(cpus)}; give the CPUs of a replica, such as 1 or 0.5")


def deploy(
    scorer: Scorer,
    name: str,
    *,
    about: Mapping[str, Any],
    replicas: int = 1,
    cpus: float = 1.0,
    batch: int = 64,
    port: int = 8000,
    seconds: float = 300.0,
) -> str:
    """Serves a model on the Ray cluster that this process has joined, or on one that is started and ends with it.

    An endpoint of the same name is replaced: its old replicas go once the new ones are healthy.

    Args:
        scorer: of the model.
        name: the endpoint's.
        about: what its ping tells.
        replicas: how many processes predict; one that dies, or is not healthy, is replaced.
        cpus: of each.
        batch: requests that are predicted together at most.
        port: of the cluster's HTTP proxy, which is started where none runs; on 127.0.0.1 of each node.
        seconds: that it may take to come up.

    Returns:
        Its address.

    Raises:
        ConfigurationError: Ray Serve is not installed, or an argument is wrong.
        WarmbandError: it does not come up.
    """
    check_place(name, replicas, cpus, batch)
    serve = ray_serve()
    _join()
    serve.start(http_options={"host": "127.0.0.1", "port": port})
    deployment = serve.deployment(
        name="model",
        num_replicas=replicas,
        ray_actor_options={"num_cpus": cpus},
        max_ongoing_requests=4 * batch,
        health_check_period_s=_HEALTH_SECONDS,
        graceful_shutdown_timeout_s=10.0,
    )
    url, replaced = f"http://127.0.0.1:{port}/{name}", name in serve.status().applications
    try:
        application = deployment(_batching(serve, batch)).bind(scorer, dict(about))
        serve.run(application, name=name, route_prefix=f"/{name}", blocking=False)
    except RuntimeError as error:
        if not replaced:  # The one before may answer on.
            serve.delete(name)
        raise WarmbandError(f"endpoint {name} did not come up: {error}") from None
    Predictor(name, url).wait(seconds)
    return url


def delete(name: str) -> bool:
    """Ends an endpoint of the cluster that this process joins.

    Returns:
        Whether it ran.
    """
    serve = ray_serve()
    _join()
    there = name in serve.status().applications
    if there:
        serve.delete(name)
    return there


def states() -> dict[str, str]:
    """Ray Serve's word for the state of each endpoint of the cluster that this process joins, by name.

    Raises:
        ConfigurationError: Ray Serve is not installed.
        WarmbandError: no cluster can be joined.
    """
    serve = ray_serve()
    _join()
    return {name: str(one.status.value) for name, one in serve.status().applications.items()}


def deployed(store: Store, name: str | None = None) -> list[Endpoint]:
    """The endpoints that were deployed and not ended, by the record; those of deleted jobs are not there.

    Args:
        store: the record.
        name: of one alone; None is all.
    """
    found: dict[str, Endpoint] = {}
    for act in (one for one in store.acts() if one.gone_at is None):
        endpoint = str(act.arguments.get("endpoint", ""))
        if act.kind == "deployed":
            trial, url = str(act.arguments.get("trial", "")), str(act.arguments.get("url", ""))
            found.pop(endpoint, None)
            found[endpoint] = Endpoint(name=endpoint, job=act.job, trial=trial, url=url, by=act.by, at=act.at)
        elif act.kind == "undeployed":
            found.pop(endpoint, None)
    return [one for one in found.values() if name is None or one.name == name]


def _batching(serve: Any, batch: int) -> type[Replica]:
    """A replica that predicts the rows of several requests together."""

    class Batching(Replica):
        """See above."""

        @serve.batch(max_batch_size=batch, batch_wait_timeout_s=BATCH_SECONDS)  # type: ignore[untyped-decorator]
        async def together(self, requests: list[Any]) -> list[Any]:
            """See `Replica.together`."""
            return await self.predicted(requests)

    return Batching


def ray_serve() -> Any:
    """Ray Serve's module.

    Raises:
        ConfigurationError: it is not installed.
    """
    try:
        from ray import serve
    except ImportError as error:
        raise ConfigurationError(
            f"Ray Serve needs packages that are not installed: {error}; install them: {install('deploy')}"
        ) from None
    return serve


def _join() -> None:
    """Joins the cluster that `RAY_ADDRESS` names, or starts Ray here.

    Raises:
        WarmbandError: there is none, or it is the address of a jobs server.
    """
    import ray

    if ray.is_initialized():
        return
    address = os.environ.get("RAY_ADDRESS") or "local"
    try:
        ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
    except (ValueError, OSError, RuntimeError) as error:
        why = str(error).partition("\n")[0]
        raise WarmbandError(f"no cluster can be joined by RAY_ADDRESS {address!r}, give HEAD:6379: {why}") from None
