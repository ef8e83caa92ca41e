"""Learning rates for larger batches: by rule, with warm-up."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trainers.checking import did_you_mean, is_number
from trainers.errors import ConfigurationError
from trainers.pytorch.data import GLOBAL

if TYPE_CHECKING:
    from torch.optim import Optimizer

RULES = ("none", "linear", "sqrt")
RULE, WARM_UP = "learning_rate_rule", "warmup_epochs"


@dataclass(frozen=True, slots=True, kw_only=True)
class LearningRateRule:
    """Factor on a learning rate that was found for one worker's batch, for an update over many workers.

    Goyal et al., "Accurate, Large Minibatch SGD: Training ImageNet in 1 Hour" (2017): with k times the batch, k times
    the learning rate (section 2.1), reached from the original one in equal steps over the first epochs (2.2). The
    square root of k instead keeps the variance of an update (Krizhevsky, "One weird trick...", 2014, section 5).

    A `global_batch_size` is the batch that its rate was found for, on any number of workers: an update that averages
    over all of it is multiplied by nothing.

    Args:
        rule: one of `RULES`.
        warmup_epochs: epochs until the whole factor is reached; 0 begins with it. It changes nothing for rule "none".
        whole_batch: the rate is that of a `global_batch_size`, and not of one worker's backward pass.
    """

    rule: str = "none"
    warmup_epochs: float = 0.0
    whole_batch: bool = False

    @classmethod
    def of(cls, hyperparameters: Mapping[str, Any]) -> LearningRateRule:
        """The rule of the hyperparameters, under the names above.

        Raises:
            ConfigurationError: the rule is unknown, or the warm-up no number of 0 or more.
        """
        rule, epochs = hyperparameters.get(RULE, "none"), hyperparameters.get(WARM_UP, 0)
        if rule not in RULES:
            known = f"{', '.join(RULES)}{did_you_mean(rule, RULES)}"
            raise ConfigurationError(f"hyperparameter {RULE!r} is {rule!r}; give one of {known}")
        if not is_number(epochs) or epochs < 0:
            raise ConfigurationError(f"hyperparameter {WARM_UP!r} is {epochs!r}; give a number of epochs, 0 or more")
        return cls(rule=rule, warmup_epochs=float(epochs), whole_batch=hyperparameters.get(GLOBAL) is not None)

    def ratio(self, *, workers: int, workers_an_update: int, steps: int) -> float:
        """Rows that an update averages over, over those that the learning rate was found for.

        Args:
            workers: that the trial has.
            workers_an_update: whose rows one update averages over.
            steps: backward passes of each of them in it.
        """
        return workers_an_update / workers if self.whole_batch else workers_an_update * steps

    def factor(self, ratio: float, progress: float) -> float:
        """The factor of an update's learning rate.

        Args:
            ratio: see `ratio`.
            progress: epochs trained before this update, fractions included.
        """
        whole = {"none": 1.0, "linear": ratio, "sqrt": math.sqrt(ratio)}[self.rule]
        if whole < 1.0:
            return whole  # A rate that is lower from the start needs no warm-up.
        done = min(1.0, progress / self.warmup_epochs) if self.warmup_epochs else 1.0
        return 1.0 + (whole - 1.0) * done


@contextmanager
def scaled(optimizer: Optimizer, factor: float) -> Iterator[None]:
    """An optimizer whose learning rates are multiplied for as long; a scheduler never sees that."""
    if factor == 1.0:
        yield
        return
    before = [group["lr"] for group in optimizer.param_groups]
    for group in optimizer.param_groups:
        group["lr"] = group["lr"] * factor
    try:
        yield
    finally:
        for group, rate in zip(optimizer.param_groups, before, strict=True):
            group["lr"] = rate
