"""Requests that the SDK 2 makes of `distribution=` and of other arguments, and the keys that it knows.

`python estimators.py BUCKET JOB` with AWS_ENDPOINT_URL_S3 set; prints JSON: the CreateTrainingJob request of each case,
which is caught before it is sent, and the names of all hyperparameters that the SDK's estimators have of their own.
"""

from __future__ import annotations

import inspect
import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import boto3
import sagemaker
import sagemaker.chainer
import sagemaker.estimator
import sagemaker.huggingface
import sagemaker.model
import sagemaker.mxnet
import sagemaker.pytorch
import sagemaker.rl.estimator
import sagemaker.tensorflow
import sagemaker.training_compiler.config
import sagemaker.tuner
from sagemaker.instance_group import InstanceGroup

os.environ["AWS_MAX_ATTEMPTS"] = "1"  # The SDK asks AWS whose bucket it is, and goes on without an answer.
bucket = sys.argv[1]
FOLDER = Path(__file__).parent / "programs"


class CaughtError(Exception):
    """A request, in place of being sent."""


def keep(params: dict[str, Any], **kwargs: Any) -> None:
    raise CaughtError(params)


session = sagemaker.Session(boto3.Session(region_name="us-east-1"), default_bucket=bucket)
session.sagemaker_client.meta.events.register("provide-client-params.sagemaker.CreateTrainingJob", keep)
IMAGES = {
    "pytorch": (sagemaker.pytorch.PyTorch, {"framework_version": "2.1.0", "py_version": "py310"}),
    "tensorflow": (sagemaker.tensorflow.TensorFlow, {"framework_version": "2.11", "py_version": "py39"}),
}
SMP = {"enabled": True, "parameters": {"partitions": 2, "microbatches": 4, "ddp": True}}
CASES: dict[str, tuple[str, str, int, dict[str, Any]]] = {
    "torch_distributed": ("pytorch", "ml.p3.8xlarge", 2, {"torch_distributed": {"enabled": True}}),
    "pytorchddp": ("pytorch", "ml.g5.48xlarge", 2, {"pytorchddp": {"enabled": True}}),
    "mpi": (
        "pytorch",
        "ml.c5.xlarge",
        2,
        {"mpi": {"enabled": True, "processes_per_host": 3, "custom_mpi_options": "-verbose --NCCL_DEBUG WARN"}},
    ),
    "mpi off": ("pytorch", "ml.c5.xlarge", 2, {"mpi": {"enabled": False, "processes_per_host": 3}}),
    "horovod": ("tensorflow", "ml.p3.16xlarge", 2, {"mpi": {"enabled": True}}),
    "parameter_server": ("tensorflow", "ml.c5.xlarge", 2, {"parameter_server": {"enabled": True}}),
    "mirrored": ("tensorflow", "ml.c5.xlarge", 2, {"multi_worker_mirrored_strategy": {"enabled": True}}),
    "dataparallel": ("pytorch", "ml.p4d.24xlarge", 2, {"smdistributed": {"dataparallel": {"enabled": True}}}),
    "modelparallel": (
        "pytorch",
        "ml.p3.16xlarge",
        1,
        {"smdistributed": {"modelparallel": SMP}, "mpi": {"enabled": True, "processes_per_host": 8}},
    ),
    "none": ("pytorch", "ml.p3.8xlarge", 1, {}),
}


def request(framework: str, instance: str, count: int, distribution: dict[str, Any], **more: Any) -> Any:
    made, versions = IMAGES[framework]
    estimator = made(
        entry_point="train.py",
        source_dir=str(FOLDER),
        role="arn:aws:iam::111122223333:role/anybody",
        output_path=f"s3://{bucket}/models",
        hyperparameters={"epochs": 3},
        metric_definitions=[{"Name": "train:loss", "Regex": "loss=([0-9.]+);"}],
        sagemaker_session=session,
        **({} if "instance_groups" in more else {"instance_count": count, "instance_type": instance}),
        **({"distribution": distribution} if distribution else {}),
        **versions,
        **more,
    )
    try:
        estimator.fit({"train": f"s3://{bucket}/bank/train"}, wait=False)
    except CaughtError as caught:
        return caught.args[0]
    raise AssertionError("nothing was asked for")


made: dict[str, Any] = {}
for case, given in CASES.items():
    try:
        made[case] = request(*given)
    except ValueError as error:  # Some are for versions and types that the SDK has a list of.
        made[case] = str(error)
group = InstanceGroup("a", "ml.c5.xlarge", 2)
made["instance_groups"] = request("pytorch", "", 0, {}, instance_groups=[group])
made["arguments"] = request(
    "pytorch",
    "ml.c5.xlarge",
    1,
    {},
    environment={"A": "1"},
    volume_size=100,
    subnets=["subnet-1"],
    security_group_ids=["sg-1"],
    max_run=600,
    max_wait=900,
    use_spot_instances=True,
    checkpoint_s3_uri=f"s3://{bucket}/none",
    keep_alive_period_in_seconds=60,
    container_log_level=10,
    tags=[{"Key": "a", "Value": "b"}],
)
made["encrypted"] = request("pytorch", "ml.c5.xlarge", 2, {}, encrypt_inter_container_traffic=True)

MODULES = (
    sagemaker.chainer.estimator,
    sagemaker.estimator,
    sagemaker.huggingface.estimator,
    sagemaker.model,
    sagemaker.mxnet.estimator,
    sagemaker.pytorch.estimator,
    sagemaker.rl.estimator,
    sagemaker.tensorflow.estimator,
    sagemaker.training_compiler.config,
    sagemaker.tuner,
)
found = {key for module in MODULES for key in re.findall(r"['\"](sagemaker_[a-z_]+)['\"]", inspect.getsource(module))}
keys = sorted(key for key in found if not key.endswith(("_session", "_config")))
sys.stdout.write("\n" + json.dumps({"requests": made, "keys": keys}) + "\n")
