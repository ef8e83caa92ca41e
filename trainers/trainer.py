"""What a user configures: a trainer, its workers and hyperparameters, and what one training gives."""

from __future__ import annotations

import difflib
import logging
import time
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

from ray.train import ScalingConfig

from trainers import storage
from trainers.assignment import Assignment, GangEnded, GangUp, Report, Segment, Served
from trainers.channels import Channel, PlacedChannel
from trainers.cluster import Cluster, cluster
from trainers.errors import ConfigurationError, GangError, TrialError
from trainers.gang import Program, resources_per_worker
from trainers.gangs import Gangs
from trainers.home import home
from trainers.ray_gangs import RayGangs

if TYPE_CHECKING:
    import pandas

logger = logging.getLogger(__name__)

_SCALING_FIELDS = ("num_workers", "use_gpu", "resources_per_worker", "placement_strategy")


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingResult:
    """What one training gave.

    Args:
        metrics: the last report's, by "channel:metric".
        reports: one a unit of resource.
        checkpoint: URI of the trained model.
        worker_seconds: billed seconds times workers, starting included.
        trainer: what trained it, with the model.
    """

    metrics: dict[str, float]
    reports: tuple[Report, ...]
    checkpoint: str
    worker_seconds: float
    trainer: Trainer

    @property
    def curve(self) -> pandas.DataFrame:
        """A row a unit of resource, indexed by `step`; a column a metric."""
        import pandas

        rows = [{"step": report.step, **report.metrics} for report in self.reports]
        return pandas.DataFrame(rows).set_index("step")

    def model(self) -> Any:
        """The trained model, in its library's own form."""
        return self.trainer.model()


class Trainer(ABC):
    """How a configuration is trained: by how many workers, with which hyperparameters.

    Args:
        scaling: Ray Train's own configuration of a gang: `num_workers`, `use_gpu`, `resources_per_worker`,
            `placement_strategy`.
        hyperparameters: static values; a tuner's override them.

    Raises:
        ConfigurationError: a value is wrong.
    """

    resource_names: ClassVar[tuple[str, ...]] = ()
    """Hyperparameters that say how many units to train; a tuner's `max_resource` takes their place."""

    def __init__(
        self, *, scaling: ScalingConfig | None = None, hyperparameters: Mapping[str, Any] | None = None
    ) -> None:
        self.scaling = scaling or ScalingConfig(num_workers=1)
        self.hyperparameters = dict(hyperparameters or {})
        self.checkpoint = ""
        self._missing = ""
        _check_scaling(self.scaling)
        _ = self.units
        self.check(self.hyperparameters)

    # ---- what each trainer says of itself

    @abstractmethod
    def check(self, hyperparameters: Mapping[str, Any]) -> None:
        """Refuses hyperparameters that cannot be right, before anything starts."""

    @abstractmethod
    def program(self, channels: dict[str, PlacedChannel]) -> Program:
        """What the workers of its gangs run."""

    @abstractmethod
    def metrics(self, channels: Iterable[str]) -> list[str]:
        """The metrics that it reports, by "channel:metric"."""

    @abstractmethod
    def load_model(self, checkpoint: str) -> Any:
        """The model of a checkpoint, in its library's own form."""

    # ---- what all have

    @property
    def workers(self) -> int:
        """Workers in a gang."""
        return int(self.scaling.num_workers)  # type: ignore[arg-type]  # a range is refused

    @property
    def units(self) -> int | None:
        """Units of resource that the static hyperparameters ask for, if they do.

        Raises:
            ConfigurationError: it is no whole number of 1 or more.
        """
        for name in self.resource_names:
            given = self.hyperparameters.get(name)
            if given is not None and (isinstance(given, bool) or not isinstance(given, int) or given < 1):
                raise ConfigurationError(f"{name} is {given!r}; give a whole number, 1 or more")
            if given is not None:
                return int(given)
        return None

    def with_hyperparameters(self, hyperparameters: Mapping[str, Any]) -> Self:
        """The same trainer with these values over its own."""
        return type(self)(scaling=self.scaling, hyperparameters={**self.hyperparameters, **hyperparameters})

    def trained(self, checkpoint: str, missing: str = "") -> Self:
        """The same trainer with a model that it trained, for `model()`; or, without one, `missing` says why."""
        copy = self.with_hyperparameters({})
        copy.checkpoint = checkpoint
        copy._missing = missing
        return copy

    def model(self) -> Any:
        """The trained model, in its library's own form.

        Raises:
            ConfigurationError: this trainer has trained none, or it is not there any more.
            DataError: its file is cut short or missing.
        """
        if not self.checkpoint:
            raise ConfigurationError(
                self._missing or "this trainer has no model; fit() returns one, and a tuner's best_estimator() too"
            )
        return self.load_model(self.checkpoint)

    def fit(self, channels: Mapping[str, Any], *, storage_path: str | None = None, seed: int = 0) -> TrainingResult:
        """Trains once, on a gang of its own.

        Args:
            channels: "train", and others to evaluate on, as `Channel.of` takes them.
            storage_path: folder or URI for the model; None is `WARMBAND_HOME/runs`.
            seed: of the training's random numbers.

        Raises:
            ConfigurationError, DataError: before anything starts.
            ResourcesError, GangError: the gang could not start or was lost.
            TrialError: training itself failed.
        """
        units = self.units
        if units is None:
            raise ConfigurationError(
                f"hyperparameters do not say how long to train; give one of {', '.join(self.resource_names)}"
            )
        checked = open_channels(channels)
        name = f"run-{uuid.uuid4().hex[:8]}"
        assignment = Assignment(
            trial_id=name,
            hyperparameters=self.hyperparameters,
            seed=seed,
            start=0,
            stop=units,
            checkpoint=None,
            save_to=storage.join(storage_path or f"{home()}/runs", name, f"{units:06d}"),
        )
        with self.gangs(name, checked) as gangs:
            segment, seconds = _serve_alone(gangs, assignment)
        return TrainingResult(
            metrics=dict(segment.reports[-1].metrics),
            reports=segment.reports,
            checkpoint=segment.checkpoint,
            worker_seconds=seconds * self.workers,
            trainer=self.trained(segment.checkpoint),
        )

    @contextmanager
    def gangs(
        self,
        name: str,
        channels: Mapping[str, Channel],
        *,
        at_once: int = 1,
        notify: Callable[[str], None] = logger.info,
    ) -> Iterator[Gangs]:
        """What trains configurations of this trainer, for the length of a block.

        Args:
            name: prefix of the gangs' names.
            channels: what they read.
            at_once: how many of them there may be; a private cluster is made to hold so many.
            notify: is told what the user should know.

        Raises:
            ConfigurationError, DataError: a channel cannot be read by so many workers.
        """
        with cluster(self.logical_cpus(at_once), notify) as found:
            gangs = self.start_gangs(name, channels, found, notify)
            try:
                yield gangs
            finally:
                gangs.close()

    def start_gangs(
        self, name: str, channels: Mapping[str, Channel], on: Cluster, notify: Callable[[str], None]
    ) -> Gangs:
        """Gangs on a Ray cluster, as `gangs` makes them; nothing is started before it is wanted."""
        placed = {channel: source.place(self.workers) for channel, source in channels.items()}
        return RayGangs(name, self.program(placed), self.scaling, notify=notify, on=on)

    def logical_cpus(self, gangs: int) -> int:
        """CPUs that so many of its gangs ask Ray for."""
        return round(resources_per_worker(self.scaling).get("CPU", 0.0) * self.workers * gangs)

    def to_json(self) -> dict[str, Any]:
        """Everything it was made with, for the record."""
        scaling = {name: getattr(self.scaling, name) for name in _SCALING_FIELDS}
        return {"trainer": type(self).__name__, "scaling": scaling, "hyperparameters": self.hyperparameters}

    def __repr__(self) -> str:
        return f"{type(self).__name__}(num_workers={self.workers}, hyperparameters={self.hyperparameters})"


