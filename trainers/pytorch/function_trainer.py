"""Base of the trainers of PyTorch functions: the function, its options, and their checks."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

from ray.train import ScalingConfig

from trainers import storage
from trainers.channels import Channel, check_train
from trainers.checking import check_whole, is_number
from trainers.checkpoint import UNKNOWN, looked_up
from trainers.errors import CheckpointError, ConfigurationError
from trainers.gangs import WORKERS, check_gpu_parts, check_workers
from trainers.process import mentions, name_of
from trainers.pytorch.function import ARGUMENT, resolve, unloaded
from trainers.pytorch.measures import STEPS, Profiled, Profiling
from trainers.trainer import Trainer
from trainers.tunable import Tunable

if TYPE_CHECKING:
    from trainers.pytorch.function import TrainFunction

REPORT_SECONDS = 1800.0
"""How long a function may take to a report if nothing else is said."""


class FunctionTrainer(Trainer):
    """A trainer of what a user's function trains.

    Args:
        train_loop_per_worker: takes a `TrainContext`; or its name, "module:name".
        scaling: see `Trainer`.
        hyperparameters: see `Trainer`.
        metrics: what the function reports, such as ("validation:accuracy",), to be checked before a job starts; None
            where that is not known.
        precision: see `trainers.pytorch.state.Precision`; the hyperparameter of this name goes before it.
        report_timeout_s: seconds that the function may take to a report, and workers wait for each other.
        profile: trials to profile on rank 0 (`torch.profiler`): True for all, or some by number or name. The trace is
            written into the job's folder, the seconds of operators are in the trial's details.
        profile_steps: the profile begins after the first of these steps (`context.step`) and ends with the second,
            counted from where the trial begins.
        steps_per_report: updates in a unit of resource, for functions that report so often (`TrainContext.steps`); the
            hyperparameter `reports`, or `steps` where it is 1, takes the place of `epochs`. None: a unit is an epoch.

    Raises:
        ConfigurationError: a value is wrong.
    """

    resource_names: tuple[str, ...] = ("epochs",)
    fixed_names: tuple[str, ...] = (WORKERS,)
    unit: str = "epoch"
    takes_examples: bool = True
    takes_categories: bool = False
    suffix: ClassVar[str] = ".pt"
    code_options: ClassVar[tuple[str, ...]] = (ARGUMENT,)
    needs_train: ClassVar[bool] = False
    """See `Trainer`: a function may bring its own data, such as a `DataLoader`."""

    def __init__(
        self,
        train_loop_per_worker: TrainFunction | str,
        *,
        scaling: ScalingConfig | None = None,
        hyperparameters: Mapping[str, Any] | None = None,
        metrics: Sequence[str] | None = None,
        precision: str = "fp32",
        report_timeout_s: float = REPORT_SECONDS,
        profile: Profiled = False,
        profile_steps: Sequence[int] = STEPS,
        steps_per_report: int | None = None,
    ) -> None:
        self.train_loop_per_worker = resolve(train_loop_per_worker)
        # Imported here: it needs no torch, but what it belongs to is imported with it on workers alone.
        from trainers.pytorch.state import Precision

        self._metrics = _checked_metrics(metrics)
        self.precision = Precision(precision).name
        if not is_number(report_timeout_s) or report_timeout_s <= 0:
            raise ConfigurationError(f"report_timeout_s is {report_timeout_s!r}; give a number of seconds above 0")
        self.report_timeout_s = float(report_timeout_s)
        self.profiling = Profiling.of(profile, profile_steps)
        self._profile = profile
        if not isinstance(profile, bool):
            self._profile = [profile] if isinstance(profile, int | str) else [*profile]
        self._profile_steps = list(profile_steps)
        check_whole("steps_per_report", steps_per_report, 1)
        self.steps_per_report = steps_per_report
        self.unit = self.unit_of({"steps_per_report": steps_per_report})
        self.resource_names = (f"{self.unit}s",)
        super().__init__(scaling=scaling, hyperparameters=hyperparameters)
        self.check_gpu()

    @classmethod
    def restored(
        cls,
        scaling: ScalingConfig,
        hyperparameters: Mapping[str, Any],
        options: Mapping[str, Any],
        *,
        allow_code: bool,
    ) -> Self:
        """See `Trainer.restored`; a function that is not allowed, or not to be found, keeps nobody from looking."""
        named = options[ARGUMENT]
        function = named if allow_code else unloaded(str(named))
        return cls(scaling=scaling, hyperparameters=hyperparameters, **{**options, ARGUMENT: function})

    @classmethod
    def unit_of(cls, options: Mapping[str, Any]) -> str:
        """The word for a unit of resource where `options` are these; see `trainers.registry.unit_in`."""
        steps = options.get("steps_per_report")
        return "epoch" if steps is None else "step" if steps == 1 else "report"

    @property
    def arguments(self) -> dict[str, Any]:
        """See `Trainer.arguments`."""
        usual = {
            "metrics": None,
            "precision": "fp32",
            "report_timeout_s": REPORT_SECONDS,
            "profile": False,
            "profile_steps": [*STEPS],
            "steps_per_report": None,
        }
        values = {
            "metrics": self._metrics,
            "precision": self.precision,
            "report_timeout_s": self.report_timeout_s,
            "profile": self._profile,
            "profile_steps": self._profile_steps,
            "steps_per_report": self.steps_per_report,
        }
        return {ARGUMENT: self.train_loop_per_worker, **but(values, usual)}

    @property
    def options(self) -> dict[str, Any]:
        """See `Trainer.options`."""
        values = {**self.arguments, ARGUMENT: name_of(self.train_loop_per_worker)}
        return values if self._metrics is None else {**values, "metrics": list(self._metrics)}

    @property
    def patience(self) -> float:
        """See `Trainer.patience`; the worker itself ends a function that does not report, a little earlier."""
        return self.report_timeout_s + 60.0

    def probe_obstacle(self) -> str:
        """See `Trainer.probe_obstacle`: a user's function may do anything, so that only those asked to run it do."""
        return super().probe_obstacle() or "it runs a training function of yours"

    def pause_obstacle(self, *, stops_only: bool = False) -> str:
        """See `Trainer.pause_obstacle`: as far as the words of its function's module tell."""
        function = name_of(self.train_loop_per_worker)
        if not mentions(self.train_loop_per_worker, "checkpoint"):
            return (
                f"{function} mentions no checkpoint, and a function that reports none begins again after each pause; "
                "let it give report(metrics, checkpoint=...)"
            )
        if not mentions(self.train_loop_per_worker, ".checkpoint"):
            return (
                f"{function} never asks for context.checkpoint, so that it begins again after each pause; let it go on "
                "from that"
            )
        return ""

    def load_code(self, checkpoint: str) -> str:
        """See `Trainer.load_code`."""
        if "://" in checkpoint or Path(checkpoint).is_dir():
            return ""
        return f"import torch\nstate = torch.load({checkpoint!r}, weights_only=True)['state']"

    def check_gpu(self) -> None:
        """Refuses a GPU that this process does not see; a cluster is asked for its own before a gang starts."""
        if not self.scaling.use_gpu or not self.in_hand:
            return
        import torch

        if not torch.cuda.is_available():
            raise ConfigurationError(
                "ScalingConfig(use_gpu=True): this process sees no GPU (torch.cuda.is_available() is False); "
                "use_gpu=False trains on the CPU"
            )

    def trained_by(self, hyperparameters: Mapping[str, Any]) -> int:
        """Workers that train a configuration: those of its gang."""
        return self.workers_for(hyperparameters)

    def check(self, hyperparameters: Mapping[str, Any]) -> None:
        """See `Trainer.check`."""
        # Imported here: the batch words need no torch, but what they belong to is imported with it on workers alone.
        from trainers.pytorch.data import BatchSize
        from trainers.pytorch.rates import LearningRateRule
        from trainers.pytorch.state import Precision

        check_workers(hyperparameters)
        check_gpu_parts(self.scaling, self.workers_for(hyperparameters))
        BatchSize.of(hyperparameters, self.trained_by(hyperparameters))
        LearningRateRule.of(hyperparameters)
        Precision(self.precision).under(hyperparameters)

    def checked(
        self, channels: Mapping[str, Channel], metric: str | None = None, *, workers: int | None = None
    ) -> dict[str, Channel]:
        """See `Trainer.checked`; where there are channels, "train" is one of them."""
        if channels:
            check_train(channels)
        return super().checked(channels, metric, workers=workers)

    def metrics(self, channels: Iterable[str]) -> list[str] | None:
        """See `Trainer.metrics`."""
        return None if self._metrics is None else list(self._metrics)

    @property
    def usual_units(self) -> None:
        """See `Tunes.usual_units`: how many epochs a training takes is its user's to say."""
        return

    def tunable(self, ranged: Collection[str]) -> dict[str, Tunable]:
        """See `Tunes.tunable`."""
        from trainers.pytorch.tunable import tunable  # As for `check`.

        return tunable(self.hyperparameters, ranged, self.check)

    def words(self) -> tuple[str, ...]:
        """The hyperparameters that it reads itself, beside the function, from the first epoch on."""
        from trainers.pytorch.data import ACCUMULATION, GLOBAL, PER_WORKER  # As for `check`.
        from trainers.pytorch.rates import RULE, WARM_UP
        from trainers.pytorch.state import PRECISION

        return GLOBAL, PER_WORKER, ACCUMULATION, RULE, WARM_UP, PRECISION

    def late_obstacle(self, name: str) -> str:
        """See `TakesEffect.late_obstacle`: of what the function reads, its user knows when it makes a difference."""
        return f"{type(self).__name__} trains with it from the first epoch on" if name in self.words() else ""

    def load_model(self, checkpoint: str) -> Any:
        """The checkpoint of the function's last `report(checkpoint=...)`, or of its best; tensors are on the CPU.

        It is the best one's where the job has objective_value="best", unless models are in shards.
        """
        from trainers.pytorch.state import TorchCheckpoint, shards

        known = self._manifest if checkpoint == self.checkpoint else UNKNOWN
        manifest = known if known.files else looked_up(checkpoint)
        opened = TorchCheckpoint.opened(checkpoint, manifest, shards.Impatient())
        if not opened.step:
            raise CheckpointError(
                f"checkpoint {storage.shown(checkpoint)!r} has no model: {name_of(self.train_loop_per_worker)} "
                "reported no checkpoint; let it give report(metrics, checkpoint=...), and train again"
            )
        return opened.best["state"] if opened.best else shards.whole(opened.state)


def but(values: Mapping[str, Any], usual: Mapping[str, Any]) -> dict[str, Any]:
    """The values that differ from the usual ones."""
    return {name: value for name, value in values.items() if value != usual[name]}


def _checked_metrics(metrics: Sequence[str] | None) -> tuple[str, ...] | None:
    if metrics is None:
        return None
    if isinstance(metrics, str) or not isinstance(metrics, Sequence) or not metrics:
        raise ConfigurationError(
            f"metrics is {metrics!r}; give names, such as ['validation:accuracy'], or leave it out"
        )
    for name in metrics:
        if not isinstance(name, str) or not any(all(name.partition(mark)) for mark in ":/"):
            raise ConfigurationError(
                f"metrics has {name!r}; give a channel and a metric of it, such as 'validation:accuracy'"
            )
    return tuple(metrics)
