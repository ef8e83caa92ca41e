"""Causes of a worse distributed run, the change that takes each away, and ranges to tune then; pure.

Batches, rates and momentum are read under the names that training functions here give them: `RATES`, `MOMENTA`, and the
trainers' own `per_worker_batch_size` and `global_batch_size`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from experiments.convergence.published_theories import Theory
from hpo import CategoricalParameter, ContinuousParameter
from hpo.ranges import ParameterRange
from hpo.text import short
from trainers.pytorch import GLOBAL, PER_WORKER, RULE, BatchSize

RATES, MOMENTA = ("lr", "learning_rate"), ("momentum", "beta1")
LINK = "link_bytes_per_second"
RING = "ring"
"""The mode of decentralised averaging: workers on a ring, without servers."""
BOOSTING = "boosting"
"""The mode of gradient boosting over summed histograms; others are the parameter server's, or AllReduce's "sync"."""


class Cause(StrEnum):
    """What may be at fault."""

    BATCH = "effective batch size"
    RATE = "learning rate against the batch"
    STALENESS = "staleness"
    MOMENTUM = "momentum under staleness"
    SHARDS = "shard imbalance"
    METRIC = "metric averaged over workers"
    CONGESTION = "congested link"
    NOISE = "gradient noise"
    SHARED = "one model that all update"

    @property
    def theory(self) -> Theory | None:
        """Which of the published theories it tests, if one."""
        return _THEORIES.get(self)

    @property
    def word(self) -> str:
        """What it is called in a sentence."""
        return _WORDS[self]


_WORDS = {
    Cause.BATCH: "the larger batch",
    Cause.RATE: "the learning rate",
    Cause.STALENESS: "staleness",
    Cause.SHARED: "one model that all update",
    Cause.MOMENTUM: "momentum",
    Cause.SHARDS: "shards that are not alike",
    Cause.METRIC: "a metric averaged over workers",
    Cause.CONGESTION: "a congested link",
    Cause.NOISE: "too little noise",
}
_THEORIES = {
    Cause.BATCH: Theory.SHARP,
    Cause.STALENESS: Theory.STALENESS,
    Cause.CONGESTION: Theory.CONGESTION,
    Cause.NOISE: Theory.NOISE,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """How a run is distributed, as far as it can matter.

    Args:
        workers: how many.
        mode: "async", "bounded", "ring" or "sync", AllReduce being the last; or `BOOSTING`.
        hyperparameters: its own, static.
    """

    workers: int
    mode: str
    hyperparameters: Mapping[str, Any]

    @property
    def stale(self) -> bool:
        """Whether gradients may be of parameters that others have changed since."""
        return self.mode in ("async", "bounded")

    @property
    def rate(self) -> tuple[str, float] | None:
        """The learning rate's name and value, where it has one of the names that are known here."""
        return self._named(RATES)

    @property
    def momentum(self) -> tuple[str, float] | None:
        """The same of momentum; none where it is 0."""
        return self._named(MOMENTA)

    @property
    def link(self) -> float | None:
        """Bytes a second of a server's link each way; None where it has no limit."""
        found = self._named((LINK,))
        return None if found is None else found[1]

    @property
    def batches(self) -> tuple[int, int] | None:
        """Rows that one worker alone has in an update, and that all workers together have under way."""
        alone, together = (BatchSize.of(self.hyperparameters, workers) for workers in (1, self.workers))
        return None if alone is None or together is None else (alone.global_batch_size, together.global_batch_size)

    def changed(self, hyperparameters: Mapping[str, Any]) -> Run:
        """The same run with these hyperparameters over its own."""
        mode = str(hyperparameters.get("mode", self.mode))
        return Run(workers=self.workers, mode=mode, hyperparameters={**self.hyperparameters, **hyperparameters})

    def _named(self, names: tuple[str, ...]) -> tuple[str, float] | None:
        for name in names:
            value = self.hyperparameters.get(name)
            if isinstance(value, int | float) and not isinstance(value, bool) and value > 0:
                return name, float(value)
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One thing brought back to what it is on one worker.

    Args:
        causes: what it takes away; two where it is a pair of changes.
        said: what is changed.
        hyperparameters: over the run's own.
        shuffled: the training rows are put into another order before workers get theirs.
        whole: each worker evaluates all rows, so that a mean over workers is the metric of them all.
        noise: what the covariance of each worker's gradients is multiplied by, through noise that is added.
    """

    causes: tuple[Cause, ...]
    said: str
    hyperparameters: Mapping[str, Any] = field(default_factory=dict)
    shuffled: bool = False
    whole: bool = False
    noise: float = 1.0

    @property
    def name(self) -> str:
        """For tables and files."""
        return " and ".join(self.causes)

    @property
    def theories(self) -> str:
        """The published theories that it tests, for tables."""
        return ", ".join(cause.theory for cause in self.causes if cause.theory)

    def __and__(self, other: Change) -> Change:
        """Both at once."""
        return Change(
            causes=self.causes + other.causes,
            said=f"{self.said}; {other.said}",
            hyperparameters={**self.hyperparameters, **other.hyperparameters},
            shuffled=self.shuffled or other.shuffled,
            whole=self.whole or other.whole,
            noise=self.noise * other.noise,
        )


def changes(run: Run) -> tuple[list[Change], dict[Cause, str]]:
    """Every change that there is to make, in the order of `Cause`; and of the other causes, why not."""
    made: list[Change] = []
    ruled_out: dict[Cause, str] = {}
    for cause in Cause:
        found = _CHANGE[cause](run)
        if isinstance(found, Change):
            made.append(found)
        else:
            ruled_out[cause] = found
    return made, ruled_out


def _batch(run: Run) -> Change | str:
    if run.mode == BOOSTING:
        return "every round sees all rows, on however many workers"
    size = BatchSize.of(run.hyperparameters, run.workers)
    if size is None:
        return f"the hyperparameters give no batch size ({PER_WORKER} or {GLOBAL})"
    if GLOBAL in run.hyperparameters:
        return f"all workers together take {size.global_batch_size} rows at a time, as one worker does"
    each = size.per_worker_batch_size
    fewer = max(1, each // run.workers)
    if fewer == each:
        return f"{PER_WORKER} is 1, and cannot be divided"
    return Change(
        causes=(Cause.BATCH,), said=f"{PER_WORKER} {fewer} instead of {each}", hyperparameters={PER_WORKER: fewer}
    )


def _rate(run: Run) -> Change | str:
    if run.mode == BOOSTING:
        return "a round is one step of the same trees, on however many workers"
    if run.stale:
        if run.rate is None:
            return f"no hyperparameter is called {' or '.join(RATES)}"
        name, rate = run.rate
        lower = rate / run.workers
        said = f"{name} {short(lower)} instead of {short(rate)}"
        return Change(causes=(Cause.RATE,), said=said, hyperparameters={name: lower})
    if GLOBAL in run.hyperparameters:
        return "an update has as many rows as on one worker, so that the same rate is right"
    if run.hyperparameters.get(RULE, "none") == "linear":
        return f"{RULE} is linear already"
    said = f"{RULE} linear, {run.workers} times the rate"
    return Change(causes=(Cause.RATE,), said=said, hyperparameters={RULE: "linear"})


def _staleness(run: Run) -> Change | str:
    if not run.stale and run.mode != RING:
        return "workers wait for each other, so that no gradient is of old parameters"
    said = f"mode sync instead of {run.mode}"
    return Change(causes=(Cause.STALENESS,), said=said, hyperparameters={"mode": "sync"})


def _shared(run: Run) -> Change | str:
    """Decentralised averaging (Lian et al. 2018): each worker's updates are of a model of its own, as on one worker."""
    if run.mode == BOOSTING:
        return "workers of trees add their histograms up, and all build the same trees"
    if run.mode == RING:
        return "each worker has a model of its own, and averages it with its neighbours'"
    if not run.stale:
        return "an update is of all workers' gradients at once, so that the one model is that of each of them"
    said = f"mode {RING} instead of {run.mode}: a model for each worker, averaged with its neighbours'"
    return Change(causes=(Cause.SHARED,), said=said, hyperparameters={"mode": RING})


