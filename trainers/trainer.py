"""`Trainer`: workers and hyperparameters that a user configures, and the base of all kinds of training."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import Any, ClassVar, Self

from ray.train import ScalingConfig

from trainers import TRAINERS, steady, storage
from trainers.channels import Channel, LabelRule, PlacedChannel, Reads, check_channels, open_channels, refuse_unread
from trainers.checkpoint import UNKNOWN, Manifest, check, load
from trainers.cluster import Cluster, cluster, reaching
from trainers.errors import ConfigurationError
from trainers.gangs import (
    Gangs,
    InHand,
    Program,
    RayGangs,
    check_capacity,
    check_resources,
    check_scaling,
    cores,
    labels_of,
    plain_scaling,
    range_of,
    recorded_scaling,
    resources_per_worker,
    workers_of,
)
from trainers.length import Length, no_length
from trainers.plain import plain
from trainers.process import code_named, name_of
from trainers.result import TrainingResult, serve_alone, whole_training

logger = logging.getLogger(__name__)

OWN_CLASS = "trainer"
"""What a trainer of a user's own is called where its code is named."""


class Trainer(Reads, ABC):
    """How a configuration is trained: by how many workers, with which hyperparameters.

    Args:
        scaling: Ray Train's own configuration of a gang: `num_workers`, `use_gpu`, `resources_per_worker`,
            `placement_strategy`, `accelerator_type`, `label_selector`. With `num_workers=(2, 4)` a gang has as many as
            there is room for when it starts, and fewer where it loses some. With `num_workers=0` all happens in this
            process, without Ray, on as many cores as it may use or `resources_per_worker={"CPU": n}` says.
        hyperparameters: static values; a tuner's override them. They become plain Python values, as
            `trainers.plain.plain` says.

    Raises:
        ConfigurationError: a value is wrong.
    """

    resource_names: tuple[str, ...] = ()
    """Hyperparameters that say how many units to train; a tuner's `max_resource` takes their place."""

    fixed_names: tuple[str, ...] = ()
    """Hyperparameters that no fork changes: a checkpoint cannot go on with other values of them."""

    unit: str = "unit"
    """What its users call a unit of resource, in messages."""

    suffix: ClassVar[str] = ""
    """Ending of its checkpoints' names, by which its library knows their form."""

    code_options: ClassVar[tuple[str, ...]] = ()
    """Those of its `options` that are code of the user's, as "module:name"."""

    needs_train: ClassVar[bool] = True
    """Whether it cannot do without a channel "train"."""

    def __init__(
        self, *, scaling: ScalingConfig | None = None, hyperparameters: Mapping[str, Any] | None = None
    ) -> None:
        if not isinstance(hyperparameters, Mapping | None):
            raise ConfigurationError(f"hyperparameters are {hyperparameters!r}; give a dict, such as {{'eta': 0.3}}")
        self.scaling = ScalingConfig(num_workers=1) if scaling is None else scaling
        self.hyperparameters: dict[str, Any] = plain(hyperparameters or {}, "hyperparameters")
        self.checkpoint, self._manifest, self._missing = "", UNKNOWN, ""
        if isinstance(self.scaling, ScalingConfig):
            self.scaling = plain_scaling(self.scaling)
        check_scaling(self.scaling, elastic=self.may_be_elastic)
        check_resources(self.scaling)
        self._check_length()
        self.check(self.hyperparameters)

    # ---- what each trainer says of itself

    @abstractmethod
    def check(self, hyperparameters: Mapping[str, Any]) -> None:
        """Refuses hyperparameters that cannot be right, before anything starts."""

    def check_names(self, names: Collection[str]) -> None:
        """Refuse settings that name a hyperparameter which no trial has.

        Args:
            names: of all hyperparameters, fixed and tuned.
        """

    @abstractmethod
    def program(self, channels: dict[str, PlacedChannel]) -> Program:
        """The program of its gangs' workers."""

    @abstractmethod
    def metrics(self, channels: Iterable[str]) -> list[str] | None:
        """The metrics that it reports, by "channel:metric"; None where only training tells."""

    def workers_for(self, hyperparameters: Mapping[str, Any]) -> int:
        """Workers of a configuration's gang, static and tuned values together: its own `num_workers`, or `workers`."""
        workers = workers_of(hyperparameters)
        return self.workers if workers is None or self.in_hand else workers

    def label_rules(self, channel: str, metric: str | None) -> tuple[LabelRule, ...]:
        """Its rules for a channel's labels; `metric` is the objective, "channel:metric", if it is measured there."""
        return ()

    @abstractmethod
    def load_model(self, checkpoint: str) -> Any:
        """The model of a checkpoint, in its library's own form."""

    def probe_obstacle(self) -> str:
        """Why a few units of its static hyperparameters cannot be measured in one process; empty if they can."""
        return "it trains on a GPU" if self.scaling.use_gpu else ""

    def pause_obstacle(self, *, stops_only: bool = False) -> str:
        """Why trials may begin again behind a pause, or a rung if `stops_only`, and a remedy; empty if they go on."""
        return ""

    def smaller_is_better(self, metric: str) -> bool | None:
        """Whether smaller values of a metric, "channel:metric", are the better ones; None where nobody knows."""
        return None

    def copies_obstacle(self) -> str:
        """Why each worker may train all of the model by itself, and a remedy; empty if they train it together."""
        return ""

    def exact_from(self, hyperparameters: Mapping[str, Any]) -> bool:
        """Whether a trial of these goes on from between two rungs to the same model; else it goes on from its rung."""
        return True

    def load_code(self, checkpoint: str) -> str:
        """An import and, in a second line, what loads a checkpoint's model without Warmband; empty if nothing does."""
        return ""

    # ---- what all have

    @property
    def workers(self) -> int:
        """Workers in a gang, as many as it may have; 1 in hand, where the worker is this process."""
        return max(1, range_of(self.scaling)[1])

    @property
    def least_workers(self) -> int:
        """Workers that its gangs have at least; fewer than `workers` where they are elastic."""
        return max(1, range_of(self.scaling)[0])

    @property
    def may_be_elastic(self) -> bool:
        """Whether it trains on a number of workers that changes on the way."""
        return False

    @property
    def in_hand(self) -> bool:
        """Whether it trains in this process, without Ray: `num_workers=0`."""
        return self.scaling.num_workers == 0

    @property
    def worker_resources(self) -> dict[str, float]:
        """Resources of each worker, in Ray's units: memory in bytes; in hand, with this process's cores."""
        resources = resources_per_worker(self.scaling)
        return {**resources, "CPU": float(cores(self.scaling))} if self.in_hand else resources

    @property
    def warm(self) -> bool:
        """Whether its workers stay up from one assignment to the next."""
        return True

    @property
    def patience(self) -> float:
        """Seconds that a gang may serve without a report before it is taken for dead."""
        return 600.0

    @property
    def options(self) -> dict[str, Any]:
        """Arguments that it takes beside `scaling` and `hyperparameters`, as JSON."""
        return {}

    @property
    def arguments(self) -> dict[str, Any]:
        """The same arguments as Python objects, which make the same trainer again."""
        return self.options

    def code(self) -> dict[str, str]:
        """The user's own code that it runs, as "module:name" by what it was given as; a record's has to be allowed."""
        named = code_named(self.options, self.code_options)
        return named if self._builtin else {**named, OWN_CLASS: name_of(type(self))}

    @property
    def units(self) -> int | None:
        """Units of resource that the static hyperparameters ask for, if they do.

        Raises:
            ConfigurationError: it is no whole number of 1 or more.
        """
        self._check_length()
        return self.length_of(self.hyperparameters)

    def _check_length(self) -> None:
        """Refuse static hyperparameters that set the length and are no length."""
        for length in self.lengths:
            length.check(self.hyperparameters)

    @property
    def lengths(self) -> tuple[Length, ...]:
        """How each kind of training that it has says its length."""
        return (Length(names=self.resource_names),)

    def chosen(self, hyperparameters: Mapping[str, Any]) -> tuple[Trainer, dict[str, Any]]:
        """What trains a configuration, static and tuned values together, and the values as that trainer names them."""
        return self, dict(hyperparameters)

    def length_of(self, hyperparameters: Mapping[str, Any]) -> int | None:
        """Units that a configuration asks for, if it does."""
        return self.lengths[0].of(hyperparameters)

    def retraining(self, hyperparameters: Mapping[str, Any], units: int) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the hyperparameters and changed arguments with which this trainer trains what a trial trained.

        A training that gets its length hyperparameter as it is keeps it; for others it is the trial's units.

        Args:
            hyperparameters: the trial's whole configuration, static and tuned values together.
            units: that the trial trained.
        """
        if self.lengths[0].received:
            return dict(hyperparameters), {}
        names = [name for name in self.resource_names if name in hyperparameters] or list(self.resource_names)
        values = {name: value for name, value in hyperparameters.items() if name not in names}
        return {**values, **dict.fromkeys(names[:1], units)}, {}

    def as_trained(self, hyperparameters: Mapping[str, Any], units: int) -> Self:
        """Return this trainer as `retraining` says."""
        values, changes = self.retraining(hyperparameters, units)
        return type(self)(scaling=self.scaling, hyperparameters=values, **{**self.arguments, **changes})

    def command_line(self, hyperparameters: Mapping[str, Any], channels: Mapping[str, Any] | None = None) -> str:
        """Return the command line that trains a configuration by hand, as text for a shell; empty if there is none.

        Args:
            hyperparameters: the whole configuration.
            channels: as `fit` takes them.
        """
        return ""

    @classmethod
    def restored(
        cls,
        scaling: ScalingConfig,
        hyperparameters: Mapping[str, Any],
        options: Mapping[str, Any],
        *,
        allow_code: bool,
    ) -> Self:
        """A trainer out of what `to_json` recorded.

        Args:
            scaling: its gangs.
            hyperparameters: its static ones.
            options: as `options` gave them.
            allow_code: whether its `code_options` may be imported; without, it need not be able to train.
        """
        return cls(scaling=scaling, hyperparameters=hyperparameters, **options)

    def with_hyperparameters(self, hyperparameters: Mapping[str, Any]) -> Self:
        """The same trainer with these values over its own."""
        merged = {**self.hyperparameters, **hyperparameters}
        return type(self)(scaling=self.scaling, hyperparameters=merged, **self.arguments)

    def trained(self, checkpoint: str, missing: str = "", manifest: Manifest = UNKNOWN) -> Self:
        """The same trainer with a model that it trained, for `model()`; or, without one, `missing` says why."""
        copy = self.with_hyperparameters({})
        copy.checkpoint, copy._manifest, copy._missing = checkpoint, manifest, missing
        return copy

    def model(self) -> Any:
        """The trained model, in its library's own form.

        Raises:
            ConfigurationError: this trainer has trained none, or it is not there any more.
            DataError: its file is cut short, changed or missing.
        """
        if not self.checkpoint:
            missing = "this trainer has no model; fit() returns one, and a tuner's best_estimator() too"
            raise ConfigurationError(self._missing or missing)
        if self.load_model.__module__.partition(".")[0] != __package__:  # A user's own, which may compare nothing.
            check(self.checkpoint, self._manifest)
        return self.load_model(self.checkpoint)

    def _read(self, checkpoint: str) -> bytes:
        """A checkpoint's one file; that of its own model has to be what was written."""
        return load(checkpoint, self._manifest if checkpoint == self.checkpoint else UNKNOWN)

    def fit(
        self, channels: Mapping[str, Any] | None = None, *, storage_path: str | None = None, seed: int = 0
    ) -> TrainingResult[Self]:
        """Trains once, on a gang of its own.

        Args:
            channels: "train", and others to evaluate on, as `Channel.of` takes them; None for code that brings its own
                data.
            storage_path: folder or URI for the model; None is `WARMBAND_HOME/runs`.
            seed: of the training's random numbers.

        Raises:
            ConfigurationError, DataError: before anything starts.
            ResourcesError, GangError: the gang could not start, was lost, or was silent for `patience`.
            DivergedError, TrialError: losses are no finite numbers any more, or training itself failed.
        """
        units = self.whole_length()
        storage.check_no_credentials(storage_path or "", "storage_path")
        checked = self.checked(open_channels(channels, train=self.needs_train))
        folder, assignment = whole_training(self.hyperparameters, seed, units, storage_path, self.suffix)
        with steady.measuring(), self.gangs(assignment.trial_id, checked, storage_path=folder) as gangs:
            segment, worker_seconds = serve_alone(gangs, assignment, self._static_workers, self.patience)
        return TrainingResult.of(segment, worker_seconds, self.trained(segment.checkpoint, manifest=segment.manifest))

    def whole_length(self) -> int:
        """Return the units that the static hyperparameters ask for.

        Raises:
            ConfigurationError: they do not say.
        """
        for length in self.lengths:
            length.check_given(self.hyperparameters)
        if (units := self.units) is None:
            missing = [length for length in self.lengths if length.of(self.hyperparameters) is None]
            raise ConfigurationError(no_length(missing, self.hyperparameters))
        return units

    def checked(
        self, channels: Mapping[str, Channel], metric: str | None = None, *, workers: int | None = None
    ) -> dict[str, Channel]:
        """The channels with what this trainer expects of their labels; what takes long to read is checked by workers.

        Args:
            channels: by name; columns are compared with those of "train".
            metric: the objective, as "channel:metric".
            workers: of the largest gang that reads them; None: that of the static hyperparameters.

        Raises:
            ConfigurationError, DataError: rows are not what they have to be, or files where this trainer reads rows.
        """
        refuse_unread(channels, self)
        return check_channels(channels, self.label_rules, metric, workers or self._static_workers)

    @contextmanager
    def gangs(
        self,
        name: str,
        channels: Mapping[str, Channel],
        *,
        at_once: int = 1,
        workers: int | None = None,
        several_sizes: bool = False,
        priority: int = 1,
        patient: bool = False,
        storage_path: str = "",
        notify: Callable[[str], None] = logger.info,
        verbose: bool = False,
    ) -> Iterator[Gangs]:
        """Gangs for configurations of this trainer, for the length of a block.

        Args:
            name: prefix of the gangs' names.
            channels: what they read.
            at_once: how many of them there may be; a private cluster is made to hold so many. In hand there is one.
            workers: of the largest of them; None: that of the static hyperparameters.
            several_sizes: whether there are smaller ones; a private cluster has room for one more, and none makes way.
            priority: their weight where other jobs want gangs on the same cluster.
            patient: wait for room as long as it takes: the caller knows when to give up.
            storage_path: the folder of their own that they write checkpoints to, which every node that could hold a
                worker has to see; empty if they write none.
            notify: is told what the user should know.
            verbose: show Ray's own logs and what workers print.

        Raises:
            ConfigurationError, DataError: a channel cannot be read by so many workers, or a node does not see its files
                or `storage_path`.
            ResourcesError: the cluster does not hold the largest.
        """
        workers = workers or self._static_workers
        if self.in_hand:
            if at_once > 1:
                notify(f"num_workers=0 trains one trial after another in this process, not {at_once} at once")
            placed = {channel: source.place(0) for channel, source in channels.items()}
            with closing(InHand(name, self.program(placed), self.scaling, notify)) as hand:
                yield hand
            return
        with cluster(self.logical_cpus(at_once + several_sizes, workers), notify, verbose=verbose) as session:
            if not patient:
                least = self.least_workers if workers == self.workers else workers
                check_capacity(replace(self.scaling, num_workers=least))
            with reaching(self.worker_resources, channels, storage_path, notify, labels_of(self.scaling)) as reach:
                on = replace(session, reach=reach)
                with closing(self.start_gangs(name, channels, on, notify, priority, patient)) as gangs:
                    yield gangs

    def start_gangs(
        self,
        name: str,
        channels: Mapping[str, Channel],
        on: Cluster,
        notify: Callable[[str], None],
        priority: int = 1,
        patient: bool = False,
    ) -> Gangs:
        """Gangs on a Ray cluster, as `gangs` makes them; nothing is started before it is wanted."""

        def placed(workers: int) -> Program:
            return self.program({channel: source.place(workers) for channel, source in channels.items()})

        return RayGangs(name, placed, self.scaling, notify=notify, priority=priority, patient=patient, on=on)

    def logical_cpus(self, gangs: int, workers: int | None = None) -> int:
        """CPUs that so many of its gangs ask Ray for, each of so many workers; none in hand."""
        if self.in_hand:
            return 0
        return round(resources_per_worker(self.scaling).get("CPU", 0.0) * (workers or self._static_workers) * gangs)

    @property
    def _static_workers(self) -> int:
        return self.workers_for(self.hyperparameters)

    @property
    def _builtin(self) -> bool:
        """Whether it is one of Warmband's own, which its name alone says all of."""
        return TRAINERS.get(type(self).__name__) == type(self).__module__

    def to_json(self) -> dict[str, Any]:
        """Everything it was made with, for the record."""
        return {
            "trainer": type(self).__name__ if self._builtin else name_of(type(self)),
            "scaling": recorded_scaling(self.scaling),
            "hyperparameters": self.hyperparameters,
            "options": plain(self.options, type(self).__name__),
            **({"code": code} if (code := self.code()) else {}),
        }

    def __repr__(self) -> str:
        own = {"num_workers": self.scaling.num_workers, "hyperparameters": self.hyperparameters, **self.options}
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in own.items())})"
