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
from functools import partial
from pathlib import Path
from typing import Any

import pandas
import pytest

from hpo.record import Store
from hpo.serve import Keys
from hpo.serve.aws import ServiceError
from hpo.serve.aws.creating import read_tables
from hpo.serve.aws.creating.asked import training_of
from hpo.serve.aws.creating.settings import HYPERPARAMETERS
from tests.support.moto_s3 import moto_s3, s3_client
from tests.support.refusals import refuses_each
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
            for part in range(2):
                text = pandas.DataFrame(rows)[part * 1500 : (part + 1) * 1500].to_csv(index=False, header=False)
                files.put_object(Bucket="bucket", Key=f"bank/{name}/{name}_{part}.csv", Body=text.encode())
        yield address


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("clients")


@pytest.fixture(scope="module")
def environment(bucket: str, folder: Path) -> Iterator[dict[str, str]]:
    """What a client is told, of a server that runs."""
    key = Keys(folder / "keys.json").add("alice", "act")
    (folder / "tables.yaml").write_text('instances: [{match: "ml.g4dn.*", cpus: 1}]\n')
    role = {"ExecutionRoleArn": "arn:aws:iam::111122223333:role/anybody"}
    (folder / "resource-metadata.json").write_text(json.dumps(role))
    # Without that, the SDK tells AWS of each call, and waits where there is no network.
    defaults = {"PythonSDK": {"Modules": {"Session": {"DefaultS3Bucket": "bucket"}, "TelemetryOptOut": True}}}
    (folder / "defaults.yaml").write_text(json.dumps({"SchemaVersion": "1.0", "SageMaker": defaults}))
    told = {
        **os.environ,
        "RESOURCE_METADATA": str(folder / "resource-metadata.json"),
        "SAGEMAKER_USER_CONFIG_OVERRIDE": str(folder / "defaults.yaml"),
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


def test_the_posts_notebook_runs_with_sdk_2(run: Run, folder: Path) -> None:
    found = run("sdk2", "post.py", "bucket", "post")
    assert (found["role"], found["status"]) == ("arn:aws:iam::111122223333:role/anybody", "Completed")
    assert (found["trials"], found["workers"]) == (9, 2)
    assert found["value"] == pytest.approx(found["largest"])
    assert found["value"] > 0.6
    assert found["seconds"] > 0
    for frame in (found["one"], found["two"], found["curve"]):
        assert set(frame["metric_name"]) == {"validation:auc"}
        assert all(0.5 < value < 1 for value in frame["value"])
    # The SDK asks for means over a minute each.
    assert found["curve"]["value"][-1] == pytest.approx(found["value"], abs=0.05)
    assert re.fullmatch(rf"s3://bucket/models/{found['tuning']}-00\d/output/model\.tar\.gz", found["artifact"])
    assert found["model"] == found["artifact"]
    tuned = {"num_round", "eta", "min_child_weight", "colsample_bylevel"}
    assert tuned | {"tree_method", "_tuning_objective_metric"} <= found["hyperparameters"].keys()
    with Store(store_url(folder)) as store:
        assert [(act.by, act.door) for act in store.acts(found["tuning"])] == [("alice", "SageMaker")]


def test_what_the_estimators_of_sdk_2_ask_for_is_honoured_or_refused(
    run: Run, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = run("sdk2", "estimators.py", "bucket", "asked")
    assert set(found["keys"]) <= HYPERPARAMETERS.keys(), "the SDK knows further ones: put them into the table"
    for name in ("AWS_ENDPOINT_URL_S3", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION"):
        monkeypatch.setenv(name, environment[name])
    requests, tables = found["requests"], read_tables(None, allow_code=True)

    def trained(case: str) -> Any:
        return training_of(requests[case], tables, None)[0].settings.estimator

    def launcher(case: str) -> tuple[str, int, int, int]:
        made = trained(case)
        return made.launcher, made.processes_per_worker, made.parameter_servers, made.scaling.num_workers

    assert {case: launcher(case) for case in LAUNCHED} == LAUNCHED
    assert trained("parameter_server").hyperparameters == {"epochs": 3, "model_dir": "{checkpoints}"}
    assert trained("horovod").hyperparameters == {"epochs": 3, "model_dir": "{model}"}
    assert trained("arguments").environment == {"A": "1", "SM_LOG_LEVEL": "10", "SAGEMAKER_REGION": "us-east-1"}
    refuses_each(((partial(trained, case), names) for case, names in REFUSED.items()), ServiceError)


LAUNCHED = {
    "none": ("python", 1, 0, 1),
    "torch_distributed": ("torchrun", 4, 0, 2),
    "mpi": ("mpirun -verbose -x NCCL_DEBUG=WARN", 3, 0, 2),
    "mpi off": ("python", 1, 0, 2),
    "horovod": ("mpirun", 8, 0, 2),
    "parameter_server": ("tensorflow", 1, 2, 4),
    "mirrored": ("tensorflow", 1, 0, 2),
}
REFUSED: dict[str, tuple[object, ...]] = {
    "pytorchddp": ("sagemaker_distributed_dataparallel_enabled", "pytorchddp", "torch_distributed"),
    "dataparallel": ("sagemaker_distributed_dataparallel_enabled", "torch_distributed"),
    "modelparallel": ("mp_parameters", "torch_distributed"),
    "instance_groups": ("InstanceGroups", "InstanceType"),
    "encrypted": ("EnableInterContainerTrafficEncryption", True),
}


def test_a_script_of_pytorch_is_trained_and_tuned_with_sdk_2(run: Run) -> None:
    found = run("sdk2", "script.py", "bucket", "script")
    assert (found["once"], found["tuned"], found["workers"]) == ("Completed", "Completed", 2)
    assert math.isfinite(found["loss"])
    assert len(found["values"]) == 3
    assert set(found["curve"]) == {"train:loss"}
    entry_point, epochs, rate = found["attached"]
    assert (entry_point, epochs) == ("train.py", "4")
    assert 0.01 <= float(rate) <= 1


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