def trainer_from_json(state: Mapping[str, Any], trainers: Iterable[type[Trainer]]) -> Trainer:
    """A trainer as `Trainer.to_json` recorded it.

    Raises:
        ConfigurationError: none of `trainers` has the recorded name.
    """
    by_name = {trainer.__name__: trainer for trainer in trainers}
    if state["trainer"] not in by_name:
        raise ConfigurationError(f"trainer {state['trainer']!r} is unknown; known are {', '.join(sorted(by_name))}")
    return by_name[state["trainer"]](
        scaling=ScalingConfig(**state["scaling"]), hyperparameters=state["hyperparameters"]
    )


def open_channels(channels: Mapping[str, Any]) -> dict[str, Channel]:
    """Channels by name, checked as far as that goes without reading them.

    Raises:
        ConfigurationError: there is no "train".
        DataError: a source is missing or cannot be one.
    """
    if "train" not in channels:
        near = difflib.get_close_matches("train", channels, n=1, cutoff=0.3)
        hint = f"; did you mean it by {near[0]!r}?" if near else ""
        raise ConfigurationError(f'channels are {sorted(channels)} and need one called "train"{hint}')
    return {name: Channel.of(source, name=name) for name, source in channels.items()}


def _serve_alone(gangs: Gangs, assignment: Assignment) -> tuple[Segment, float]:
    """Serves one assignment; returns it and the seconds that the gang was held."""
    attempts = 0
    gangs.want(1, None)
    while True:
        for event in gangs.events(1.0):
            match event:
                case GangUp():
                    attempts += 1
                    if attempts > 3:
                        raise GangError(f"gang {event.gang} lost its workers {attempts - 1} times in this training")
                    held = gangs.held_since(event.gang)
                    gangs.assign(event.gang, assignment)
                case Served(segment=Segment() as segment):
                    return segment, time.time() - held
                case Served():
                    raise TrialError(event.error, event.traceback, event.logs)
                case GangEnded():
                    gangs.want(1, None)


def _check_scaling(scaling: ScalingConfig) -> None:
    if not isinstance(scaling, ScalingConfig):
        raise ConfigurationError(f"scaling is {scaling!r}; give a ray.train.ScalingConfig")
    if not isinstance(scaling.num_workers, int) or scaling.num_workers < 1:
        raise ConfigurationError(
            f"ScalingConfig(num_workers={scaling.num_workers!r}) does not make a gang; give a whole number, 1 or more"
        )
