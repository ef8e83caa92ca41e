"""How the learning rate follows the batch: by rule, with warm-up; pure."""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trainers.errors import ConfigurationError

RULES = ("none", "linear", "sqrt")
RULE, WARM_UP = "learning_rate_rule", "warmup_epochs"


@dataclass(frozen=True, slots=True, kw_only=True)
class LearningRateRule:
    """What a learning rate that was found for one worker's batch is multiplied by, for an update over many workers.

    Goyal et al., "Accurate, Large Minibatch SGD: Training ImageNet in 1 Hour" (2017): with k times the batch, k times
    the learning rate (section 2.1), reached from the original one in equal steps over the first epochs (2.2). The
    square root of k instead keeps the variance of an update (Krizhevsky, "One weird trick...", 2014, section 5).

    Args:
        rule: one of `RULES`.
        warmup_epochs: epochs until the whole factor is reached; 0 begins with it. It changes nothing for rule "none".
    """

    rule: str = "none"
    warmup_epochs: float = 0.0

    @classmethod
    def of(cls, hyperparameters: Mapping[str, Any]) -> LearningRateRule:
        """What the hyperparameters say, under the names that stand above.

        Raises:
            ConfigurationError: the rule is unknown, or the warm-up no number of 0 or more.
        """
        rule, epochs = hyperparameters.get(RULE, "none"), hyperparameters.get(WARM_UP, 0)
        if rule not in RULES:
            near = difflib.get_close_matches(str(rule), RULES, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise ConfigurationError(f"hyperparameter {RULE!r} is {rule!r}; give one of {', '.join(RULES)}{hint}")
        if isinstance(epochs, bool) or not isinstance(epochs, int | float) or not 0 <= epochs < math.inf:
            raise ConfigurationError(f"hyperparameter {WARM_UP!r} is {epochs!r}; give a number of epochs, 0 or more")
        return cls(rule=rule, warmup_epochs=float(epochs))

    def factor(self, ratio: float, progress: float) -> float:
        """What the learning rate of an update is multiplied by.

        Args:
            ratio: rows of an update over those of one worker's backward pass.
            progress: epochs trained before this update, fractions included.
        """
        whole = {"none": 1.0, "linear": ratio, "sqrt": math.sqrt(ratio)}[self.rule]
        done = min(1.0, progress / self.warmup_epochs) if self.warmup_epochs else 1.0
        return 1.0 + (whole - 1.0) * done
