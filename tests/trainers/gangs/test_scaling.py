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

from trainers import ConfigurationError, ParameterServerTrainer, TorchTrainer, XGBoostTrainer
from trainers.gangs.scaling import resources_per_worker
from trainers.registry import trainer_from_json

# ---- gangs


@pytest.mark.parametrize(
    ("scaling", "message"),
    [
        (
            lambda: ScalingConfig(num_workers=(0, 4)),
            r"num_workers=\(0, 4\)\) does not make a gang; give a whole number, 1 or more, or 0",
        ),
        (
            lambda: ScalingConfig(num_workers=10**5000),
            r"num_workers=a whole number of 16,610 bits\) does not make a gang",
        ),
        (
            lambda: ScalingConfig(resources_per_worker={"CPU": 10**5000}),
            r"resources_per_worker=a dict with a whole .*: 'CPU' is a whole number of 16,610 bits; give a number",
        ),
        (lambda: ScalingConfig(num_workers=True), r"num_workers=True\) does not make a gang"),
        (lambda: {"num_workers": 3}, "scaling is .*give a ray.train.ScalingConfig"),
    ],
)
def test_a_scaling_that_makes_no_gang(scaling: Callable[[], Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        XGBoostTrainer(scaling=scaling())


def test_a_gang_may_be_elastic_where_its_trainer_can() -> None:
    scaling = ScalingConfig(num_workers=(2, 4))
    trainer = XGBoostTrainer(scaling=scaling)
    assert (trainer.least_workers, trainer.workers, trainer.in_hand) == (2, 4, False)
    with pytest.raises(ConfigurationError, match=r"only TorchTrainer, and XGBoostTrainer with backend='native'"):
        ParameterServerTrainer(print, scaling=scaling)
    with pytest.raises(ConfigurationError, match=r"global_batch_size 64 does not divide by 3 workers"):
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
    refused = (
        r"'GPU': 0.5\}\) holds 0.5 GPUs for each worker of a gang of 2, and NCCL refuses two workers on one GPU; give"
    )
    with pytest.raises(ConfigurationError, match=refused):
        made(2, 0.5)
    with pytest.raises(ConfigurationError, match=refused):
        made(1, 0.5).check({"num_workers": 2})
    for workers in (1, 2):
        with pytest.raises(ConfigurationError, match=r"1\.5 GPUs .*; give a whole number of GPUs, or a part of one"):
            made(workers, 1.5)


# ---- nodes


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"label_selector": {"zone": "in(a"}}, r"label_selector=\{'zone': 'in\(a'\}\): give one dict for all workers"),
        ({"label_selector": [{"zone": "a"}]}, r"label_selector=\[.*give one dict for all workers, which are alike"),
        ({"label_selector": {"zone": 1}}, "give one dict for all workers"),
        ({"label_selector": {"zone": "a" * 64}}, "give one dict for all workers"),
        (
            {"label_selector": {"": "a"}},
            r"label_selector=\{'': 'a'\}\): '' cannot be the name of a label; give at most 63",
        ),
        ({"label_selector": {"zone": "a", "a b": "c"}}, "'a b' cannot be the name of a label; give at most 63 letters"),
        ({"label_selector": {1: "a"}}, "1 cannot be the name of a label"),
        ({"accelerator_type": ""}, "accelerator_type=''\\): give Ray's word for it, such as 'A100'"),
        ({"use_tpu": True}, r"use_tpu=True, topology=None\): trainers train on CPUs and GPUs"),
    ],
)
def test_nodes_that_it_cannot_ask_for_are_named(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        XGBoostTrainer(scaling=ScalingConfig(num_workers=1, **given))


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
