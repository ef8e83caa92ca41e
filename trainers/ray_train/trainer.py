"""The trainer of Ray Train's trainers, as their users have them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Self

from ray.train import ScalingConfig

from trainers.channels import Channel, PlacedChannel
from trainers.checking import is_number
from trainers.checkpoint import UNKNOWN, load
from trainers.cluster import Cluster
from trainers.errors import ConfigurationError
from trainers.gangs import WORKERS, Gangs, Program, RayGangs, check_gpu_parts
from trainers.length import Length
from trainers.process import mentions
from trainers.ray_train.loop import Loop, is_json, loop_of, named
from trainers.trainer import Trainer

RAY_TRAINER, FUNCTION = "ray_trainer", "train_loop_per_worker"


class RayTrainTrainer(Trainer):
    """A Ray Train trainer as it is: its function on warm gangs, with `ray.train` answered for each trial.

    Each `ray.train.report` of the objective is a unit of resource, with rank 0's numbers; at a rung the function ends
    inside of it. The files of its checkpoint become the trial's, and a trial goes on from
    `ray.train.get_checkpoint()`; what is reported without one is done again when it goes on, and not counted twice,
    nor is what a function does again that never reads its checkpoint. A function that returns early has trained its
    trial to the end. `train_loop_config` is the static hyperparameters; the trainer's `run_config` is not used.

    Args:
        ray_trainer: a `ray.train.torch.TorchTrainer`, or its name, "module:name".
        scaling: in the place of its `scaling_config`.
        hyperparameters: in the place of its `train_loop_config`, but for what no record keeps.
        report_timeout_s: seconds that the function may take to a report, and workers wait for each other; None is the
            `timeout_s` of its `TorchConfig`.

    Raises:
        ConfigurationError: a value is wrong, or the trainer asks for what a gang does not give.
    """

    resource_names: tuple[str, ...] = ("num_epochs", "epochs", "max_epochs")
    unit: str = "report"
    suffix: ClassVar[str] = ".tar"
    code_options: ClassVar[tuple[str, ...]] = (RAY_TRAINER, FUNCTION)
    needs_train: ClassVar[bool] = False
    takes_distributions: tuple[str, ...] = ()
    deals: str = "deals rows out as Ray Train does, as dataset_config says"

    def __init__(
        self,
        ray_trainer: Any,
        *,
        scaling: ScalingConfig | None = None,
        hyperparameters: Mapping[str, Any] | None = None,
        report_timeout_s: float | None = None,
    ) -> None:
        self.loop = ray_trainer if isinstance(ray_trainer, Loop) else loop_of(ray_trainer)
        timeout_s = self.loop.timeout_s if report_timeout_s is None else report_timeout_s
        if not is_number(timeout_s) or timeout_s <= 0:
            raise ConfigurationError(f"report_timeout_s is {report_timeout_s!r}; give a number of seconds above 0")
        self.report_timeout_s = float(timeout_s)
        super().__init__(
            scaling=scaling or self.loop.scaling,
            hyperparameters=self.loop.hyperparameters if hyperparameters is None else hyperparameters,
        )
        if self.in_hand and self.loop.datasets:
            raise ConfigurationError(
                "ScalingConfig(num_workers=0) trains without Ray, and datasets need it; give num_workers=1 or more"
            )

    @classmethod
    def restored(
        cls,
        scaling: ScalingConfig,
        hyperparameters: Mapping[str, Any],
        options: Mapping[str, Any],
        *,
        allow_code: bool,
    ) -> Self:
        """See `Trainer.restored`; code that is not allowed keeps nobody from looking."""
        from trainers.pytorch import resolve, unloaded

        timeout_s = options["report_timeout_s"]
        if allow_code and RAY_TRAINER in options:
            own: Any = options[RAY_TRAINER]
        else:
            name = str(options.get(RAY_TRAINER) or options[FUNCTION])
            own = Loop(
                function=resolve(name) if allow_code else unloaded(name),
                place=str(options.get(RAY_TRAINER, "")),
                config=options.get("config", {}),
                scaling=scaling,
                lost=tuple(options.get("lost", ())),
            )
        return cls(own, scaling=scaling, hyperparameters=hyperparameters, report_timeout_s=timeout_s)

    @property
    def arguments(self) -> dict[str, Any]:
        """See `Trainer.arguments`."""
        return {RAY_TRAINER: self.loop, "report_timeout_s": self.report_timeout_s}

    @property
    def options(self) -> dict[str, Any]:
        """See `Trainer.options`: the trainer's name, or its function's and what else a record keeps."""
        timeout = {"report_timeout_s": self.report_timeout_s}
        if self.loop.place:
            return {RAY_TRAINER: self.loop.place, **timeout}
        config = {name: value for name, value in self.loop.config.items() if is_json(value)}
        lost = [*self.loop.unrecorded, *self.loop.lost]
        return {
            FUNCTION: named(self.loop.function),
            **timeout,
            **({"config": config} if config else {}),
            **({"lost": lost} if lost else {}),
        }

    @property
    def may_be_elastic(self) -> bool:
        """See `Trainer.may_be_elastic`."""
        return True

    @property
    def patience(self) -> float:
        """See `Trainer.patience`; the worker itself ends a function that does not report, a little earlier."""
        return self.report_timeout_s + 60.0

    @property
    def lengths(self) -> tuple[Length, ...]:
        """See `Trainer.lengths`: its function gets the hyperparameter as it is."""
        return (Length(names=self.resource_names, received=True),)

    def workers_for(self, hyperparameters: Mapping[str, Any]) -> int:
        """See `Trainer.workers_for`: those of its `scaling_config`, whatever its configuration calls `num_workers`."""
        return self.workers

    def exact_from(self, hyperparameters: Mapping[str, Any]) -> bool:
        """See `Trainer.exact_from`: random states are the function's own to keep, and few do."""
        return False

    def pause_obstacle(self, *, stops_only: bool = False) -> str:
        """See `Trainer.pause_obstacle`: as far as the words of its function's module tell."""
        function = named(self.loop.function)
        if not mentions(self.loop.function, "checkpoint"):
            return (
                f"{function} mentions no checkpoint, and a function that reports none begins again after each pause; "
                "let it report one with every ray.train.report"
            )
        if not mentions(self.loop.function, "get_checkpoint"):
            return (
                f"{function} reports checkpoints and never calls ray.train.get_checkpoint(), so that it begins again "
                "after each pause; let it go on from what that returns"
            )
        return ""

    def probe_obstacle(self) -> str:
        """See `Trainer.probe_obstacle`."""
        return super().probe_obstacle() or "it runs a training function of yours"

    def check(self, hyperparameters: Mapping[str, Any]) -> None:
        """See `Trainer.check`."""
        if hyperparameters and not self.loop.lost and not self.loop.takes_config:
            raise ConfigurationError(
                f"hyperparameter {next(iter(hyperparameters))!r} does not reach {named(self.loop.function)}, which "
                "takes no argument; let it take one, config"
            )
        if WORKERS in hyperparameters:
            raise ConfigurationError(
                f"hyperparameter {WORKERS!r} is {hyperparameters[WORKERS]!r}: a Ray Train function's workers are those "
                "of its scaling_config, for all trials; leave it out, or call the configuration's own by another name"
            )
        check_gpu_parts(self.scaling, self.workers)

    def metrics(self, channels: Iterable[str]) -> None:
        """See `Trainer.metrics`: what the function reports is seen when it does."""
        return

    def checked(
        self, channels: Mapping[str, Channel], metric: str | None = None, *, workers: int | None = None
    ) -> dict[str, Channel]:
        """See `Trainer.checked`.

        Raises:
            ConfigurationError: a channel has the name of a dataset, or there is no Ray to deal them out.
        """
        if channels and self.in_hand:
            raise ConfigurationError(
                f"channels are {', '.join(channels)}, and ScalingConfig(num_workers=0) trains without Ray, which "
                "ray.train.get_dataset_shard() needs; give num_workers=1 or more, or let the function read its data"
            )
        if twice := [name for name in channels if name in self.loop.datasets]:
            raise ConfigurationError(f"channel {twice[0]!r} is one of the Ray trainer's datasets, too; give it once")
        return super().checked(channels, metric, workers=workers) if channels else {}

    def program(self, channels: dict[str, PlacedChannel]) -> Program:
        """See `Trainer.program`; datasets are dealt out in `start_gangs`."""
        return self._program(())

    def start_gangs(
        self,
        name: str,
        channels: Mapping[str, Channel],
        on: Cluster,
        notify: Callable[[str], None],
        priority: int = 1,
        patient: bool = False,
    ) -> Gangs:
        """See `Trainer.start_gangs`; datasets are executed and dealt out first, while no gang holds the processors.

        Channels are datasets of which each worker gets a part, as Ray Train's own are where nothing else is said.
        """
        from trainers.ray_train.shards import dataset_of, dealt

        sizes = range(self.least_workers, self.workers + 1)
        datasets = {**self.loop.datasets, **{channel: dataset_of(source) for channel, source in channels.items()}}
        shards = dealt(datasets, {*self.loop.split, *channels}, sizes) if datasets else {}

        def placed(workers: int) -> Program:
            return self._program(shards.get(workers, ()))

        return RayGangs(name, placed, self.scaling, notify=notify, priority=priority, patient=patient, on=on)

    def _program(self, shards: Any) -> Program:
        # Imported here: whoever looks at a job does not wait for torch.
        from trainers.pytorch import FunctionSettings
        from trainers.ray_train.program import RayTrainProgram

        if self.loop.lost:
            raise ConfigurationError(
                f"the record of this job did not keep {', '.join(self.loop.lost)}: put the Ray trainer into a module, "
                "and begin a job with RayTrainTrainer('module:name'), which finds all of it again"
            )
        settings = FunctionSettings(
            function=self.loop.function, use_gpu=bool(self.scaling.use_gpu), report_timeout_s=self.report_timeout_s
        )
        bare = replace(self.loop, datasets={})  # Workers get their parts alone.
        return RayTrainProgram(bare, settings, shards)

    def load_model(self, checkpoint: str) -> Any:
        """The trial's checkpoint, a `ray.train.Checkpoint` of a folder in this machine's temporary files."""
        from ray.train import Checkpoint

        from trainers.ray_train.packing import into_new_folder

        manifest = self._manifest if checkpoint == self.checkpoint else UNKNOWN
        folder: Path = into_new_folder(checkpoint, manifest, load)
        return Checkpoint.from_directory(str(folder))
