"""`TrainContext`: a training function's view of its worker, its data and its trial."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh
from torch.optim import Optimizer
from torch.utils.data import DataLoader

from trainers import steady
from trainers.errors import DivergedError, TrialError
from trainers.gangs import Assignment, Report
from trainers.pytorch.data import Batches, BatchSize, PreparedData, Shard, Stream, unplanned
from trainers.pytorch.distribution import Distribution, MicroBatch, trained
from trainers.pytorch.layouts import Layout, Parts
from trainers.pytorch.plain import norm, number, plain
from trainers.pytorch.plan import ModelPlan
from trainers.pytorch.rates import LearningRateRule, scaled
from trainers.pytorch.state import Models, TorchCheckpoint, random_state

Model = TypeVar("Model", bound=nn.Module)


@dataclass(frozen=True, slots=True, kw_only=True)
class Worker:
    """Parts of a worker that every trial uses.

    Args:
        device: that it trains on.
        shards: its rows by channel.
        shard_rows: by channel, how many rows each worker holds, by rank.
        models: how they run.
        elastic: whether a trial may go on with another number of workers.
    """

    device: torch.device
    shards: Mapping[str, Shard | Stream]
    shard_rows: Mapping[str, Sequence[int]]
    models: Models
    elastic: bool = False


class TrainContext:
    """Context of a training function. Every rank calls every method, in the same order.

    Args:
        assignment: what is to be trained, until where.
        worker: what this worker brings.
        parts: the gang's workers, as the trial's layout groups them.
        distribution: how their gradients become updates.
        resumed: the checkpoint to go on from.
        on_report: is told of each report, on rank 0 the gang's.
        halted: says, on rank 0, whether the assignment is to end with the report that is being made.
        beat: is called where workers are about to wait for each other, which has a deadline of its own.
        on_end: is given the checkpoint at the end of the assignment, on rank 0.
    """

    def __init__(
        self,
        assignment: Assignment,
        worker: Worker,
        parts: Parts,
        distribution: Distribution,
        *,
        resumed: TorchCheckpoint | None,
        on_report: Callable[[Report], None],
        halted: Callable[[], bool],
        beat: Callable[[], None],
        on_end: Callable[[TorchCheckpoint], None],
    ) -> None:
        self.hyperparameters: dict[str, Any] = dict(assignment.hyperparameters)
        self.seed = assignment.seed
        self.rank, self.world_size = parts.data.rank, parts.data.world_size
        """Of the workers, as data are dealt out to them: those that a layout has share a model count as one."""
        self.device = worker.device
        self.layout: Layout = parts.layout
        self.mesh: DeviceMesh | None = parts.mesh
        """Of all workers; None where each holds the whole model."""
        self.batch = BatchSize.of(assignment.hyperparameters, self.world_size)
        self.checkpoint: dict[str, Any] | None = resumed.state if resumed else None
        """What was handed to `report` when this trial was last trained; None at its beginning."""
        self.first_step_at: float | None = None
        """When the first batch was stepped on, in seconds since the epoch."""
        self.updating = False
        """Whether what is going on now is an update for all workers."""
        self._assignment = assignment
        self._worker = worker
        self._peers = parts.data
        self._gang = parts.gang
        self._distribution = distribution
        self._resumed = resumed
        self._on_report = on_report
        self._halted = halted
        self._stop = assignment.stop
        self._beat = beat
        self._on_end = on_end
        self._rule = LearningRateRule.of(assignment.hyperparameters)
        self._data = PreparedData(
            worker.shards,
            worker.shard_rows,
            parts.data,
            self.batch,
            seed=self.seed,
            device=self.device,
            positions=resumed.positions if resumed else (),
            passes=_Passes(self),
            beat=beat,
        )
        self._epoch = self._reported = assignment.start
        self._done = 0.0
        self._micro: MicroBatch | None = None
        self._steps: WeakKeyDictionary[Optimizer, Iterator[MicroBatch]] = WeakKeyDictionary()
        self._optimizer: Optimizer | None = None
        self._behind = False
        self._updates = resumed.updates if resumed else 0

    # ---- data

    def shard(self, channel: str, *, labels: torch.dtype = torch.float32) -> Shard:
        """This worker's rows of a channel, on `device`; a copy, which may be changed.

        Args:
            channel: its name.
            labels: the type of number to have labels in; `torch.int64` for classes.
        """
        return self._data.shard(channel, labels)

    def prepare_data(
        self,
        data: str | DataLoader[Any],
        *,
        shuffle: bool = True,
        labels: torch.dtype = torch.float32,
        sharded: bool | None = None,
    ) -> Batches:
        """Batches of this worker's part of the data; one iteration is one pass.

        A pass begins where the checkpoint left it, and one that is left is over. All workers get as many batches; one
        that has fewer rows gets smaller ones, and `step` weighs them. Batches are copies, which may be changed.

        Args:
            data: a channel, whose rows stay on the device and are cut into batches of the hyperparameters' size; or a
                DataLoader, with the rows that its sampler draws.
            shuffle: another order in each pass, for a channel; a DataLoader's sampler says what comes.
            labels: as for `shard`.
            sharded: of a DataLoader: True, its rows are this worker's own, made of `shard`, say; False, each worker has
                all rows, and they are dealt out to the workers. None is False, where `shard` was not called before.

        Raises:
            TrialError: there is no such channel; the DataLoader cannot be followed, or it may hold rows of `shard`.
        """
        return self._data.prepare(data, shuffle=shuffle, labels=labels, sharded=sharded)

    # ---- training

    def prepare_model(self, model: Model, plan: ModelPlan | None = None) -> Model:
        """The model on `device`, with rank 0's parameters, ready for `step`; it is the same object.

        Mixed precision and compilation, where the trainer was asked for them, are set up in it. Where the layout has
        workers share it, its parameters become pieces: the optimizer has to be made of them, afterwards.

        Args:
            model: whole, and made alike on every worker.
            plan: what layouts have to know of it; most need none.

        Raises:
            TrialError: the plan does not match the model, or the layout.
        """
        model.to(self.device)
        self._worker.models.set_up(model, self.device, self.hyperparameters)
        self._distribution.wrap(model, plan or ModelPlan())
        return model

    def step(self, loss: Tensor, optimizer: Optimizer, *, max_norm: float | None = None) -> bool:
        """Backward pass, and an update if it completes one; the optimizer's gradients are zero afterwards.

        Where a function steps with several optimizers, each step computes the gradients of its own optimizer's
        parameters alone: a generator's loss leaves none in the discriminator.

        Args:
            loss: the mean over the batch's rows; rows of all workers and accumulation steps are weighed alike.
            optimizer: any of `torch.optim`'s but LBFGS; its learning rate is multiplied as `learning_rate_rule` says.
            max_norm: clips: the gradient of the whole update, of all workers and accumulation steps, is scaled down
                to this norm if it is longer, as `torch.nn.utils.clip_grad_norm_` does.

        Returns:
            Whether it completed an update.

        Raises:
            DivergedError: gradients or parameters are not finite; looked at every few updates.
            TrialError: it is used in a way that would train each worker apart from the others.
        """
        if self.first_step_at is None:
            self.first_step_at = steady.now()
        most = norm(max_norm)
        steps = self._steps_with(optimizer)
        micro = self._micro or next(steps)
        self._distribution.backward(loss, optimizer, micro, trained(optimizer) if len(self._steps) > 1 else None)
        self._optimizer, self._behind = optimizer, True
        if micro.last:
            with scaled(optimizer, self._factor()), self._ours():
                self._distribution.update(optimizer, micro, most)
            self._updates += 1
        return micro.last

    def synchronize(self) -> None:
        """Waits for all workers; then all hold the same parameters. The end of a pass over prepared data does so."""
        self._beat()
        with self._ours():
            self._distribution.synchronize(self._optimizer)
        self._behind = False

    def sum(self, values: Tensor | float) -> Tensor:
        """The sum over all workers, on every worker: of rows that were right, say."""
        self._beat()
        return self._peers.sum(torch.as_tensor(values, device=self.device))

    # ---- the trial

    def epochs(self) -> Iterator[int]:
        """The epochs of this assignment, counted from 0 over the trial's life; each has to end with a `report`.

        To leave them early is an error; `report(..., final=True)` ends them, and the trial.
        """
        epoch = self._assignment.start
        self._settle()
        while epoch < self._stop:
            self._epoch, self._done = epoch, 0.0
            yield epoch
            if self._reported <= epoch:
                raise TrialError(
                    f"rank {self.rank} ended epoch {epoch} without a report; call report() once an epoch, on every rank"
                )
            epoch += 1

    def report(
        self, metrics: Mapping[str, Any], checkpoint: Mapping[str, Any] | None = None, *, final: bool = False
    ) -> None:
        """Says how an epoch went. Rank 0's metrics count; all ranks wait for each other.

        Args:
            metrics: numbers by name, such as {"validation:accuracy": 0.97}.
            checkpoint: what going on takes beside random states and the places in prepared data: the `state_dict()` of
                model, optimizer and scheduler. Only the last one of an assignment is written. Where an assignment has
                to end early, it ends with a report that has one. NumPy's numbers in it become Python's.
            final: the trial has learned what it can, and is not trained any further: these metrics stand for the epochs
                that are left. Rank 0's word counts; it takes a checkpoint.

        Raises:
            TrialError: something is missing, the checkpoint holds what cannot be read back, or a rank did not report
                within the deadline.
            DivergedError: what the job's trials are compared by is no finite number.
        """
        step = self._epoch + 1
        if self._reported >= step:
            raise TrialError(
                f"epoch {self._epoch} was reported twice; call report() once an epoch, in a loop over epochs()"
            )
        numbers = {name: number(name, value) for name, value in metrics.items()}
        state = None if checkpoint is None and not final else self._plain(checkpoint)
        if self._behind:
            self.synchronize()
        self._beat()
        report = Report(step=step, metrics=numbers)
        diverged = self._assignment.divergence(report)
        asked = bool(diverged) or (state is not None and (final or self._halted()))
        ends = self._peers.meet(f"the report of epoch {self._epoch}", asked)
        self._reported = step
        if diverged and self._gang.rank == 0:
            self._on_report(report)  # Before any worker ends.
        if ends and self._peers.meet(f"the end with the report of epoch {self._epoch}", bool(diverged)):
            raise DivergedError(diverged or f"{self._assignment.objective} is not finite on rank 0 at unit {step}")
        over = ends and self._gang.gather(final)[0]
        if ends:
            self._stop = step
        if step == self._stop:
            self._save(state, numbers if over else None)
        for repeated in range(step, (self._assignment.stop if over else step) + 1):
            self._on_report(Report(step=repeated, metrics=numbers))

    def finish(self) -> None:
        """Raises where the function came back before it had reported every epoch."""
        if self._reported < self._stop:
            raise TrialError(
                f"the training function returned on rank {self.rank} after the reports of {self._reported} of "
                f"{self._assignment.stop} epochs; loop over context.epochs() and call report() in every epoch, or end "
                "the trial early with report(..., final=True)"
            )

    # ---- within

    def _settle(self) -> None:
        """Data and random states as when the trial was last trained; at its beginning each rank gets its own states."""
        self._data.rewind()
        states = self._resumed.random if self._resumed else ()
        gang = self._gang
        if self._resumed is None or (self._worker.elastic and gang.rank >= len(states)):
            random_state.seed_all(random_state.derive(self.seed, "rank", self.rank))
        elif len(states) != gang.world_size and not self._worker.elastic:
            raise TrialError(
                f"the checkpoint was trained by {len(states)} workers, and this gang has "
                f"{gang.world_size}; go on with as many, or train from the beginning"
            )
        else:
            random_state.put(states[gang.rank], self.device)

    def _steps_with(self, optimizer: Optimizer) -> Iterator[MicroBatch]:
        """The micro-batches that an optimizer is stepped with where nobody counts rows."""
        if optimizer not in self._steps:
            if self._steps:  # What it holds by now is of losses that other optimizers were stepped with.
                optimizer.zero_grad()
            accumulation = self.batch.gradient_accumulation_steps if self.batch else 1
            self._steps[optimizer] = unplanned(accumulation, self.world_size)
        return self._steps[optimizer]

    def _factor(self) -> float:
        """The factor of the learning rate now."""
        ratio = self._rule.ratio(
            workers=self.world_size,
            workers_an_update=self._distribution.workers_an_update,
            steps=self.batch.gradient_accumulation_steps if self.batch else 1,
        )
        return self._rule.factor(ratio, self._epoch + self._done)

    @contextmanager
    def _ours(self) -> Iterator[None]:
        """Whatever optimizer is stepped meanwhile, it is for all workers."""
        self.updating = True
        try:
            yield
        finally:
            self.updating = False

    def _plain(self, checkpoint: object) -> dict[str, Any]:
        """The value as it will be read back; checked in every report, so that the first one says what is wrong."""
        if not isinstance(checkpoint, Mapping):
            raise self._no_state(checkpoint)
        state: dict[str, Any] = plain(dict(checkpoint), "checkpoint")
        return state

    def _no_state(self, state: object) -> TrialError:
        return TrialError(
            f"the report of epoch {self._epoch} came with checkpoint={state!r}; give report(metrics, checkpoint="
            "{'model': model.state_dict(), 'optimizer': optimizer.state_dict()}), without which the trial cannot go on"
        )

    def _save(self, state: dict[str, Any] | None, ended: dict[str, float] | None) -> None:
        if state is None:
            raise self._no_state(None)
        states = self._gang.gather(random_state.take(self.device))
        if self._gang.rank == 0:
            self._on_end(
                TorchCheckpoint(
                    step=self._reported if ended is None else self._assignment.stop,
                    state=state,
                    random=tuple(states),
                    updates=self._updates,
                    positions=self._data.positions,
                    ended=ended,
                )
            )


class _Passes:
    """Tells a context of the passes over its prepared data."""

    def __init__(self, context: TrainContext) -> None:
        self._context = context

    def begin(self, micro: MicroBatch, done: float) -> None:
        """See `trainers.pytorch.data.loading.Passes`."""
        self._context._micro, self._context._done = micro, done
        self._context._distribution.batch()

    def absent(self, batches: int) -> None:
        """See `trainers.pytorch.data.loading.Passes`."""
        if batches:
            self._context._distribution.absent(batches)

    def end(self) -> None:
        """See `trainers.pytorch.data.loading.Passes`; a pass that was not trained on needs no synchronizing."""
        self._context._micro = None
        if self._context._behind:
            self._context.synchronize()
