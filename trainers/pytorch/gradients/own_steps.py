"""Refusal of a function's own optimizer steps, which would train one worker's parameters alone."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from weakref import WeakSet

from torch import nn
from torch.nn.modules.module import register_module_module_registration_hook
from torch.nn.parallel import DistributedDataParallel
from torch.optim import Optimizer
from torch.optim.optimizer import register_optimizer_step_pre_hook

from trainers.errors import TrialError
from trainers.pytorch.distribution import Distribution, Peers


@contextmanager
def refused(distribution: Distribution, peers: Peers, ours: Callable[[], bool]) -> Iterator[None]:
    """Refuses them in this thread while a function runs, unless all workers take them alike.

    They do with parameters of a `DistributedDataParallel` that the function makes, or that it shards
    (`fully_shard`): PyTorch itself then adds the gradients up.

    Args:
        distribution: how updates are made.
        peers: the gang's workers.
        ours: whether a step that is being taken is the distribution's own.
    """
    if distribution.takes_own_steps:
        yield
        return
    # Workers that are simulated are threads of one process.
    mine = threading.get_ident()
    own = _Wrapped() if distribution.takes_wrappers else None

    def check(optimizer: Optimizer, *_: Any) -> None:
        if threading.get_ident() != mine or ours() or (own is not None and own.trains(optimizer)):
            return
        raise TrialError(
            f"rank {peers.rank} of {peers.world_size} called {type(optimizer).__name__}.step() itself, which would "
            "train a model of its own on each worker; call context.step(loss, optimizer) in place of "
            "loss.backward() and optimizer.step()"
        )

    with ExitStack() as stack:
        stack.callback(register_optimizer_step_pre_hook(check).remove)
        if own is not None:
            stack.callback(register_module_module_registration_hook(own.see).remove)
        yield


class _Wrapped:
    """Models that the function distributes by PyTorch's own means, and the optimizers of their parameters alone."""

    def __init__(self) -> None:
        self._models: WeakSet[DistributedDataParallel] = WeakSet()
        self._known: WeakSet[Optimizer] = WeakSet()

    def see(self, module: nn.Module, name: str, submodule: nn.Module | None) -> None:
        """Is told of each module that becomes a part of another; a wrapper gets the model that it wraps so."""
        if isinstance(module, DistributedDataParallel):
            self._models.add(module)

    def trains(self, optimizer: Optimizer) -> bool:
        """Whether PyTorch adds up the gradients of all parameters of an optimizer; looked at once."""
        from torch.distributed.tensor import DTensor  # Others do not wait for its modules.

        if optimizer not in self._known:
            wrapped = {id(parameter) for model in self._models for parameter in model.parameters()}
            parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
            if all(isinstance(parameter, DTensor) or id(parameter) in wrapped for parameter in parameters):
                self._known.add(optimizer)
        return optimizer in self._known
