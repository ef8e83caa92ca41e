"""SageMaker's own clients, unmodified and in virtual environments of their own, against a server and an S3 of moto's.

`make test-clients` installs them and runs these.
"""

from __future__ import annotations

import json
import math
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas
import pytest

from hpo.record import Store
from hpo.serve import Keys
from tests.support.moto_s3 import moto_s3, s3_client
from trainers.datasets import find, load

ROOT = Path(__file__).parents[5]
CLIENTS = Path(os.environ.get("WARMBAND_CLIENTS", "~/.cache/warmband/clients")).expanduser()
SECONDS = 900.0

Run = Callable[..., Any]


@pytest.fixture(scope="module")
def bucket() -> Iterator[str]:
    """The address of an S3 with the bank marketing data in it."""
    with moto_s3() as address:
        files = s3_client(address)
        files.create_bucket(Bucket="bucket")
        data = load("bank-marketing" if find("bank-marketing", None) else "bank-marketing-synthetic")
        for name, rows in (("train", data.train), ("validation", data.validation)):
            text = pandas.DataFrame(rows)[:3000].to_csv(index=False, header=False)
            files.put_object(Bucket="bucket", Key=f"bank/{name}/{name}.csv", Body=text.encode())
        yield address


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("clients")


@pytest.fixture(scope="module")
def environment(bucket: str, folder: Path) -> Iterator[dict[str, str]]:
    """What a client is told, of a server that runs."""
    key = Keys(folder / "keys.json").add("alice", "act")
    (folder / "tables.yaml").write_text('instances: [{match: "ml.g4dn.*", cpus: 1}]\n')
    told = {
        **os.environ,
        "AWS_ACCESS_KEY_ID": key.id,
        "AWS_SECRET_ACCESS_KEY": key.secret,
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_REGION": "us-east-1",
        "AWS_ENDPOINT_URL_S3": bucket,
        "WARMBAND_HOME": str(folder / "home"),
        "PYTHONPATH": str(ROOT),
    }
    command = [sys.executable, "-m", "hpo", "serve", "--port", "0", "--allow-code", "--store", store_url(folder)]
    command += ["--aws-keys", str(folder / "keys.json"), "--aws-tables", str(folder / "tables.yaml")]
    log = folder / "serve.log"
    with log.open("w") as out:
        server = subprocess.Popen(command, env=told, stdout=out, stderr=subprocess.STDOUT)
    until = time.monotonic() + 60
    while (found := re.search(r"http://127\.0\.0\.1:\d+", log.read_text())) is None:
        assert time.monotonic() < until, f"the server does not answer within 60 s: {log.read_text()}"
        time.sleep(0.2)
    services = ("SAGEMAKER", "CLOUDWATCH", "CLOUDWATCH_LOGS")
    yield {**told, **{f"AWS_ENDPOINT_URL_{service}": found[0] for service in services}}
    server.terminate()
    server.wait(60)


def store_url(folder: Path) -> str:
    return f"sqlite:///{folder}/record.db"


@pytest.fixture
def run(environment: dict[str, str]) -> Run:
    """Runs a script of a client's, and reads the JSON of its last line."""

    def made(client: str, script: str, *arguments: str) -> Any:
        python = CLIENTS / client / "bin" / "python"
        assert python.exists(), f"{python} is missing: make test-clients installs it"
        command = [str(python), str(ROOT / "tests/support/clients" / script), *arguments]
        ran = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False)
        assert ran.returncode == 0, f"{ran.stdout[-3000:]}\n{ran.stderr[-6000:]}"
        return json.loads(ran.stdout.strip().splitlines()[-1])

    return made


def test_the_posts_steps_run_with_sdk_2(run: Run, folder: Path) -> None:
    found = run("sdk2", "post.py", "bucket", "post")
    assert (found["status"], found["trials"], found["workers"]) == ("Completed", 9, 2)
    assert found["value"] == pytest.approx(found["largest"])
    assert found["value"] > 0.6
    # The SDK asks for means over a minute each.
    assert found["curve"][-1] == pytest.approx(found["value"], abs=0.05)
    assert re.fullmatch(r"s3://bucket/models/post-00\d/output/model\.tar\.gz", found["artifact"])
    with Store(store_url(folder)) as store:
        assert [(act.by, act.door) for act in store.acts("post")] == [("alice", "SageMaker")]


def test_a_script_of_pytorch_is_trained_and_tuned_with_sdk_2(run: Run) -> None:
    found = run("sdk2", "script.py", "bucket", "script")
    assert (found["once"], found["tuned"], found["workers"]) == ("Completed", "Completed", 2)
    assert math.isfinite(found["loss"])
    assert len(found["values"]) == 3


def test_resources_of_sdk_3_create_and_find_a_training(run: Run) -> None:
    found = run("sdk3", "core.py", "bucket", "core")
    assert (found["status"], found["listed"]) == ("Completed", True)
    assert found["metrics"]["validation:auc"] > 0.6


def test_the_command_describes_and_lists(environment: dict[str, str]) -> None:
    aws = CLIENTS / "cli" / "bin" / "aws"
    assert aws.exists(), f"{aws} is missing: make test-clients installs it"

    def ask(*arguments: str) -> Any:
        command = [str(aws), "sagemaker", *arguments, "--output", "json"]
        ran = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
        assert ran.returncode == 0, ran.stderr
        return json.loads(ran.stdout)

    listed = ask("list-training-jobs", "--max-items", "3")["TrainingJobSummaries"]
    assert listed, "the tests before made some"
    name = listed[0]["TrainingJobName"]
    assert ask("describe-training-job", "--training-job-name", name)["TrainingJobName"] == name
