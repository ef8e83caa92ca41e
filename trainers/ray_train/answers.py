"""Answers to what a function asks of `ray.train`: one of two modules that take what Ray keeps private.

Ray Train has no public way to answer `ray.train.report` elsewhere than in its own run; what answers is an object that
says of itself that it "can be patched". Tested with ray 2.60; `tests/unit/trainers/ray_train/test_answers.py` fails
where another version asks otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

from ray.train.v2._internal.execution.train_fn_utils import (
    DistributedTrainFnUtils,
    LocalTrainFnUtils,
    get_train_fn_utils,
    set_train_fn_utils,
)

if TYPE_CHECKING:
    from ray.train import Checkpoint, DataConfig


class Trial(Protocol):
    """The trial that a function trains, as `ray.train` shows it to the function."""

    def report(self, metrics: Mapping[str, Any], checkpoint: Checkpoint | None, options: Mapping[str, Any], /) -> None:
        """`ray.train.report`; `options` are its other arguments."""

    def get_checkpoint(self) -> Checkpoint | None:
        """`ray.train.get_checkpoint`."""

    def get_dataset_shard(self, name: str | None) -> Any:
        """`ray.train.get_dataset_shard`."""


@contextmanager
def answering(trial: Trial, rank: int, world_size: int) -> Iterator[None]:
    """Lets a trial answer `ray.train` in this process meanwhile.

    The rest is answered as before: in a worker of Ray Train's by that worker, elsewhere as in its local mode.

    Args:
        trial: what answers.
        rank: of this worker, for a process that is no worker of Ray Train's.
        world_size: likewise.
    """
    try:
        before = get_train_fn_utils()
    except RuntimeError:
        before = None
    if before is not None and before.is_distributed():
        answers: Any = _in_gang(trial)
    else:
        answers = _in_process(trial, rank, world_size)
    set_train_fn_utils(answers)
    try:
        yield
    finally:
        set_train_fn_utils(before)


def split_names(config: DataConfig, names: Mapping[str, Any]) -> set[str]:
    """The datasets that each worker gets a part of; it gets the others whole."""
    wanted = config._datasets_to_split
    return set(names) if wanted == "all" else {name for name in names if name in wanted}


class _Answers:
    """The answers of a trial, in the names that `ray.train` asks by."""

    trial: Trial

    def report(self, metrics: Mapping[str, Any], checkpoint: Checkpoint | None = None, **options: Any) -> None:
        self.trial.report(metrics, checkpoint, options)

    def get_checkpoint(self) -> Checkpoint | None:
        return self.trial.get_checkpoint()

    def get_all_reported_checkpoints(self, **options: Any) -> list[Any]:
        return []  # A trial keeps its last one alone.

    def get_dataset_shard(self, dataset_info: Any) -> Any:
        return self.trial.get_dataset_shard(dataset_info.dataset_name)


class _InGang(_Answers, DistributedTrainFnUtils):  # type: ignore[misc]  # Ray's takes its arguments one by one
    pass


class _InProcess(_Answers, LocalTrainFnUtils):  # type: ignore[misc]  # as above
    pass


def _in_gang(trial: Trial) -> _InGang:
    answers = _InGang()
    answers.trial = trial
    return answers


def _in_process(trial: Trial, rank: int, world_size: int) -> _InProcess:
    answers = _InProcess(
        "in-this-process",
        world_size=world_size,
        world_rank=rank,
        local_rank=rank,
        local_world_size=world_size,
    )
    answers.trial = trial
    return answers
