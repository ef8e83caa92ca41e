"""What a scaling asks for: which make a gang, what a worker holds of them, and on which nodes."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
import ray
from hypothesis import example, given, strategies as st
from ray.train import ScalingConfig

from tests.support.refusals import refuses, refuses_each
from trainers import ConfigurationError, ParameterServerTrainer, TorchTrainer, XGBoostTrainer
from trainers.gangs.scaling import resources_per_worker
from trainers.registry import trainer_from_json

# ---- gangs


def test_a_scaling_that_makes_no_gang() -> None:
    cases: list[tuple[Callable[[], Any], tuple[object, ...]]] = [
        (lambda: ScalingConfig(num_workers=(0, 4)), ("num_workers", (0, 4), 1, 0)),
        (lambda: ScalingConfig(num_workers=10**5000), ("num_workers", "16,610", 1)),
        (
            lambda: ScalingConfig(resources_per_worker={"CPU": 10**5000}),
            ("resources_per_worker", "'CPU'", "16,610", 0),
        ),
        (lambda: ScalingConfig(num_workers=True), ("num_workers", True, 1)),
        (lambda: {"num_workers": 3}, ("scaling", {"num_workers": 3}, "ray.train.ScalingConfig")),
    ]
    refuses_each(
        [(lambda scaling=scaling: XGBoostTrainer(scaling=scaling()), names) for scaling, names in cases],
        ConfigurationError,
    )


def test_a_gang_may_be_elastic_where_its_trainer_can() -> None:
    scaling = ScalingConfig(num_workers=(2, 4))
    trainer = XGBoostTrainer(scaling=scaling)
    assert (trainer.least_workers, trainer.workers, trainer.in_hand) == (2, 4, False)
    remedy = ("TorchTrainer", "XGBoostTrainer", "backend='native'")
    with refuses(ConfigurationError, field="num_workers", value=(2, 4), remedy=remedy):
        ParameterServerTrainer(print, scaling=scaling)
    with refuses(ConfigurationError, field="global_batch_size", value=64, remedy=("3 workers", "63")):
        TorchTrainer(print, scaling=scaling, hyperparameters={"global_batch_size": 64})


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"use_gpu": True},
        {"use_gpu": True, "resources_per_worker": {"CPU": 2}},
        {"accelerator_type": "A100"},
        {"accelerator_type": "A100", "use_gpu": True, "resources_per_worker": {"CPU": 2, "GPU": 0.5}},
        {"resources_per_worker": {"CPU": 1, "accelerator_type:A100": 0.5}, "accelerator_type": "A100"},
    ],
)
def test_a_worker_holds_what_ray_asks_for_it(given: dict[str, Any]) -> None:
    """By that a gang knows its placement group."""
    scaling = ScalingConfig(num_workers=1, **given)
    assert resources_per_worker(scaling) == scaling.total_resources


@pytest.mark.parametrize(
    ("scaling", "cpus"),
    [
        (ScalingConfig(num_workers=3), 12),
        (ScalingConfig(num_workers=3, resources_per_worker={"CPU": 2}), 24),
        (ScalingConfig(num_workers=3, use_gpu=True), 0),
        (ScalingConfig(num_workers=3, use_gpu=True, resources_per_worker={"CPU": 1, "GPU": 1}), 12),
    ],
)
def test_the_cpus_that_four_gangs_ask_for(scaling: ScalingConfig, cpus: int) -> None:
    assert XGBoostTrainer(scaling=scaling).logical_cpus(gangs=4) == cpus


def test_ray_does_not_say_that_it_trains_what_it_does_not(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "ray.train"):
        trainer_from_json(XGBoostTrainer(scaling=ScalingConfig(num_workers=0)).to_json())
        logging.getLogger("ray.train.v2.api.config").info("something else")
    assert caplog.messages == ["something else"]


# ---- parts of GPUs


def _of_function(context: object) -> None:
    raise AssertionError("nothing is trained here")


@pytest.mark.parametrize("kind", [XGBoostTrainer, TorchTrainer, ParameterServerTrainer])
def test_two_workers_on_one_gpu_are_refused_before_a_gang_starts(kind: Callable[..., Any]) -> None:
    """NCCL takes one process a GPU; a gang of one worker has nobody to share it with but other gangs."""
    given = () if kind is XGBoostTrainer else (_of_function,)

    def made(workers: int, gpus: float) -> Any:
        resources = {"GPU": gpus}
        scaling = ScalingConfig(num_workers=workers, use_gpu=True, resources_per_worker=resources)
        return kind(*given, scaling=scaling)

    for workers, gpus in ((1, 0.5), (1, 1), (2, 1), (2, 2.0)):
        made(workers, gpus)
    refuses_each(
        [
            (lambda: made(2, 0.5), ("resources_per_worker", {"GPU": 0.5}, 2, "NCCL", "whole")),
            (
                lambda: made(1, 0.5).check({"num_workers": 2}),
                ("resources_per_worker", {"GPU": 0.5}, 2, "NCCL", "whole"),
            ),
            (lambda: made(1, 1.5), ("resources_per_worker", {"GPU": 1.5}, 1, "whole")),
            (lambda: made(2, 1.5), ("resources_per_worker", {"GPU": 1.5}, 2, "whole")),
        ],
        ConfigurationError,
    )


# ---- nodes


def test_nodes_that_it_cannot_ask_for_are_named() -> None:
    selectors: list[Any] = [{"zone": "in(a"}, [{"zone": "a"}], {"zone": 1}, {"zone": "a" * 64}]
    cases: list[tuple[dict[str, Any], tuple[object, ...]]] = [
        *(({"label_selector": given}, ("label_selector", given, "{'market-type': 'spot'}")) for given in selectors),
        ({"label_selector": {"": "a"}}, ("label_selector", {"": "a"}, 63, "'ray.io/market-type'")),
        ({"label_selector": {"zone": "a", "a b": "c"}}, ("label_selector", {"zone": "a", "a b": "c"}, "'a b'", 63)),
        ({"label_selector": {1: "a"}}, ("label_selector", {1: "a"}, 63)),
        ({"accelerator_type": ""}, ("accelerator_type", "''", "'A100'")),
        ({"use_tpu": True}, ("use_tpu=True", "topology=None", "CPUs", "GPUs")),
    ]
    refuses_each(
        [
            (lambda given=given: XGBoostTrainer(scaling=ScalingConfig(num_workers=1, **given)), names)
            for given, names in cases
        ],
        ConfigurationError,
    )


PARTS = st.from_regex(r"[aA1_.-]{0,3}", fullmatch=True) | st.sampled_from(["a" * 63, "a" * 64, "ray.io", "a b", "é"])


@given(
    st.lists(PARTS, min_size=1, max_size=3).map("/".join), PARTS | st.lists(PARTS).map(", ".join).map("!in({})".format)
)
@example(f"{'ab.' * 84}a/a", "a")
@example(f"{'ab.' * 84}ab/a", "a")
@example("zone\n", "a")
def test_no_label_selector_passes_that_ray_refuses(name: str, condition: str) -> None:
    selector: Any = {name: condition}
    with suppress(ConfigurationError):
        XGBoostTrainer(scaling=ScalingConfig(num_workers=1, label_selector=selector))
        ray.remote(label_selector=selector)(int)


@pytest.mark.parametrize("name", ["a", "market-type", "A.b_c-1", "ray.io/market-type", "a" * 63, f"{'ab.' * 84}a/a"])
def test_names_of_labels_pass(name: str) -> None:
    selector: Any = {name: "!in(a, b)"}
    assert XGBoostTrainer(scaling=ScalingConfig(num_workers=1, label_selector=selector)).to_json()["scaling"]
