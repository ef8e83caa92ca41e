"""`TrainContext`: a training function's view of its worker, its data and its trial."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh
from torch.optim import Optimizer
from torch.utils.data import DataLoader, Dataset

from trainers import steady
from trainers.errors import DivergedError, TrialError
from trainers.gangs import Assignment, Report
from trainers.pytorch import plain
from trainers.pytorch.carried import CarriedObjective
from trainers.pytorch.data import Batches, BatchSize, PreparedData, Shard, Worker, unplanned
from trainers.pytorch.distribution import Distribution, MicroBatch, trained
from trainers.pytorch.layouts import Forecast, Layout, Parts, follow
from trainers.pytorch.plan import ModelPlan
from trainers.pytorch.rates import LearningRateRule, scaled
from trainers.pytorch.state import BestReport, Mixed, TorchCheckpoint, random_state, shards

logger = logging.getLogger(__name__)

UNREAD = "%s begins again, and trains %d %ss a second time: its function did not ask for context.checkpoint"

Model = TypeVar("Model", bound=nn.Module)


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
        on_end: is given the checkpoint at the end of the assignment, on rank 0; in shards, on every rank its own; None
            where the function reported none. And the units that were reached.
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
        on_end: Callable[[TorchCheckpoint | None, shards.Staged | None, int], None],
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
        self.first_step_at: float | None = None
        """When the first batch was stepped on, in seconds since the epoch."""
        self.updating = False
        """Whether what is going on now is an update for all workers."""
        self._assignment, self._worker = assignment, worker
        self._peers, self._gang = parts.data, parts.gang
        self._mixed = distribution.mixed = Mixed(
            worker.models.precision(self.hyperparameters, worker.device),
            resumed.scale_of(parts.gang.rank) if resumed else None,
        )
        self._distribution, self._resumed = distribution, resumed
        self._on_report, self._on_end, self._halted, self._beat = on_report, on_end, halted, beat
        self._stop, self._rule = assignment.stop, LearningRateRule.of(assignment.hyperparameters)
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
        self._best = BestReport(assignment, resumed, keeps=parts.holds_all)
        self._objective = CarriedObjective(assignment.objective * (parts.gang.rank == 0), assignment.value)
        self._epoch = self._reported = resumed.step if resumed else 0
        self._read = self._sparse = False
        """Whether the function has asked for its checkpoint, and whether it reports without one at times."""
        self.trained_again = 0
        """Units that the trial had before."""
        self._pass, self._done, self._behind = 0, 0.0, False
        self._micro: MicroBatch | None = None
        self._steps: WeakKeyDictionary[Optimizer, Iterator[MicroBatch]] = WeakKeyDictionary()
        self._optimizer: Optimizer | None = None
        self._updates, self._owners = resumed.updates if resumed else 0, shards.Owners()

    @property
    def checkpoint(self) -> dict[str, Any] | None:
        """What was handed to `report` when this trial was last trained; None at its beginning.

        A function that does not ask for it before `epochs` begins again, at epoch 0.

        On a pipeline it has the part of an optimizer's state that is of this worker's stages, once these are prepared.
        """
        self._read = True
        state = self._resumed.state if self._resumed else None
        return self._owners.cut(state) if state and self.layout.pipeline > 1 and self._owners.order else state

    def shard(self, channel: str, *, labels: torch.dtype = torch.float32) -> Shard:
        """This worker's rows of a channel, on `device`; a copy, which may be changed.

        Args:
            channel: its name.
            labels: the type of number to have labels in; `torch.int64` for classes.
        """
        return self._data.shard(channel, labels)

    def dataset(self, channel: str) -> Dataset[Any]:
        """All `Examples` of a channel, by its name: for a DataLoader of your own, which `prepare_data` deals out."""
        return self._data.dataset(channel)

    def prepare_data(
        self,
        data: str | DataLoader[Any],
        *,
        shuffle: bool = True,
        labels: torch.dtype = torch.float32,
        sharded: bool | None = None,
        collate_fn: Callable[[list[Any]], Any] | None = None,
        num_workers: int = 0,
    ) -> Batches:
        """Batches of this worker's part of the data; one iteration is one pass.

        A pass begins where the checkpoint left it, and one that is left is over. All workers get as many batches; one
        that has fewer rows gets smaller ones, and `step` weighs them. Batches are copies, which may be changed.

        Args:
            data: a channel, whose rows stay on the device and are cut into batches of the hyperparameters' size, or
                whose examples are loaded in such batches; or a DataLoader, with the rows that its sampler draws.
            shuffle: another order in each pass, for a channel; a DataLoader's sampler says what comes.
            labels: as for `shard`.
            sharded: of a DataLoader: True, its rows are this worker's own, made of `shard`, say; False, each worker has
                all rows, and they are dealt out to the workers. None is False, where `shard` was not called before.
            collate_fn: makes a batch of a list of a channel's `Examples`; None stacks tensors.
            num_workers: processes that load them; 0 loads them in this one.

        Raises:
            TrialError: there is no such channel; the DataLoader cannot be followed, or it may hold rows of `shard`.
        """
        return self._data.prepare(
            data, shuffle=shuffle, labels=labels, sharded=sharded, collate_fn=collate_fn, num_workers=num_workers
        )

    def prepare_model(self, model: Model, plan: ModelPlan | None = None) -> Model:
        """The model on `device`, with rank 0's parameters, ready for `step`; it is the same object.

        Mixed precision and compilation, where the trainer was asked for them, are set up in it. Where the layout has
        workers share it, its parameters become pieces: the optimizer has to be made of them, afterwards.

        Args:
            model: whole, and made alike on every worker.
            plan: what layouts have to know of it, and what else is to be done with it; most need none.

        Raises:
            TrialError: the plan does not match the model, or the layout.
        """
        plan = plan or ModelPlan()
        names = [name for name, _ in model.named_parameters()]
        follow(plan, model, self.world_size, self._distribution.together, self._counts)
        self._distribution.wrap(model, plan, self._set_up)
        shards.hook(model)
        self._owners.add(model, names)
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
            Whether it completed an update. In "fp16" one whose gradients were not finite counts too, though it changes
            nothing but the scale of losses.

        Raises:
            DivergedError: gradients or parameters are not finite; looked at every few updates.
            TrialError: it is used in a way that would train each worker apart from the others.
        """
        if self.first_step_at is None:
            self.first_step_at = steady.now()
        most = plain.norm(max_norm)
        steps = self._steps_with(optimizer)
        micro = self._micro or next(steps)
        inputs = self._mixed.leaves(trained(optimizer)) if len(self._steps) > 1 else None
        with self._mixed.stepping():
            self._distribution.backward(self._mixed.scaled(loss), optimizer, micro, inputs)
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

    def epochs(self) -> Iterator[int]:
        """The epochs of this assignment, counted from 0 over the trial's life; each has to end with a `report`.

        To leave them early is an error; `report(..., final=True)` ends them, and the trial. With `steps_per_report`
        they are units of so many updates, see `steps`.
        """
        self._settle()
        epoch = self._reported
        while epoch < self._stop:
            self._epoch, self._done = epoch, 0.0
            yield epoch
            if self._reported <= epoch:
                raise plain.unreported(self.rank, self._now, self._worker.unit)
            epoch += 1

    def steps(self, batches: Batches) -> Iterator[Any]:
        """The batches of one unit: of the trainer's `steps_per_report` updates, over the ends of passes.

        The next call goes on behind them, in the same pass, after a pause as well. All workers meet at their end.

        Args:
            batches: what `prepare_data` gave.

        Raises:
            TrialError: the trainer has no `steps_per_report`.
        """
        if self._worker.steps is None:
            raise TrialError("context.steps() takes a trainer with steps_per_report=100, say: a report so often")
        yield from batches.steps(self._worker.steps)
        if self._behind:
            self.synchronize()  # As at the end of a pass: servers hand in the optimizer's state.

    def report(
        self, metrics: Mapping[str, Any], checkpoint: Mapping[str, Any] | None = None, *, final: bool = False
    ) -> None:
        """Says how an epoch went. Rank 0's metrics count; all ranks wait for each other.

        Args:
            metrics: numbers by name, such as {"validation:accuracy": 0.97}; nested ones become "validation/accuracy".
                An epoch without the objective has the value before it, or the first one that follows.
            checkpoint: what going on takes beside random states and the places in prepared data: the `state_dict()` of
                model, optimizer and scheduler. Only the last one of an assignment is written. Where an assignment has
                to end early, it ends with a report that has one. NumPy's numbers in it become Python's. A trial that
                is paused at a report without one goes on from an earlier one.
            final: the trial has learned what it can, and is not trained any further: these metrics stand for the epochs
                that are left. Rank 0's word counts; it takes a checkpoint.

        Raises:
            TrialError: the checkpoint holds what cannot be read back, the objective is in no report of the trial, or a
                rank did not report within the deadline.
            DivergedError: what the job's trials are compared by is no finite number.
        """
        step = self._epoch + 1
        if self._reported >= step:
            raise TrialError(f"{self._now} was reported twice; call report() once in each of epochs()")
        numbers, is_new = plain.numbers(metrics), step > self._assignment.start
        state = None if checkpoint is None and not final else plain.plain_state(checkpoint, self._now)
        if self._behind:
            self.synchronize()
        self._beat()
        diverged = self._assignment.divergence(report := Report(step=step, metrics=numbers))
        self._best.take(report, state, self._now)
        complete = self._objective.take(report)
        may_end = state is not None and is_new and self._objective.known
        asked = bool(diverged) or (may_end and (final or self._halted()))
        ends = self._peers.meet(f"the report of {self._now}", asked)
        self._reported = step
        self.trained_again += not is_new
        if diverged and is_new and self._gang.rank == 0:
            self._on_report(report)  # Before any worker ends.
        if ends and self._peers.meet(f"the end with the report of {self._now}", bool(diverged)):
            raise DivergedError(diverged or f"{self._assignment.objective} is not finite on rank 0 at unit {step}")
        over = ends and self._gang.gather(final)[0]
        if ends:
            self._stop = step
        if step == self._stop and not self._may_end(step, numbers, final=final):
            self._stop += 1
        self._sparse = self._sparse or state is None
        between = step < self._stop and self._peers.meet("a checkpoint", self._sparse and state is not None)
        if between or step == self._stop:
            self._save(state, self._objective.filled(numbers), over=over)
        if over:
            complete += [replace(complete[-1], step=unit) for unit in range(step + 1, self._assignment.stop + 1)]
        for each in complete:
            if self._assignment.start < each.step <= self._assignment.stop:
                self._on_report(each)

    def finish(self) -> None:
        """Raises where the function came back before it had reported every epoch."""
        if self._reported < self._stop:
            raise plain.returned_early(self.rank, self._reported, self._assignment.stop, self._worker.unit)

    def close(self) -> None:
        """End all passes over prepared data, and the processes that load them."""
        self._data.close()

    def _counts(self) -> bool:
        """Whether the rows of this worker's batch count, or repeat others."""
        return self._micro is None or self._micro.rows > 0

    def _may_end(self, step: int, numbers: dict[str, float], *, final: bool) -> bool:
        """Whether the assignment may end with a report: the objective was in one.

        Raises:
            TrialError: it was in none of the trial's.
        """
        objective = self._assignment.objective
        if not objective or self._peers.meet("the objective", self._objective.known):
            return True
        if final or step >= self._assignment.limit:
            raise plain.never_reported(objective, numbers, f"{step} {self._worker.unit}s")
        return False

    def _settle(self) -> None:
        """Data and random states as when the trial was last trained; at its beginning each rank gets its own states.

        A function that did not ask for its checkpoint begins again.
        """
        if self._resumed is not None and not any(self._gang.gather(self._read)):
            if self._gang.rank == 0:
                logger.warning(UNREAD, self._assignment.trial_id, self._resumed.step, self._worker.unit)
            self._resumed, self._updates, self._epoch, self._reported = None, 0, 0, 0
            self._data.begin_again()
        self._data.rewind()
        states = self._resumed.random if self._resumed else ()
        if states and len(states) != self._gang.world_size and not self._worker.elastic:
            raise plain.other_workers(len(states), self._gang.world_size)
        if self._gang.rank < len(states):
            random_state.put(states[self._gang.rank], self.device)
        else:
            random_state.seed_all(random_state.derive(self.seed, "rank", self.rank))

    def _steps_with(self, optimizer: Optimizer) -> Iterator[MicroBatch]:
        """The micro-batches that an optimizer is stepped with where nobody counts rows."""
        if optimizer not in self._steps:
            shards.place(optimizer)
            if self._steps:  # What it holds by now is of losses that other optimizers were stepped with.
                optimizer.zero_grad()
            accumulation = self.batch.gradient_accumulation_steps if self.batch else 1
            self._steps[optimizer] = unplanned(accumulation, self.world_size)
        return self._steps[optimizer]

    def _set_up(self, module: nn.Module) -> None:
        """See `Distribution.wrap`."""
        if self.layout.pipeline == 1:
            Forecast(module, self.device, self.layout.tensor, self._worker.neighbours, self._mixed.precision.low)
        module.to(self.device)
        self._worker.models.set_up(module, self.device, self.hyperparameters, self._mixed)

    def _factor(self) -> float:
        """The factor of the learning rate now."""
        ratio = self._rule.ratio(
            workers=self.world_size,
            workers_an_update=self._distribution.workers_an_update,
            steps=self.batch.gradient_accumulation_steps if self.batch else 1,
        )
        return self._rule.factor(ratio, (self._epoch if self._worker.steps is None else self._pass) + self._done)

    @contextmanager
    def _ours(self) -> Iterator[None]:
        """Whatever optimizer is stepped meanwhile, it is for all workers."""
        self.updating = True
        try:
            yield
        finally:
            self.updating = False

    @property
    def _now(self) -> str:
        """The unit that is being trained, for messages."""
        return f"{self._worker.unit} {self._epoch}"

    def _save(self, state: dict[str, Any] | None, metrics: dict[str, float], *, over: bool) -> None:
        apart, staged = state is not None and (shards.needed(state) or self.layout.pipeline > 1), None
        ends = self._gang.gather((random_state.take(self.device), self._mixed.state, apart, state is not None))
        states, scales, in_shards, there = zip(*ends, strict=True)
        # A trial that ends early stands at its rung: its last report counts for the units that are left.
        reached = self._assignment.stop if over else min(self._reported, self._assignment.stop)
        if self._reported < self._stop and any(in_shards):
            return  # Of such, the one of the rung alone is written.
        if not there[0]:
            self._on_end(None, None, reached)
            return
        if state is None:
            if any(in_shards):
                raise plain.no_state(None, self._now)
            return  # Rank 0 has it.
        if any(in_shards):
            state = self._owners.named(state, self._steps)
            staged = shards.stage(state, self._gang.rank, self._gang.gather, order=self._owners.order)
        if self._gang.rank == 0 or staged:
            self._on_end(
                TorchCheckpoint(
                    step=self._assignment.stop if over else self._reported,
                    state=state if staged is None else staged.tree,
                    random=states,
                    updates=self._updates,
                    positions=self._data.positions,
                    ended=metrics if over else None,
                    ahead=metrics if self._reported > self._assignment.stop else {},
                    scales=scales if self._mixed.scales else (),
                    best=self._best.packed,
                ),
                staged,
                reached,
            )


class _Passes:
    """Tells a context of the passes over its prepared data."""

    def __init__(self, context: TrainContext) -> None:
        self._context = context

    def begin(self, micro: MicroBatch, number: int, done: float) -> None:
        """See `trainers.pytorch.data.loading.Passes`."""
        self._context._micro, self._context._pass, self._context._done = micro, number, done
        self._context._distribution.batch()

    def absent(self, batches: int) -> None:
        """See `trainers.pytorch.data.loading.Passes`."""
        self._context._distribution.absent(batches)

    def end(self) -> None:
        """See `trainers.pytorch.data.loading.Passes`; a pass that was not trained on needs no synchronizing."""
        self._context._micro = None
        if self._context._behind:
            self._context.synchronize()
