"""The trainer of PyTorch over AllReduce."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ray.train import ScalingConfig

from trainers.channels import PlacedChannel
from trainers.errors import ConfigurationError
from trainers.gangs import Program, check_alone
from trainers.pytorch.function_trainer import REPORT_SECONDS, FunctionTrainer, but

if TYPE_CHECKING:
    from trainers.pytorch.function import TrainFunction


class TorchTrainer(FunctionTrainer):
    """Data-parallel PyTorch: a training function on every worker, gradients added up by AllReduce.

    Beside the function's own, hyperparameters are `epochs`; `global_batch_size` or `per_worker_batch_size`, and
    `gradient_accumulation_steps`; `learning_rate_rule` with `warmup_epochs`; `num_workers`, which goes before
    `scaling`'s.

    Args:
        train_loop_per_worker: takes a `TrainContext`; or its name, "module:name".
        scaling: see `Trainer`. With `use_gpu` each worker trains on a GPU.
        hyperparameters: see `Trainer`.
        metrics: what the function reports, such as ("validation:accuracy",), to be checked before a job starts; None
            where that is not known.
        precision: "fp32"; "bf16" or "fp16" for mixed precision; "bf16-master" or "fp16-master" for gradients in it as
            well. See `trainers.pytorch.state.Precision`.
        compile: compile models (`torch.compile`).
        report_timeout_s: seconds that the function may take to a report, and workers wait for each other.
        steps_per_report: see `FunctionTrainer`.

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
        compile: bool = False,
        report_timeout_s: float = REPORT_SECONDS,
        steps_per_report: int | None = None,
    ) -> None:
        if not isinstance(compile, bool):
            raise ConfigurationError(f"compile is {compile!r}; give True or False")
        self.compile = compile
        super().__init__(
            train_loop_per_worker,
            scaling=scaling,
            hyperparameters=hyperparameters,
            metrics=metrics,
            precision=precision,
            report_timeout_s=report_timeout_s,
            steps_per_report=steps_per_report,
        )

    @property
    def may_be_elastic(self) -> bool:
        """See `Trainer.may_be_elastic`."""
        return True

    @property
    def arguments(self) -> dict[str, Any]:
        """See `Trainer.arguments`."""
        return {**super().arguments, **but({"compile": self.compile}, {"compile": False})}

    def check(self, hyperparameters: Mapping[str, Any]) -> None:
        """See `Trainer.check`."""
        super().check(hyperparameters)
        if self.in_hand:
            check_alone(hyperparameters)
        from trainers.pytorch.data import BatchSize

        for workers in range(self.least_workers, self.workers):
            BatchSize.of(hyperparameters, workers)

    def program(self, channels: dict[str, PlacedChannel]) -> Program:
        """See `Trainer.program`."""
        # Imported here: whoever looks at a job does not wait for torch.
        from trainers.pytorch.gradients import AllReducing
        from trainers.pytorch.program import FunctionProgram, FunctionSettings

        settings = FunctionSettings(
            function=self.train_loop_per_worker,
            use_gpu=bool(self.scaling.use_gpu),
            precision=self.precision,
            compile=self.compile,
            report_timeout_s=self.report_timeout_s,
            steps=self.steps_per_report,
            elastic=self.least_workers < self.workers,
        )
        return FunctionProgram(channels, settings, AllReducing())