def _momentum(run: Run) -> Change | str:
    if not run.stale:
        return "without staleness, momentum does what it does on one worker"
    if run.momentum is None:
        return f"no hyperparameter is called {' or '.join(MOMENTA)}, or it is 0"
    name, momentum = run.momentum
    said = f"{name} 0 instead of {short(momentum)}"
    return Change(causes=(Cause.MOMENTUM,), said=said, hyperparameters={name: 0.0})


def _shards(run: Run) -> Change | str:
    return Change(causes=(Cause.SHARDS,), said="training rows shuffled first", shuffled=True)


def _metric(run: Run) -> Change | str:
    if run.mode == BOOSTING:
        return "every worker evaluates all rows, so that metrics are exact"
    return Change(causes=(Cause.METRIC,), said="every worker evaluates all rows", whole=True)


def _congestion(run: Run) -> Change | str:
    if run.mode == BOOSTING:
        return "workers of trees add their histograms up among themselves, and have no server to share a link of"
    link = run.link
    if link is None:
        return f"the hyperparameters limit no link; give {LINK}, which simulates one"
    return Change(
        causes=(Cause.CONGESTION,),
        said=f"a link without a limit instead of {link:,.10g} bytes a second",
        hyperparameters={LINK: None},
    )


def _noise(run: Run) -> Change | str:
    if run.mode == BOOSTING:
        return "every round sees all rows, on however many workers"
    if GLOBAL in run.hyperparameters:
        return "an update has as many rows as on one worker, so that its gradient is as noisy"
    size = BatchSize.of(run.hyperparameters, run.workers)
    each = size.per_worker_batch_size if size else None
    fewer = f"{short(each / run.workers)} rows instead of {each}" if each else f"{run.workers} times fewer rows"
    said = f"gradients as noisy as of {fewer}"
    return Change(causes=(Cause.NOISE,), said=said, noise=float(run.workers))


