"""The trainer of PyTorch over parameter servers."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ray.train import ScalingConfig

from trainers.channels import Channel, PlacedChannel
from trainers.cluster import Cluster
from trainers.errors import ConfigurationError
from trainers.gangs import AUTO, WORKERS, Gangs, Program, check_alone, check_beside
from trainers.pytorch import REPORT_SECONDS, STEPS, FunctionTrainer, Profiled, but

if TYPE_CHECKING:
    from trainers.pytorch import TrainFunction


class ParameterServerTrainer(FunctionTrainer):
    """PyTorch over parameter servers: workers push gradients to servers, which hold parameters and optimizer.

    Functions are those of `TorchTrainer`. Beside its hyperparameters this trainer knows `mode` ("sync", "async",
    "bounded", or "ring" for workers that average among themselves, without servers), `server_placement` ("one" or
    "each"), `num_servers`, `staleness_bound`, `backup_workers`, `delay_ms` and `link_bytes_per_second`; see
    `trainers.parameter_server.Settings`. What happened, how stale pushes were for one, is in a result's `details`.

    With `ScalingConfig(num_workers=0)` the hyperparameter `num_workers` says how many workers are simulated, in this
    process and on a virtual clock, so that a trial comes out the same every time.

    Args:
        train_loop_per_worker: takes a `TrainContext`; or its name, "module:name".
        scaling: see `Trainer`. Servers come on top of its workers.
        hyperparameters: see `Trainer`.
        metrics: what the function reports, such as ("validation:accuracy",), to be checked before a job starts; None
            where that is not known.
        precision: see `trainers.pytorch.state.Precision`. Gradients are pushed in the parameters' own precision.
        report_timeout_s: seconds that the function may take to a report, and workers wait for each other.
        profile: trials to profile, and between which steps; see `FunctionTrainer`.
        profile_steps: likewise.
        server_resources: what each server asks Ray for, such as {"CPU": 1}; without, they ask for nothing and use the
            workers' cores.
        steps_per_report: see `trainers.pytorch.FunctionTrainer`; updates are counted as a worker makes them.

    Raises:
        ConfigurationError: a value is wrong.
    """

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
        server_resources: Mapping[str, float] | None = None,
    ) -> None:
        from trainers.parameter_server.settings import server_resources as checked

        self.server_resources = checked(server_resources)
        super().__init__(
            train_loop_per_worker,
            scaling=scaling,
            hyperparameters=hyperparameters,
            metrics=metrics,
            precision=precision,
            report_timeout_s=report_timeout_s,
            profile=profile,
            profile_steps=profile_steps,
            steps_per_report=steps_per_report,
        )

    @property
    def arguments(self) -> dict[str, Any]:
        """See `Trainer.arguments`."""
        return {**super().arguments, **but({"server_resources": self.server_resources}, {"server_resources": {}})}

    def logical_cpus(self, gangs: int, workers: int | None = None) -> int:
        """See `Trainer.logical_cpus`; those of the servers, too."""
        cpus = super().logical_cpus(gangs, workers)
        own = self.server_resources.get("CPU", 0.0)
        return cpus + math.ceil(own * self._servers(workers) * gangs) if cpus else cpus

    def start_gangs(
        self,
        name: str,
        channels: Mapping[str, Channel],
        on: Cluster,
        notify: Callable[[str], None],
        priority: int = 1,
        patient: bool = False,
    ) -> Gangs:
        """See `Trainer.start_gangs`.

        Raises:
            ResourcesError: the cluster does not hold a gang of the static hyperparameters with its servers.
        """
        if self.server_resources and not patient:
            check_beside(self.scaling, self.workers, self.server_resources, self._servers(None))
        return super().start_gangs(name, channels, on, notify, priority, patient)

    def _servers(self, workers: int | None) -> int:
        """Servers of a gang of so many workers; None: of the static hyperparameters' gang."""
        from trainers.parameter_server.settings import Settings

        settings = Settings.of(self.hyperparameters, workers or self.workers_for(self.hyperparameters))
        return 0 if settings.mode == "ring" else settings.num_servers

    def check_gpu(self) -> None:
        """See `FunctionTrainer.check_gpu`."""
        super().check_gpu()
        if self.scaling.use_gpu and self.in_hand:
            raise ConfigurationError(
                "ScalingConfig(num_workers=0, use_gpu=True) simulates workers, which is done on the CPU; give "
                "use_gpu=False, or workers"
            )

    def trained_by(self, hyperparameters: Mapping[str, Any]) -> int:
        """See `FunctionTrainer.trained_by`; in hand, the simulated workers."""
        return int(hyperparameters.get(WORKERS) or 1) if self.in_hand else self.workers_for(hyperparameters)

    def check(self, hyperparameters: Mapping[str, Any]) -> None:
        """See `Trainer.check`."""
        from trainers.parameter_server.settings import Settings

        if self.in_hand and hyperparameters.get(WORKERS) == AUTO:
            check_alone(hyperparameters)
        super().check(hyperparameters)
        Settings.of(hyperparameters, self.trained_by(hyperparameters))

    def words(self) -> tuple[str, ...]:
        """See `FunctionTrainer.words`; what is said of the servers, too."""
        from trainers.parameter_server.settings import NAMES

        return *super().words(), *NAMES

    def program(self, channels: dict[str, PlacedChannel]) -> Program:
        """See `Trainer.program`."""
        # Imported here: whoever looks at a job does not wait for torch.
        from trainers.parameter_server.program import Serving, SimulatedProgram
        from trainers.pytorch import FunctionProgram, FunctionSettings

        settings = FunctionSettings(
            function=self.train_loop_per_worker,
            use_gpu=bool(self.scaling.use_gpu),
            precision=self.precision,
            report_timeout_s=self.report_timeout_s,
            profiling=self.profiling,
            steps=self.steps_per_report,
        )
        if self.in_hand:
            return SimulatedProgram(channels, settings)
        words = self.hyperparameters
        early = words.get("server_placement") != "each" and words.get("mode") != "ring"
        return FunctionProgram(channels, settings, Serving(self.report_timeout_s, self.server_resources, early=early))
