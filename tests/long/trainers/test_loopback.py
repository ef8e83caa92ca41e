"""A cluster of a job's own: it listens on 127.0.0.1 alone, asks for its token, and ends with the job."""

from __future__ import annotations

from typing import Any

from tests.support.trainers.loopback import job, short_home  # noqa: F401  # Fixtures.

LOOPBACK = {"0100007F", "0000000000000000FFFF00000100007F", "00000000000000000000000001000000"}


ANYWHERE = {
    # By these sockets XGBoost's workers find each other.
    "XGBoostTrainer": {("ray::RayTrainWo", "00000000")},
    # The store by which torch.distributed's processes find each other, rank 0's.
    "TorchTrainer": {("ray::RayTrainWo", "0" * 32)},
    "ParameterServerTrainer": {("ray::RayTrainWo", "0" * 32)},
}
"""What is bound to all addresses, in IPv4 and IPv6, and has no setting that would change it."""


def test_jobs_listen_on_this_machine_alone(job: dict[str, Any]) -> None:
    assert list(job["found"]) == ["XGBoostTrainer", "TorchTrainer", "ParameterServerTrainer"]
    for trainer, found in job["found"].items():
        # The watch sees what it is for.
        assert {"gcs_server", "raylet", "ray::RayTrainWo"} <= {name for name, _ in found}
        beyond = {(name, address) for name, address in found if address not in LOOPBACK}
        assert beyond <= ANYWHERE[trainer]
