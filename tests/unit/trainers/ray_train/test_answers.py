"""How Ray Train asks for its answers: another version that asks otherwise fails here."""

from __future__ import annotations

import inspect

import pytest
import ray.train
from ray.train.v2._internal.execution import train_fn_utils

from trainers.ray_train.answers import answering, split_names


class Heard:
    """Writes down what it was asked."""

    def __init__(self) -> None:
        self.heard: list[object] = []

    def report(self, metrics, checkpoint, options) -> None:
        self.heard.append((metrics, checkpoint, options))

    def get_checkpoint(self):
        return "files"

    def get_dataset_shard(self, name):
        return f"shard of {name}"


@pytest.fixture
def outside(monkeypatch):
    """This process is no worker of Ray Train's, whatever ran in it before."""
    monkeypatch.setattr(train_fn_utils, "_train_fn_utils", None)


def test_the_functions_of_ray_train_are_answered_by_the_trial(outside):
    trial = Heard()
    with answering(trial, 1, 3):
        ray.train.report({"x": 1}, checkpoint=None)
        ray.train.report(metrics={"x": 2}, checkpoint_dir_name="a", delete_local_checkpoint_after_upload=True)
        assert ray.train.get_checkpoint() == "files"
        assert ray.train.get_dataset_shard("train") == "shard of train"
        assert ray.train.get_all_reported_checkpoints() == []
        context = ray.train.get_context()
        assert (context.get_world_rank(), context.get_world_size(), context.get_local_rank()) == (1, 3, 1)
    (first, _, usual), (second, _, asked) = trial.heard
    assert (first, second) == ({"x": 1}, {"x": 2})
    assert not usual["checkpoint_upload_fn"]
    assert not usual["validation"]
    assert asked["delete_local_checkpoint_after_upload"]
    with pytest.raises(RuntimeError):
        train_fn_utils.get_train_fn_utils()


def test_in_a_worker_of_ray_train_s_the_rest_is_its_own(monkeypatch):
    worker = train_fn_utils.DistributedTrainFnUtils()
    train_fn_utils.set_train_fn_utils(worker)
    try:
        with answering(Heard(), 0, 1):
            now = train_fn_utils.get_train_fn_utils()
            assert isinstance(now, train_fn_utils.DistributedTrainFnUtils)
            assert now.is_distributed()
        assert train_fn_utils.get_train_fn_utils() is worker
    finally:
        train_fn_utils.set_train_fn_utils(None)


def test_ray_asks_for_nothing_that_is_not_answered():
    """A new function of Ray's would go to the gang's own run, which is no trial."""
    asked = {name for name, _ in inspect.getmembers(train_fn_utils.TrainFnUtils, inspect.isfunction)}
    assert asked == {
        "report",
        "get_checkpoint",
        "get_all_reported_checkpoints",
        "get_dataset_shard",
        "get_context",
        "get_preemption_info",
        "is_distributed",
        "barrier",
        "broadcast_from_rank_zero",
    }
    assert set(inspect.signature(train_fn_utils.TrainFnUtils.report).parameters) == {
        "self",
        "metrics",
        "checkpoint",
        "checkpoint_dir_name",
        "checkpoint_upload_mode",
        "delete_local_checkpoint_after_upload",
        "checkpoint_upload_fn",
        "validation",
    }


def test_which_datasets_are_split():
    assert split_names(ray.train.DataConfig(), {"a": 1, "b": 2}) == {"a", "b"}
    assert split_names(ray.train.DataConfig(datasets_to_split=["a"]), {"a": 1, "b": 2}) == {"a"}
