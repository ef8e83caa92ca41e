"""The trainer of PyTorch over parameter servers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trainers.channels import PlacedChannel
from trainers.errors import ConfigurationError
from trainers.gangs import WORKERS, Program
from trainers.pytorch import FunctionTrainer


class ParameterServerTrainer(FunctionTrainer):
    """PyTorch over parameter servers: workers push gradients to servers, which hold parameters and optimizer.

    Functions are those of `TorchTrainer`. Beside its hyperparameters this trainer knows `mode` ("sync", "async" or
    "bounded"), `num_servers`, `staleness_bound`, `backup_workers`, `delay_ms` and `link_bytes_per_second`; see
    `trainers.parameter_server.Settings`. What happened, how stale pushes were for one, is in a result's `details`.

    With `ScalingConfig(num_workers=0)` the hyperparameter `num_workers` says how many workers are simulated, in this
    process and on a virtual clock, so that a trial comes out the same every time.

    Args:
        train_loop_per_worker: takes a `TrainContext`; or its name, "module:name".
        scaling: see `Trainer`. Servers come on top of its workers, and ask Ray for no CPU.
        hyperparameters: see `Trainer`.
        metrics: what the function reports, such as ("validation:accuracy",), to be checked before a job starts; None
            where that is not known.
        precision: see `trainers.pytorch.state.Precision`. Gradients are pushed in the parameters' own precision.
        report_timeout_s: seconds that the function may take to a report, and workers wait for each other.
        steps_per_report: see `trainers.pytorch.FunctionTrainer`; updates are counted as a worker makes them.

    Raises:
        ConfigurationError: a value is wrong.
    """

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
            steps=self.steps_per_report,
        )
        if self.in_hand:
            return SimulatedProgram(channels, settings)
        return FunctionProgram(channels, settings, Serving(self.report_timeout_s))
