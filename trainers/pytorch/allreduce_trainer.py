"""The trainer of PyTorch over AllReduce."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ray.train import ScalingConfig

from trainers.channels import PlacedChannel
from trainers.errors import ConfigurationError
from trainers.gangs import Program, check_alone
from trainers.pytorch.function_trainer import REPORT_SECONDS, FunctionTrainer, but
from trainers.pytorch.layouts import LAYOUT, MICRO_BATCHES, SCHEDULE, Layout

if TYPE_CHECKING:
    from trainers.pytorch.function import TrainFunction

PRECISIONS = ("fp32", "bf16")


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
        precision: "fp32", or "bf16" for mixed precision (`torch.autocast`).
        compile: compile models (`torch.compile`); for a layout of replicas.
        layout: how workers share a model, a `Layout` or words such as "shard=2 tensor=2"; None: each has the whole
            model. The hyperparameters `layout`, `micro_batches` and `schedule` go before it.
        report_timeout_s: seconds that the function may take to a report, and workers wait for each other.

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
        layout: Layout | str | None = None,
        report_timeout_s: float = REPORT_SECONDS,
    ) -> None:
        if precision not in PRECISIONS:
            raise ConfigurationError(f"precision is {precision!r}; give one of {', '.join(PRECISIONS)}")
        if not isinstance(compile, bool):
            raise ConfigurationError(f"compile is {compile!r}; give True or False")
        self.precision = precision
        self.compile = compile
        self.layout = Layout.given(layout)
        super().__init__(
            train_loop_per_worker,
            scaling=scaling,
            hyperparameters=hyperparameters,
            metrics=metrics,
            report_timeout_s=report_timeout_s,
        )

    @property
    def may_be_elastic(self) -> bool:
        """See `Trainer.may_be_elastic`."""
        return True

    @property
    def arguments(self) -> dict[str, Any]:
        """See `Trainer.arguments`."""
        values = {"precision": self.precision, "compile": self.compile, "layout": str(self.layout)}
        usual = {"precision": PRECISIONS[0], "compile": False, "layout": str(Layout())}
        return {**super().arguments, **but(values, usual)}

    def parts(self, hyperparameters: Mapping[str, Any], workers: int) -> int:
        """The data-parallel parts of so many workers, each with rows of its own.

        Raises:
            ConfigurationError: their layout is not one of so many.
        """
        layout = self.layout.under(hyperparameters).on(workers)
        if self.compile and not layout.is_replicas:
            raise ConfigurationError(
                f"compile=True is for replicas, and the layout is '{layout}'; leave one of them out"
            )
        return workers // layout.together

    def trained_by(self, hyperparameters: Mapping[str, Any]) -> int:
        """Workers that a configuration's batch is dealt out to: the data-parallel parts."""
        return self.parts(hyperparameters, self.workers_for(hyperparameters))

    def check(self, hyperparameters: Mapping[str, Any]) -> None:
        """See `Trainer.check`."""
        super().check(hyperparameters)
        if self.in_hand:
            check_alone(hyperparameters)
        from trainers.pytorch.data import BatchSize

        for workers in range(self.least_workers, self.workers):
            BatchSize.of(hyperparameters, self.parts(hyperparameters, workers))
        self._check_micro_batches(hyperparameters)

    def _check_micro_batches(self, hyperparameters: Mapping[str, Any]) -> None:
        """Refuses a batch that a pipeline cannot cut."""
        from trainers.pytorch.data import BatchSize

        layout = self.layout.under(hyperparameters)
        batch = BatchSize.of(hyperparameters, self.trained_by(hyperparameters))
        pieces = layout.micro_batches or layout.stages
        if layout.pipeline > 1 and batch is not None and (rows := batch.per_worker_batch_size) % pieces:
            raise ConfigurationError(
                f"layout '{layout}' cuts the {rows} rows of a worker's batch into {pieces} micro-batches, which do not "
                f"divide them; give micro_batches={math.gcd(rows, pieces)}, or another batch size"
            )

    def words(self) -> tuple[str, ...]:
        """See `FunctionTrainer.words`."""
        return (*super().words(), LAYOUT, MICRO_BATCHES, SCHEDULE)

    def program(self, channels: dict[str, PlacedChannel]) -> Program:
        """See `Trainer.program`."""
        # Imported here: whoever looks at a job does not wait for torch.
        from trainers.pytorch.layouts import LaidOut
        from trainers.pytorch.program import FunctionProgram, FunctionSettings

        settings = FunctionSettings(
            function=self.train_loop_per_worker,
            use_gpu=bool(self.scaling.use_gpu),
            precision=self.precision,
            compile=self.compile,
            report_timeout_s=self.report_timeout_s,
            elastic=self.least_workers < self.workers,
        )
        return FunctionProgram(channels, settings, LaidOut(self.layout, self.report_timeout_s))
