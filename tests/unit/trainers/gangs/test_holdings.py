"""Cores and GPUs of a worker's process: what it may use where Ray was asked for GPUs alone."""

from __future__ import annotations

import pytest

from trainers.gangs.worker.holdings import cores, device, ordinals


@pytest.mark.parametrize(
    ("held", "node", "usable", "expected"),
    [
        ({"CPU": 3.0}, {"CPU": 16.0, "GPU": 4.0}, 16, 3),
        ({"CPU": 0.5}, {}, 16, 1),
        ({"CPU": 2.0, "GPU": 1.0}, {"CPU": 64.0, "GPU": 8.0}, 64, 2),
        ({"GPU": 1.0}, {"CPU": 64.0, "GPU": 8.0}, 64, 8),
        ({"GPU": 2.0}, {"CPU": 64.0, "GPU": 8.0}, 64, 16),
        ({"GPU": 0.3}, {"CPU": 20.0, "GPU": 2.0}, 64, 3),
        ({"GPU": 1.0}, {"CPU": 64.0, "GPU": 8.0}, 16, 2),  # A container has fewer than Ray was told of.
        ({"GPU": 1.0}, {"CPU": 0.0, "GPU": 2.0}, 12, 6),  # A node that was started with num_cpus=0.
        ({"GPU": 1.0}, {"GPU": 2.0}, 12, 6),
        ({"GPU": 1.0}, {"CPU": 2.0, "GPU": 8.0}, 2, 1),
        ({"GPU": 1.0}, {}, 12, 1),
        ({}, {"CPU": 16.0}, 16, 1),
    ],
)
def test_a_worker_uses_the_cpus_that_it_holds_or_its_gpus_part_of_the_nodes(
    held: dict[str, float], node: dict[str, float], usable: int, expected: int
) -> None:
    assert cores(held, node, usable) == expected


@pytest.mark.parametrize(
    ("held", "visible", "expected"),
    [
        (["1"], "1", (0,)),
        (["2"], "0,1,2,3", (2,)),
        (["10", "3"], "0, 10, 3", (1, 2)),
        (["5"], None, (5,)),
        (["5"], "", (5,)),
        (["GPU-b"], "GPU-a,GPU-b", (1,)),
        (["GPU-b"], None, ()),
        ([], "0,1", ()),
    ],
)
def test_cuda_counts_the_gpus_that_a_process_sees(
    held: list[str], visible: str | None, expected: tuple[int, ...]
) -> None:
    assert ordinals(held, visible) == expected


@pytest.mark.parametrize(
    ("count", "gpus", "expected"),
    [(1, [], "1 core"), (8, [], "8 cores"), (8, ["3"], "GPU 3"), (8, ["0", "2"], "GPUs 0, 2")],
)
def test_what_a_worker_computes_on_is_said_in_words(count: int, gpus: list[str], expected: str) -> None:
    assert device(count, gpus) == expected
