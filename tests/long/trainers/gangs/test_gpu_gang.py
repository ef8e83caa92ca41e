"""A gang on a real Ray cluster that counts GPUs; none is there, so nothing is trained on one."""

from __future__ import annotations

import json
import os
from typing import Any

import pytest

from tests.support.processes import python


@pytest.fixture(scope="module")
def told() -> dict[str, Any]:
    """What happened, in a process of its own: the tests' shared cluster has no GPUs."""
    done = python("-m", "tests.support.gpu_gang")
    assert done.returncode == 0, done.stderr[-4000:]
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


def test_each_worker_sees_its_peers_gpus_and_knows_its_own(told: dict[str, Any]) -> None:
    ranks = told["shared"]["told"]
    assert ranks[0]["visible"] == ranks[1]["visible"]
    seen = ranks[0]["visible"].split(",")
    assert sorted(seen) == sorted(rank["held"][0] for rank in ranks)
    assert [[seen[gpu] for gpu in rank["gpus"]] for rank in ranks] == [rank["held"] for rank in ranks]
    assert [rank["place"] for rank in ranks] == [[0, 2, 0], [1, 2, 0]]


def test_a_program_that_does_not_ask_for_them_sees_its_own_gpu_alone(told: dict[str, Any]) -> None:
    for rank in told["own"]["told"]:
        assert rank["visible"] == rank["held"][0]
        assert rank["gpus"] == [0]


def test_a_worker_with_a_gpu_uses_its_part_of_the_nodes_cores(told: dict[str, Any]) -> None:
    """Ray is asked for no CPU; of the node's eight a GPU's part is two, where the machine has as many."""
    for rank in told["shared"]["told"]:
        assert rank["cpus"] == max(1, min(8, len(os.sched_getaffinity(0))) // 4)


def test_a_trial_that_breaks_a_worker_fails_once_and_the_next_one_has_new_workers(told: dict[str, Any]) -> None:
    shared = told["shared"]
    assert shared["events"] == ["GangUp", "Served", "GangLost", "GangUp", "Served"]
    assert shared["error"] == "AcceleratorError: CUDA error: device-side assert triggered"
    assert shared["served"]
    assert shared["new"]
