"""What a model's plan asks for beside the layout."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from torch import nn

from trainers.errors import TrialError
from trainers.pytorch.layouts.batch_norm import synchronize_norms
from trainers.pytorch.layouts.plan import blocks_of
from trainers.pytorch.layouts.recomputing import recompute
from trainers.pytorch.plan import ModelPlan

if TYPE_CHECKING:
    from torch.distributed import ProcessGroup


def follow(
    plan: ModelPlan, model: nn.Module, workers: int, together: ProcessGroup | None, counts: Callable[[], bool]
) -> None:
    """Prepares a model's layers and blocks as its plan says, in place.

    Args:
        plan: the model's.
        model: on the device that it is trained on.
        workers: how many train it.
        together: those whose batches make one update.
        counts: whether this worker's rows of the batch count, or it has none left.

    Raises:
        TrialError: the model has no blocks that the plan names, or the workers have no batch together.
    """
    if plan.sync_batch_norm and workers > 1:
        if together is None:
            raise TrialError(
                "ModelPlan(sync_batch_norm=True): the workers of parameter servers go at their own pace, and have no "
                "batch together; leave it out, or train with TorchTrainer"
            )
        synchronize_norms(model, together, counts)
    if plan.recompute:
        if not (blocks := blocks_of(model, plan)):
            raise TrialError(
                f"ModelPlan(recompute=True): {type(model).__name__} has no ModuleList or Sequential; name the classes "
                "of its blocks with ModelPlan(blocks=...)"
            )
        recompute(blocks)
