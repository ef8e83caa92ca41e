"""The benchmark of GPUs: what it makes of its parts, and that those which CPUs can show run."""

from __future__ import annotations

import json
from typing import Any

import pytest

from experiments.gpu import NOT_RUN, Place, page_tables, rows, targets
from experiments.shared.benchmark import targets_to_json
from tests.support.experiments.gpu import ON_GPUS, PARTS
from tests.support.refusals import mentions


def changed(name: str, **values: Any) -> dict[str, dict[str, Any]]:
    return {**ON_GPUS, name: {**ON_GPUS[name], **values}}


def missed(parts: dict[str, dict[str, Any]]) -> list[str]:
    return [target.promise for target in targets(parts) if not target.kept]


def test_each_part_that_ran_is_held_to_its_promise() -> None:
    assert missed(ON_GPUS) == []
    assert len(targets(ON_GPUS)) == len(PARTS) - 1  # "worker" is told, and promised nothing.
    for names, parts in (
        (("samples", "PyTorch"), changed("step", there=[0.97, 0.97])),
        (("losses", "CPU"), changed("losses", difference=2e-4)),
        (("bytes", "trials"), changed("memory", grown_bytes=4.0)),
        (("step", "warm", "gang"), changed("starts", warm=[1.0])),
    ):
        [promise] = missed(parts)
        mentions(promise, *names)
    assert missed(changed("losses", difference=float("nan"))) != []


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("out_of_memory", {"workers_lost": 1}),
        ("out_of_memory", {"error": ""}),
        ("peer", {"difference": float("nan")}),
        ("assertion", {"workers_lost": 0}),
        ("assertion", {"workers_lost": 2}),
    ],
)
def test_a_recovery_that_lost_what_it_should_not_or_kept_what_is_broken_failed(
    name: str, values: dict[str, Any]
) -> None:
    assert len(missed(changed(name, **values))) == 1


def test_what_did_not_run_is_said_and_promises_nothing() -> None:
    parts = {**ON_GPUS, "assertion": {"ran_on": "2 x CPU, gloo", "not_run": NOT_RUN}}
    assert len(targets(parts)) == len(targets(ON_GPUS)) - 1
    assert ("assertion", NOT_RUN, "") in rows(parts)


def test_the_pages_tables_are_made_of_the_result() -> None:
    result = json.loads(json.dumps({"parts": ON_GPUS, "targets": targets_to_json(targets(ON_GPUS))}))
    made = page_tables(result)
    assert "| step | 2 x A GPU, NCCL | 0.990 times, medians 1.000 and 0.990 s |" in made["parts"]
    assert made["promises"].count("kept") == len(targets(ON_GPUS))


def test_a_gang_has_a_worker_for_each_gpu_four_at_most_and_two_without() -> None:
    assert [Place(gpus=("a GPU",) * count).workers for count in (0, 1, 3, 8)] == [2, 1, 3, 4]
    assert Place(gpus=()).words == "2 x CPU, gloo"
    assert Place(gpus=("A GPU",)).scaling(1).use_gpu
    assert not Place(gpus=()).scaling(2).use_gpu
