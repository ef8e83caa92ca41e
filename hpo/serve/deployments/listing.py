"""The list of endpoints: what the record has, what is being deployed, and whether each answers."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any

from hpo.record import Store
from hpo.serve.deployments.files import Deployment, DeploymentFiles
from trainers.errors import WarmbandError

PING_SECONDS = 2.0
AT_ONCE = 16


def listed(store: Store, folder: Path) -> list[dict[str, Any]]:
    """The endpoints that were deployed and not ended, by name, as `hpo endpoints --json` has them.

    `state` is RUNNING where it answers and UNREACHABLE where it does not; DEPLOYING and DEPLOY_FAILED are those that
    this server was asked for. `reason` says what is wrong.

    Args:
        store: the record.
        folder: of the server's own files.
    """
    from hpo.endpoints import deployed

    recorded = {one.name: asdict(one) for one in deployed(store)}
    asked = DeploymentFiles(folder).read()
    names = sorted({*recorded, *asked})
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(lambda name: _line(name, recorded.get(name), asked.get(name)), names))


def problem_of(name: str, url: str) -> str:
    """Why an endpoint does not answer; empty where it does."""
    from hpo.endpoints import Predictor

    try:
        Predictor(name, url).ping(PING_SECONDS)
    except WarmbandError as error:
        return str(error)
    return ""


def _line(name: str, recorded: Mapping[str, Any] | None, asked: Deployment | None) -> dict[str, Any]:
    deploying = asked is not None and asked.state == "DEPLOYING"
    if asked is not None and (recorded is None or deploying):
        line = {each: getattr(asked, each) for each in ("name", "job", "trial", "by", "at")}
        line["url"] = recorded and recorded["url"]
    else:
        assert recorded is not None
        line = dict(recorded)
    if asked is not None and deploying and asked.lives:
        return {**line, "state": "DEPLOYING", "reason": ""}
    failure = "" if asked is None else asked.reason
    if asked is not None and deploying:
        failure = "the process that was to deploy it has ended"
    if recorded is None or deploying:
        return {**line, "state": "DEPLOY_FAILED", "reason": failure}
    problem = problem_of(name, recorded["url"])
    if asked is not None and asked.cluster and not asked.lives:
        problem = "the Ray that was started for it has ended; deploy it again, or end it"
    return {**line, "state": "UNREACHABLE" if problem else "RUNNING", "reason": problem or failure}
