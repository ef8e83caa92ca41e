"""ASHA in Ray Tune: the decisions of `hpo.strategies.asha.promotions`, which promotes where Ray Tune's own stops."""

from __future__ import annotations

from typing import Any

from ray.tune.experiment import Trial

from hpo.strategies.asha.promotions import Promotions
from hpo.strategies.scheduler import SynchronousHyperBandScheduler


class AshaScheduler(SynchronousHyperBandScheduler):
    """ASHA over a plan that is laid out beforehand.

    Ray Tune's `AsyncHyperBandScheduler` decides of a trial once, as it comes to a rung, and stops it or lets it go on.
    Here it waits there as a checkpoint, and goes on when it is among the best, whenever that is.

    Args:
        plan: the brackets, from `lay_out_asynchronous`.
        metric: result key of the objective.
        mode: "max" or "min".
    """

    def _made(self, *, maximize: bool) -> Promotions:
        return Promotions(self.plan, maximize=maximize)

    def choose_trial_to_run(self, tune_controller: Any) -> Trial | None:
        """A trial that has units to train and no gang; then one that is promoted; None for a new one, or nothing."""
        trial = super().choose_trial_to_run(tune_controller)
        if trial is None and (promoted := self.core.promote()) is not None:
            return self._trials[promoted]
        return trial

    @property
    def core(self) -> Promotions:
        """The pure decisions."""
        core = super().core
        assert isinstance(core, Promotions), "it makes no others"
        return core
