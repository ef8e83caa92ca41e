"""One assignment through xgboost_ray: matrices, reports of its actors, and the segment as the answer.

Imported by the workers of this backend alone, since it imports xgboost_ray.
"""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import ray
import xgboost
import xgboost_ray
from xgboost_ray.callback import DistributedCallback
from xgboost_ray.session import get_rabit_rank, put_queue

from trainers import steady
from trainers.channels import PlacedChannel
from trainers.errors import GangError
from trainers.gangs import Assignment, Halts, Report, Segment
from trainers.patient_storage import PatientStorage
from trainers.process import calm_loaded
from trainers.xgboost.booster import booster_parameters, read_model
from trainers.xgboost.ray_backend.compat import mend
from trainers.xgboost.rounds import BestRound, Looks

TRIES = 3
"""How often an assignment is begun where xgboost_ray takes an interrupted training for a finished one."""


class ChannelMatrix(xgboost_ray.RayDMatrix):  # type: ignore[misc]  # xgboost_ray has no types
    """A channel as an actor reads it for itself, so that nothing is copied on the way.

    Args:
        channel: "train" is read by shards, the very ones of a native gang; any other whole, by every actor, so that
            its metrics are exact.
    """

    def __init__(self, channel: PlacedChannel) -> None:
        # To xgboost_ray it is a distributed source with a label, which actors load.
        super().__init__(channel, label="target", distributed=True, enable_categorical=True)
        self.channel = channel

    def get_data(self, rank: int, num_actors: int | None = None) -> dict[str, Any]:
        """Called by an actor: what its `xgboost.DMatrix` is made of."""
        if self.channel.name == "train":
            table = self.channel.read(rank, self.channel.num_workers)
        else:
            table = self.channel.read_whole()
        names = None if table.feature_names is None else list(table.feature_names)
        return {"data": table.features, "label": table.labels, "feature_names": names}

    def assert_enough_shards_for_actors(self, num_actors: int) -> None:
        """Placing the channel has made sure of it."""

    def assign_shards_to_actors(self, actors: Sequence[Any]) -> bool:
        """Ranks say who reads what."""
        return False

    def update_matrix_properties(self, matrix: xgboost.DMatrix) -> None:
        """The features have their names already."""


class Journal:
    """Rank 0's reports of the assignment that this process is serving; another thread may ask for news of it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._reports: dict[int, Report] = {}
        self._untold: list[Report] = []
        self.first_step_at = 0.0
        self.training_seconds = 0.0
        self._began = self._last = 0.0

    def begin(self) -> None:
        """An assignment begins."""
        with self._lock:
            self._reports, self._untold = {}, []
            self.first_step_at = self.training_seconds = self._began = self._last = 0.0

    def note(self, began: float, at: float, report: Report) -> None:
        """Rank 0 has taken a step; after a restart it takes some again.

        Args:
            began: when it began with its first step, in seconds since the epoch by its process's clock.
            at: when this step was over, by the same.
            report: of the step.
        """
        with self._lock:
            self.first_step_at = self.first_step_at or began
            self.training_seconds += at - (self._last if began == self._began else began)
            self._began, self._last = began, at
            self._reports[report.step] = report
            self._untold.append(report)

    def news(self) -> tuple[Report, ...]:
        """Reports since the last call."""
        with self._lock:
            told, self._untold = self._untold, []
            return tuple(told)

    def so_far(self) -> tuple[Report, ...]:
        """One report a step, in their order."""
        with self._lock:
            return tuple(report for _, report in sorted(self._reports.items()))

    def reports(self, start: int, stop: int) -> tuple[Report, ...]:
        """One report a step, after `start` until `stop`.

        Raises:
            GangError: some are missing.
        """
        if missing := [step for step in range(start + 1, stop + 1) if step not in self._reports]:
            raise GangError(f"xgboost_ray ended without rounds {missing[0]} to {missing[-1]} of {stop}")
        return tuple(self._reports[step] for step in range(start + 1, stop + 1))


JOURNAL = Journal()
"""This process's: what xgboost_ray takes out of its queue reaches nothing else."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Note:
    """Note of rank 0 in xgboost_ray's queue, which then calls it where `train` runs."""

    began: float
    at: float
    report: Report | None

    def __call__(self) -> None:
        if self.report is not None:
            JOURNAL.note(self.began, self.at, self.report)


def unless_interrupted(train: Callable[[], Any]) -> Any:
    """A training's model; it is begun again where xgboost_ray takes an interrupted one for a finished one.

    Where an actor dies, xgboost_ray 0.1.19 stops the others, and may hear of their ends as of that of the training. It
    then looks for figures of a whole training that it does not have: `KeyError: 'total_n'`.

    Args:
        train: calls `xgboost_ray.train`.

    Raises:
        GangError: that came `TRIES` times.
        Exception: what xgboost_ray raises else.
    """
    for _ in range(TRIES):
        try:
            return train()
        except KeyError as error:
            if error.args != ("total_n",):
                raise
        gc.collect()  # What is left of that training ends with the handles of its actors.
    raise GangError(f"xgboost_ray took an interrupted training for a finished one {TRIES} times")


