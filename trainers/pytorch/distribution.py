"""Distribution: the interface between a training function's context and one update of all workers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from torch import Tensor, nn
    from torch.distributed import ProcessGroup
    from torch.optim import Optimizer

    from trainers.pytorch.measures import Communication
    from trainers.pytorch.plan import ModelPlan
    from trainers.pytorch.state import Mixed


@dataclass(frozen=True, slots=True, kw_only=True)
class MicroBatch:
    """One worker's part of an update, or of an accumulation step of it.

    Args:
        rows: that this worker has in it. 0: it has none left where others do, and repeats rows that must not count.
        update_rows: that this worker has in the whole update, over all its accumulation steps.
        total_rows: that all workers have in the whole update.
        last: the update is complete with it.
    """

    rows: int
    update_rows: int
    total_rows: int
    last: bool


class Peers(Protocol):
    """The workers of a gang as one of them sees it. Every rank calls each method, in the same order.

    Raises:
        TrialError: a peer did not come within the deadline, or failed; it names what was waited for.
    """

    @property
    def rank(self) -> int:
        """0 to `world_size` - 1."""

    @property
    def world_size(self) -> int:
        """How many workers there are."""

    def sum(self, values: Tensor) -> Tensor:
        """The sum over all workers of tensors of one shape, on every worker; `values` is left as it is."""

    def broadcast(self, values: Tensor) -> None:
        """Gives rank 0's values to all, in place."""

    def gather(self, value: Any) -> list[Any]:
        """Each rank's value, by rank, on every worker; small and picklable."""

    def meet(self, what: str, answer: bool = False) -> bool:
        """Waits until all have come; `what` is told in errors, as in "report 3". Returns what rank 0 `said`."""


SetUp = Callable[["nn.Module"], None]
"""Puts a module on the worker's device, and gives it the forward pass that was asked for."""


class Distribution(Protocol):
    """How the gradients of a gang's workers become updates of the parameters, on one worker, for one assignment.

    Attributes:
        communication: what its steps hand to others and wait for, as far as they have come.
        mixed: the trial's precision; set before the first model is wrapped.
    """

    communication: Communication
    mixed: Mixed

    @property
    def workers_an_update(self) -> int:
        """How many workers' rows one update averages over, for learning-rate rules."""

    @property
    def together(self) -> ProcessGroup | None:
        """The group of the workers whose batches make one update; None where there are no others, or not together."""

    @property
    def takes_own_steps(self) -> bool:
        """Whether a step that the function takes with an optimizer itself is one that all workers take."""

    @property
    def takes_wrappers(self) -> bool:
        """Whether it takes such steps of models that the function distributes itself, by PyTorch's own means."""

    def wrap(self, model: nn.Module, plan: ModelPlan, set_up: SetUp) -> None:
        """Makes a model ready to be trained, in place: its parameters are those of rank 0 on every worker.

        Args:
            model: whole.
            plan: of it.
            set_up: is called with each module that this worker calls as a whole: the model itself, or stages of it.
        """

    def backward(self, loss: Tensor, optimizer: Optimizer, micro: MicroBatch, inputs: Sequence[Tensor] | None) -> None:
        """The backward pass of the mean loss over a micro-batch's rows, weighed so that every row counts alike.

        Args:
            loss: of the micro-batch.
            optimizer: what its update is to be made with.
            micro: the micro-batch.
            inputs: what gets gradients; None: everything that asks for them.
        """

    def update(self, optimizer: Optimizer, micro: MicroBatch, max_norm: float | None = None) -> None:
        """One update out of the gradients in `.grad`, which are zero afterwards; called with the last micro-batch.

        The optimizer's options (learning rate and such) are those that this update is to use. Its gradient, of all
        workers that take part, is scaled down to `max_norm` if it is longer. Where losses are scaled and the gradient
        is not finite, nothing is updated, on no worker.

        Raises:
            DivergedError: the parameters are not finite.
            GangError: what it needs beside the workers is gone; the assignment has to be served again.
        """

    def synchronize(self, optimizer: Optimizer | None) -> None:
        """Waits for all workers; then all hold the same parameters, and rank 0's optimizer the whole state."""

    def batch(self) -> None:
        """Another batch of prepared data is handed out. Nothing, where every worker has the whole model."""
        return

    def absent(self, batches: int) -> None:
        """Other workers have so many batches more in a pass without gradients, which shards need all workers for.

        Nothing, where every worker has the whole model.
        """
        return

    def close(self) -> dict[str, Any]:
        """Ends it with the assignment; returns what happened, for `Segment.details`, on rank 0."""


def trained(optimizer: Optimizer) -> list[nn.Parameter]:
    """The parameters that an optimizer trains now, in its order."""
    return [parameter for group in optimizer.param_groups for parameter in group["params"] if parameter.requires_grad]


def weighed(loss: Tensor, weight: float, inputs: Sequence[Tensor] | None) -> None:
    """As `(loss * weight).backward()`, without a product in the graph."""
    loss.backward(None if weight == 1.0 else loss.new_full(loss.shape, weight), inputs=inputs)
