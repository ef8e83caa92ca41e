"""Mechanisms of the causes, told with a run's own figures and their sources; pure."""

from __future__ import annotations

from dataclasses import dataclass

from experiments.convergence.causes import Cause, Run
from experiments.convergence.published_theories import Theory
from hpo.text import short


@dataclass(frozen=True, slots=True, kw_only=True)
class Mechanism:
    """How a cause comes to do harm, and who found it out."""

    text: str
    source: str


def mechanism(cause: Cause, run: Run, staleness: float | None = None) -> Mechanism:
    """How a cause does harm to this run.

    Args:
        cause: which.
        run: whose figures it is told with.
        staleness: updates between a worker's pull and its push, in the mean, where that was measured.
    """
    k = run.workers
    match cause:
        case Cause.BATCH if run.stale:
            text = (
                f"{k} workers are under way at once, so {k} times the rows are answered for by parameters of about the "
                "same age, and the parameters change as if the batch were that much larger."
            )
            return Mechanism(text=text, source=_LIAN)
        case Cause.BATCH:
            text = (
                f"An update averages {k} times the rows, so an epoch makes one update where it made {k}; with the same "
                "learning rate the parameters move less far."
            )
            return Mechanism(text=text, source=_GOYAL)
        case Cause.RATE if run.stale:
            text = (
                f"The {k} updates of a wave come from about the same parameters and add up: together they move {k} "
                "times as far as the one update that a worker alone would make there."
            )
            return Mechanism(text=text, source=_ZHANG)
        case Cause.RATE:
            text = (
                f"A batch {k} times as large has a steadier gradient and comes less often: with k times the batch, k "
                "times the learning rate keeps the way of an epoch as long as it was."
            )
            return Mechanism(text=text, source=_GOYAL)
        case Cause.STALENESS:
            old = "" if staleness is None else f", {staleness:.1f} in the mean"
            text = (
                f"Others make updates between a worker's pull and its push{old}: its gradient is right for parameters "
                "that are not there any more, and steps that are too long for that overshoot further each time."
            )
            return Mechanism(text=text, source=_HO)
        case Cause.SHARED:
            text = (
                f"All {k} workers' updates go to the one model, each with the whole learning rate, while a gradient is "
                "under way. Where each worker updates a model of its own and averages it with a neighbour's, an update "
                f"moves the mean of all models by 1/{k} of that, and momentum stays with the worker that it is of."
            )
            return Mechanism(text=text, source=Theory.CONGESTION.source)
        case Cause.MOMENTUM:
            return Mechanism(text=_momentum_text(run), source=_MITLIAGKAS)
        case Cause.CONGESTION:
            text = (
                f"{k} workers share one link, and a push waits there for those before it: it arrives late in seconds. "
                "In updates it is as old as without that, where each of the others is held up alike."
            )
            return Mechanism(text=text, source=Theory.CONGESTION.source)
        case Cause.NOISE:
            text = (
                f"With {k} times the rows, a gradient has 1/{k} of the covariance, and the noise is missing that would "
                "carry the parameters out of saddle points and poor minima."
            )
            return Mechanism(text=text, source=Theory.NOISE.source)
        case Cause.SHARDS:
            text = (
                "A worker whose rows are not like the whole pulls the parameters towards its own labels; where workers "
                "take turns instead of averaging, the model follows whoever came last."
            )
            return Mechanism(text=text, source=_HSIEH)
        case Cause.METRIC:
            text = (
                "A mean of workers' metrics is not the metric of all rows: workers with few rows count too much, and "
                "an AUC never compares rows of two workers. The model was not worse; its score was."
            )
            return Mechanism(text=text, source=_XGBOOST)


def _momentum_text(run: Run) -> str:
    k = run.workers
    text = f"Asynchrony is momentum by itself: with {k} workers about 1 - 1/{k}, or {1 - 1 / k:.2f}"
    if run.momentum is None:
        return f"{text}, on top of any that is set."
    momentum = run.momentum[1]
    both = 1 - (1 - momentum) / k
    return (
        f"{text}. On top of {short(momentum)} that makes {short(both)}: a push goes on acting for "
        f"{1 / (1 - both):.0f} updates instead of {1 / (1 - momentum):.0f}, in a direction that was old when it came."
    )


_GOYAL = 'Goyal et al. 2017, "Accurate, Large Minibatch SGD", section 2.1'
_HO = 'Ho et al. 2013, "More Effective Distributed ML via a Stale Synchronous Parallel Parameter Server"'
_HSIEH = 'Hsieh et al. 2020, "The Non-IID Data Quagmire of Decentralized Machine Learning"'
_LIAN = 'Lian et al. 2015, "Asynchronous Parallel Stochastic Gradient for Nonconvex Optimization"'
_MITLIAGKAS = 'Mitliagkas et al. 2016, "Asynchrony begets Momentum"'
_XGBOOST = "XGBoost's documentation of its metrics: a distributed AUC is an average over workers"
_ZHANG = 'Zhang et al. 2016, "Staleness-aware Async-SGD for Distributed Deep Learning"'