class _TellRounds(xgboost.callback.TrainingCallback):
    """Runs in every actor: rank 0 tells each round. It is told before xgboost_ray's own checkpoint of that round.

    All actors end with the same round where the coordinator was told to halt.
    """

    def __init__(self, coordinator: Any) -> None:
        self._coordinator = coordinator
        self._began = 0.0
        self._looks: Looks | None = None

    def before_training(self, model: Any) -> Any:
        self._looks = Looks(
            Halts(self._coordinator.halted.remote),
            rank=get_rabit_rank(),
            world_size=xgboost.collective.get_world_size(),
            start=model.num_boosted_rounds(),
        )
        # The queue's process imports xgboost_ray with the first thing put into it: seconds that are no training.
        self._tell(None)
        self._began = steady.now()
        return model

    def after_iteration(self, model: Any, epoch: int, evals_log: Mapping[str, Mapping[str, Any]]) -> bool:
        metrics = {
            f"{channel}:{name}": float(values[-1])
            for channel, by_name in evals_log.items()
            for name, values in by_name.items()
        }
        # Not `epoch`: xgboost_ray counts from 0 again after each restart.
        step = model.num_boosted_rounds()
        self._tell(Report(step=step, metrics=metrics))
        assert self._looks is not None, "training begins before its first round"
        return self._looks.halt(step)

    def _tell(self, report: Report | None) -> None:
        if get_rabit_rank() == 0:
            put_queue(_Note(began=self._began, at=steady.now(), report=report))


class _Register(DistributedCallback):  # type: ignore[misc]  # xgboost_ray has no types
    """Runs in every actor as it starts: makes it known to the coordinator, which has to tell a dead one later.

    What comes before, xgboost_ray imports XGBoost without us.
    """

    def __init__(self, coordinator: Any) -> None:
        self._coordinator = coordinator

    def on_init(self, actor: Any, *args: Any, **kwargs: Any) -> None:
        calm_loaded()
        ray.get(self._coordinator.register.remote(actor.rank, ray.get_runtime_context().current_actor))


class Training:
    """Serves assignments through xgboost_ray, one at a time, with actors that start and end in each.

    Args:
        channels: "train" and those to evaluate.
        resources: of one actor.
        ray_params: fields of `xgboost_ray.RayParams` that the user gave.
        coordinator: the actor that this runs in.
        storage: where checkpoints are read and written.
    """

    def __init__(
        self,
        channels: Mapping[str, PlacedChannel],
        resources: Mapping[str, float],
        ray_params: Mapping[str, Any],
        coordinator: Any,
        storage: PatientStorage,
    ) -> None:
        mend()
        self._coordinator = coordinator
        self._storage = storage
        self._cpus = int(resources["CPU"])
        self._use_gpu = bool(resources.get("GPU"))
        self._train = ChannelMatrix(channels["train"])
        self._evals = [(ChannelMatrix(channel), name) for name, channel in channels.items() if name != "train"]
        self._ray_params = xgboost_ray.RayParams(
            num_actors=channels["train"].num_workers,
            cpus_per_actor=self._cpus,
            gpus_per_actor=resources.get("GPU", 0.0),
            # The placement group holds the memory; Ray takes none of it by this way.
            resources_per_actor={
                name: amount for name, amount in resources.items() if name not in ("CPU", "GPU", "memory")
            },
            distributed_callbacks=[_Register(coordinator)],
            verbose=False,
            **ray_params,
        )

    def serve(self, assignment: Assignment) -> Segment:
        """Boosts from `assignment.start` to `assignment.stop` rounds, as a native gang does.

        Raises:
            DataError: the checkpoint cannot be read; UnsavedError: the new one cannot be written.
            GangError: xgboost_ray ended early.
            Exception: what xgboost_ray raises.
        """
        arrived = time.perf_counter()
        JOURNAL.begin()
        read = partial(self._storage.read, manifest=assignment.manifest)
        model = read_model(assignment.checkpoint, read) if assignment.checkpoint else None
        called = time.perf_counter()
        booster = unless_interrupted(
            lambda: xgboost_ray.train(
                booster_parameters(assignment, self._cpus, use_gpu=self._use_gpu),
                self._train,
                assignment.stop - assignment.start,
                evals=self._evals,
                ray_params=self._ray_params,
                callbacks=[_TellRounds(self._coordinator)],
                verbose_eval=False,
                xgb_model=model,
            )
        )
        returned = time.perf_counter()
        reached = booster.num_boosted_rounds()
        reports = JOURNAL.reports(assignment.start, reached)
        saved = assignment.saved_at(reached)
        best = BestRound.of(booster, assignment)
        if best is not None and best.sliced:  # Models of rounds on the way are not here.
            for report in reports:
                best.take(report, booster)
            raw = best.packed(booster)
        else:
            raw = bytes(booster.save_raw("ubj"))
        manifest = self._storage.write(saved, raw)
        training = JOURNAL.training_seconds
        return Segment(
            reports=reports,
            checkpoint=saved,
            manifest=manifest,
            training_seconds=training,
            checkpointing_seconds=called - arrived + time.perf_counter() - returned,
            first_step_at=JOURNAL.first_step_at,
            # Actors end as often as they start: both are what this backend pays for every assignment.
            starting_seconds=max(0.0, returned - called - training),
        )
