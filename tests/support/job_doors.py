"""The ways by which a person stops or deletes a job: the command line, Python, REST, and SageMaker's protocol."""

from __future__ import annotations

import io
import json
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from typing import TYPE_CHECKING, Literal

from starlette.testclient import TestClient

from hpo import HyperparameterTuner
from hpo.cli.commands import records
from hpo.serve import Keys, ServeSettings, Tokens, make_app
from tests.support.hpo.serve.aws.signed import Door

if TYPE_CHECKING:
    from tests.support.job_life import World

StopBy = Literal["CLI", "Python", "REST", "SageMaker"]
DeleteBy = Literal["CLI", "REST", "SageMaker"]
"""Python has no function that deletes a job."""


def stop(world: World, by: StopBy) -> None:
    """Ask a world's job to stop."""
    if by == "CLI":
        with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
            records.stop("job", wait=0.0, store=world.url)
    elif by == "Python":
        HyperparameterTuner.attach("job", store=world.url).stop_tuning_job()
    elif by == "REST":
        with _served(world) as (client, settings):
            answer = client.post("/api/jobs/job/stop", headers=_bearer(settings))
            assert answer.status_code == 202, answer.text
    else:
        _ask_as_sagemaker(world, "StopHyperParameterTuningJob")


def delete(world: World, by: DeleteBy, *, keep_files: bool) -> None:
    """Delete a world's job; SageMaker's protocol always keeps its files."""
    if by == "CLI":
        with redirect_stdout(io.StringIO()):
            records.delete("job", keep_files=keep_files, yes=True, store=world.url)
    elif by == "REST":
        with _served(world) as (client, settings):
            answer = client.delete(f"/api/jobs/job?keep_files={str(keep_files).lower()}", headers=_bearer(settings))
            assert answer.status_code == 200, answer.text
    else:
        assert keep_files, "the protocol leaves the files"
        _ask_as_sagemaker(world, "DeleteHyperParameterTuningJob")


@contextmanager
def _served(world: World) -> Iterator[tuple[TestClient, ServeSettings]]:
    folder = world.root / "serve" / uuid.uuid4().hex
    keys = Keys(folder / "keys.json")
    keys.add("tester", "act")
    settings = ServeSettings(store=world.url, folder=folder, aws_keys=keys.file)
    with TestClient(make_app(settings), base_url="http://localhost") as client:
        yield client, settings


def _bearer(settings: ServeSettings) -> dict[str, str]:
    return {"Authorization": f"Bearer {Tokens(settings.tokens_file).add('tester', 'act')}"}


def _ask_as_sagemaker(world: World, operation: str) -> None:
    with _served(world) as (client, settings):
        assert settings.aws_keys is not None
        door = Door(client, Keys(settings.aws_keys), world.url)
        answer = door.call(operation, json.dumps({"HyperParameterTuningJobName": "job"}).encode())
    # One that is over already, or asked already, is refused.
    assert answer.status_code == 200 or "status" in answer.text, answer.text
