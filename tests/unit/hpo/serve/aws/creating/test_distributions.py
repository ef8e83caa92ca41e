"""Launchers of the SDK's `distribution=`: each with all its settings, or refused by name."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from hpo.serve.aws import ServiceError
from hpo.serve.aws.creating.distributions import Distribution, distribution_of
from hpo.serve.aws.creating.settings import check_hyperparameters
from hpo.serve.aws.creating.tables import read_tables
from tests.support.refusals import refuses, refuses_each

TENSORFLOW = "763104351884.dkr.ecr.us-east-1.amazonaws.com/tensorflow-training:2.14-cpu-py310"
PYTORCH = "763104351884.dkr.ecr.us-east-1.amazonaws.com/pytorch-training:2.1-cpu-py310"


def found(told: dict[str, Any], *, image: str = PYTORCH, instances: int = 2, gpus: int = 0) -> Distribution:
    named = {f"sagemaker_{name}": value for name, value in told.items()}
    check_hyperparameters(named)
    return distribution_of(named, image, instances, gpus)


MPI = {"mpi_enabled": True, "mpi_custom_mpi_options": ""}


@pytest.mark.parametrize(
    ("told", "gpus", "expected"),
    [
        ({}, 4, Distribution()),
        ({"torch_distributed_enabled": True, "instance_type": "ml.p3.8xlarge"}, 4, Distribution("torchrun", 4)),
        ({"torch_distributed_enabled": True}, 0, Distribution("torchrun", 1)),
        ({"pytorch_ddp_enabled": True}, 8, Distribution("torchrun", 8)),
        ({"torch_distributed_enabled": True, "mpi_num_of_processes_per_host": 2}, 8, Distribution("torchrun", 2)),
        (MPI, 0, Distribution("mpirun", 1)),
        (MPI, 8, Distribution("mpirun", 8)),
        ({**MPI, "mpi_num_of_processes_per_host": 3}, 8, Distribution("mpirun", 3)),
        (
            {**MPI, "mpi_custom_mpi_options": "-verbose --NCCL_DEBUG WARN -x FOO='a b' -bind-to none"},
            0,
            Distribution("mpirun -verbose -x NCCL_DEBUG=WARN -x 'FOO=a b' --bind-to none", 1),
        ),
        ({**MPI, "mpi_custom_mpi_options": "--NCCL_DEBUG=INFO"}, 0, Distribution("mpirun -x NCCL_DEBUG=INFO", 1)),
        ({"mpi_enabled": False, "mpi_num_of_processes_per_host": 4, "mpi_custom_mpi_options": "-v"}, 0, Distribution()),
        ({"multi_worker_mirrored_strategy_enabled": True}, 4, Distribution("tensorflow", 1)),
        (
            {"distributed_dataparallel_enabled": False, **MPI, "training_compiler_enabled": False},
            0,
            Distribution("mpirun", 1),
        ),
    ],
)
def test_a_distribution_is_a_launcher_with_its_settings(
    told: dict[str, Any], gpus: int, expected: Distribution
) -> None:
    assert found(told, gpus=gpus) == expected


def test_each_instance_has_a_parameter_server_beside_its_worker() -> None:
    told = {"parameter_server_enabled": True}
    assert found(told, image=TENSORFLOW, instances=3) == Distribution("tensorflow", 1, 3)
    assert found(told, image="mine:1", instances=2) == Distribution("tensorflow", 1, 2)
    assert found(told, image=TENSORFLOW, instances=1) == Distribution(), "as the service's containers do"


REFUSED: list[tuple[dict[str, Any], tuple[object, ...]]] = [
    ({**MPI, "torch_distributed_enabled": True}, ("sagemaker_mpi_enabled", "sagemaker_torch_distributed_enabled")),
    ({"mpi_enabled": 3}, ("sagemaker_mpi_enabled", 3, "true")),
    ({**MPI, "mpi_num_of_processes_per_host": 0}, ("sagemaker_mpi_num_of_processes_per_host", 0)),
    ({**MPI, "mpi_num_of_processes_per_host": 1.5}, ("sagemaker_mpi_num_of_processes_per_host", 1.5)),
    ({**MPI, "mpi_custom_mpi_options": "-x 'A"}, ("sagemaker_mpi_custom_mpi_options", "-x 'A")),
    ({**MPI, "mpi_custom_mpi_options": "--NCCL_DEBUG"}, ("sagemaker_mpi_custom_mpi_options", "INFO")),
    ({**MPI, "mpi_num_processes": 4}, ("sagemaker_mpi_num_processes", 4, "processes_per_host")),
    (
        {"distributed_dataparallel_enabled": True},
        ("sagemaker_distributed_dataparallel_enabled", True, "smdistributed", "torch_distributed"),
    ),
    (
        {**MPI, "distribution_instance_groups": ["a"]},
        ("sagemaker_distribution_instance_groups", ["a"], "instance_groups"),
    ),
    (
        {"pytorch_xla_multi_worker_enabled": True},
        ("sagemaker_pytorch_xla_multi_worker_enabled", "pytorchxla", "torch_distributed"),
    ),
    ({"training_compiler_enabled": True}, ("sagemaker_training_compiler_enabled", "torch.compile")),
    ({"use_mpi": True}, ("sagemaker_use_mpi", "mpi")),
    ({"estimator": "RLEstimator"}, ("sagemaker_estimator", "RLEstimator")),
    ({"mpi_enable": True}, ("sagemaker_mpi_enable", True, "sagemaker_mpi_enabled")),
    ({"parameter_server_enabled": True}, ("sagemaker_parameter_server_enabled", PYTORCH, "parameter_server")),
]


def test_what_no_launcher_does_is_refused_by_name() -> None:
    refuses_each(((partial(found, told), names) for told, names in REFUSED), ServiceError)


def test_model_parallel_parameters_are_refused() -> None:
    with refuses(ServiceError, field="mp_parameters", remedy="torch_distributed"):
        check_hyperparameters({"mp_parameters": {"partitions": 2}})


@pytest.mark.parametrize(
    ("name", "gpus"),
    [
        ("ml.p2.16xlarge", 16),
        ("ml.p3.2xlarge", 1),
        ("ml.p3.8xlarge", 4),
        ("ml.p3.16xlarge", 8),
        ("ml.p3dn.24xlarge", 8),
        ("ml.p4d.24xlarge", 8),
        ("ml.p5.48xlarge", 8),
        ("ml.g4dn.xlarge", 1),
        ("ml.g4dn.12xlarge", 4),
        ("ml.g4dn.16xlarge", 1),
        ("ml.g5.12xlarge", 4),
        ("ml.g5.16xlarge", 1),
        ("ml.g5.48xlarge", 8),
        ("ml.g6e.24xlarge", 4),
        ("ml.m5.2xlarge", 0),
        ("ml.c5n.18xlarge", 0),
        ("ml.m7i-flex.large", 0),
        ("ml.r5.large", 0),
        ("ml.t3.medium", 0),
    ],
)
def test_an_instance_has_all_its_gpus(name: str, gpus: int) -> None:
    found = read_tables(None).instance(name)
    assert found is not None
    assert found.gpus == gpus


@pytest.mark.parametrize("name", ["ml.trn1.32xlarge", "ml.inf2.xlarge", "ml.p9.48xlarge", "ml.g5.3xlarge"])
def test_an_accelerator_that_is_not_listed_is_not_guessed(name: str) -> None:
    assert read_tables(None).instance(name) is None