_CHANGE = {
    Cause.BATCH: _batch,
    Cause.RATE: _rate,
    Cause.STALENESS: _staleness,
    Cause.MOMENTUM: _momentum,
    Cause.SHARDS: _shards,
    Cause.METRIC: _metric,
    Cause.CONGESTION: _congestion,
    Cause.NOISE: _noise,
    Cause.SHARED: _shared,
}


# ---- what to tune


def ranges(run: Run, found: Collection[Cause]) -> dict[str, ParameterRange]:
    """What to tune so that the distributed run comes back; each range holds the value whose change gave something back.

    Args:
        run: as it was distributed.
        found: the causes that gave something back; where there is none, all that has a hyperparameter is proposed.
    """
    asked = set(found) or set(Cause)
    learning = {Cause.BATCH, Cause.RATE, Cause.STALENESS, Cause.MOMENTUM}
    proposed: dict[str, ParameterRange] = {}
    if run.mode == BOOSTING:
        return proposed
    if run.rate is not None and asked & learning:
        name, rate = run.rate
        # Staleness wants smaller steps, large batches larger ones.
        low, high = (rate / (10 * run.workers), rate) if run.stale else (rate / 2, rate * 2 * run.workers)
        proposed[name] = ContinuousParameter(_rounded(low), _rounded(high), "Logarithmic")
    if run.stale and run.momentum is not None and asked & {Cause.MOMENTUM, Cause.STALENESS}:
        name, momentum = run.momentum
        proposed[name] = ContinuousParameter(0.0, _most_momentum(momentum, run.workers))
    if Cause.BATCH in asked and run.hyperparameters.get(PER_WORKER):
        each = int(run.hyperparameters[PER_WORKER])
        proposed[PER_WORKER] = CategoricalParameter(sorted({max(1, each // run.workers), max(1, each // 2), each}))
    if run.mode == RING and Cause.STALENESS in asked:
        proposed["mode"] = CategoricalParameter([RING, "sync"])
    elif run.stale and asked & {Cause.STALENESS, Cause.SHARED}:
        others = [RING] if Cause.SHARED in asked else []
        proposed["mode"] = CategoricalParameter([run.mode, *({"bounded", "async"} - {run.mode}), *others, "sync"])
    return proposed


def _rounded(value: float) -> float:
    return float(f"{value:.4g}")


def _most_momentum(momentum: float, workers: int) -> float:
    """What leaves momentum and that of asynchrony together as it was on one worker; half of it where nothing does."""
    most = 1 - workers * (1 - momentum)
    return round(most, 4) if most > 0 else round(momentum / 2, 4)


def as_yaml(proposed: Mapping[str, ParameterRange]) -> str:
    """Ranges as a job file has them."""
    lines = ["tuning:", "  ranges:"]
    for name, bounds in proposed.items():
        if isinstance(bounds, CategoricalParameter):
            inside = f"type: categorical, values: [{', '.join(map(str, bounds.values))}]"
        else:
            scaling = "" if bounds.scaling_type == "Auto" else f", scaling: {bounds.scaling_type}"
            inside = f"type: {type(bounds).__name__.removesuffix('Parameter').lower()}, "
            inside += f"min: {bounds.min_value!r}, max: {bounds.max_value!r}{scaling}"
        lines.append(f"    {name}: {{{inside}}}")
    return "\n".join(lines)


def as_python(proposed: Mapping[str, ParameterRange]) -> str:
    """Ranges as `HyperparameterTuner` takes them."""
    kinds = sorted({type(bounds).__name__ for bounds in proposed.values()})
    lines = [f"    {name!r}: {bounds!r}," for name, bounds in proposed.items()]
    return "\n".join([f"from hpo import {', '.join(kinds)}", "", "ranges = {", *lines, "}"]).replace("'", '"')
