"""Folders of the service's containers in hyperparameters."""

from __future__ import annotations

import pytest

from hpo.serve.aws import ServiceError
from hpo.serve.aws.creating.container_paths import with_own_folders
from tests.support.refusals import refuses

TENSORFLOW = "763104351884.dkr.ecr.us-east-1.amazonaws.com/tensorflow-training:2.14-cpu-py310"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("/opt/ml/model", "{model}"),
        ("/opt/ml/model/1", "{model}/1"),
        ("/opt/ml/models", None),
        ("/opt/ml/checkpoints/", "{checkpoints}/"),
        ("/opt/ml/output/data", "{output}"),
        ("/opt/ml/input/data/train", "{data:train}"),
        ("/opt/ml/input/data/train/a/b.csv", "{data:train}/a/b.csv"),
        ("/opt/ml/input/config/hyperparameters.json", None),
        ("/opt/mlx", "/opt/mlx"),
        ("s3://bucket/model", "s3://bucket/model"),
        (3, 3),
    ],
)
def test_a_folder_of_the_container_is_one_of_the_trial(value: object, expected: object) -> None:
    if expected is None:
        with refuses(ServiceError, field="where", value=value, remedy="SM_OUTPUT_DIR"):
            with_own_folders({"where": value}, "any")
    else:
        assert with_own_folders({"where": value}, "any") == {"where": expected}


def test_tensorflow_s_folder_in_s3_is_one_for_each_trial() -> None:
    given = {"model_dir": "s3://bucket/job/model", "epochs": 3}
    assert with_own_folders(given, TENSORFLOW) == {"model_dir": "{checkpoints}", "epochs": 3}
    assert with_own_folders(given, "pytorch-training:2.1") == given, "it is the user's own"
