"""Importance of hyperparameters: functional ANOVA, with its uncertainty."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import optuna
import plotly.graph_objects as go
from matplotlib.figure import Figure as Still
from matplotlib.ticker import PercentFormatter
from numpy.typing import NDArray
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution
from optuna.importance import FanovaImportanceEvaluator

from hpo.ranges import CategoricalParameter, ParameterRange
from hpo.report.data import JobData
from hpo.report.pictures import look
from hpo.report.pictures.figure import Figure
from hpo.report.pictures.progress import full_scores
from hpo.report.pictures.scales import fixed, position
from hpo.text import count, enumerated

FEWEST = 8
"""Trials below which nothing is said."""

MOST = 400
"""Trials that are used at most, spread evenly over all: the time grows faster than their number."""

SEEDS, TREES, DEPTH = 6, 16, 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Importance:
    """A hyperparameter's part of the spread of the scores' ranks.

    Args:
        name: the hyperparameter.
        mean: its part, 0 to 1, over several forests.
        spread: the standard deviation over them.
    """

    name: str
    mean: float
    spread: float


def importances(data: JobData) -> list[Importance]:
    """The most important first; empty where there are too few trials or hyperparameters, or all scored the same.

    What is explained is a trial's rank: far-off scores then do not outweigh all others, and what diverged has one
    too. Each forest sees a bootstrap sample of the trials, so that the spread says how much hangs on which were drawn.
    """
    scores = full_scores(data)
    ranges = {name: bounds for name, bounds in data.ranges.items() if not fixed(bounds)}
    rows = [
        (trial.hyperparameters, scores[trial.trial_id])
        for trial in data.trials
        if trial.trial_id in scores and all(name in trial.hyperparameters for name in ranges)
    ]
    if len(rows) < FEWEST or len(ranges) < 2 or len({score for _, score in rows}) < 2:
        return []
    ranks = _ranks(np.array([score for _, score in rows]))
    picked = np.unique(np.linspace(0, len(rows) - 1, MOST).round().astype(int))
    shares: dict[str, list[float]] = {name: [] for name in ranges}
    with _quiet():
        for seed in range(SEEDS):
            drawn = np.random.default_rng(seed).choice(picked, size=len(picked))
            if len(np.unique(ranks[drawn])) < 2:
                continue
            study = _study(ranges, [(rows[place][0], float(ranks[place])) for place in drawn])
            evaluator = FanovaImportanceEvaluator(n_trees=TREES, max_depth=DEPTH, seed=seed)
            for name, part in evaluator.evaluate(study).items():
                shares[name].append(part)
    told = [
        Importance(name=name, mean=float(np.mean(parts)), spread=float(np.std(parts)))
        for name, parts in shares.items()
        if parts
    ]
    return sorted(told, key=lambda each: -each.mean)


def _ranks(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """The place of each in the order of all, from 0 to 1; those that are equal share one."""
    _, places, numbers = np.unique(scores, return_inverse=True, return_counts=True)
    middle = np.cumsum(numbers) - (numbers + 1) / 2
    ranks: NDArray[np.float64] = middle[places] / (len(scores) - 1)
    return ranks


def _study(ranges: Mapping[str, ParameterRange], rows: Sequence[tuple[Mapping[str, Any], float]]) -> optuna.Study:
    """The trials as Optuna has them, with numbers on the scale on which they were searched."""
    distributions = {name: _distribution(bounds) for name, bounds in ranges.items()}
    study = optuna.create_study()
    study.add_trials(
        [
            optuna.trial.create_trial(
                params={name: position(bounds, values[name]) for name, bounds in ranges.items()},
                distributions=distributions,
                value=value,
            )
            for values, value in rows
        ]
    )
    return study


def _distribution(bounds: ParameterRange) -> BaseDistribution:
    if isinstance(bounds, CategoricalParameter):
        return CategoricalDistribution(range(len(bounds.values)))
    return FloatDistribution(position(bounds, bounds.min_value), position(bounds, bounds.max_value))


@contextmanager
def _quiet() -> Iterator[None]:
    """Keeps Optuna from saying that it made a study."""
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        yield
    finally:
        optuna.logging.set_verbosity(before)


# ---- the picture


def importance(data: JobData) -> Figure | None:
    """The picture; None where there is too little to say anything."""
    shares = importances(data)
    if not shares:
        return None
    used = min(MOST, len(full_scores(data)))
    note = (
        f"Functional ANOVA (Hutter et al. 2014, in Optuna) on {count(used, 'trial')}: the part of the spread of their "
        f"ranks that each hyperparameter explains by itself; the rest is in how they act together, and chance. Bars "
        f"end at the mean over {SEEDS} random forests, each of another bootstrap sample of the trials, with one "
        f"standard deviation. A trial that was stopped has its score estimated at full length, as in the picture of "
        f"random search; one that diverged or failed ranks last."
    )
    title = headline(shares, used)
    return Figure(
        name="importance",
        title=title,
        note=note,
        interactive=_interactive(shares),
        still=partial(_still, data, shares, title),
    )


def headline(shares: Sequence[Importance], trials: int) -> str:
    """The most important hyperparameter, as far as that can be told."""
    first = shares[0]
    ahead = [look.shortened(each.name, 24) for each in shares if each.mean + each.spread >= first.mean - first.spread]
    if len(ahead) > max(1, min(3, len(shares) // 2)):
        return f"{count(trials, 'trial')} do not tell which hyperparameter mattered most"
    return f"{enumerated(ahead)} mattered most"


def _interactive(shares: Sequence[Importance]) -> go.Figure:
    bars = go.Bar(
        orientation="h",
        x=np.array([each.mean for each in shares], dtype=np.float32),
        y=list(range(len(shares))),
        width=0.62,
        marker={"color": look.faded(look.BLUE, 0.5), "line": {"width": 0}},
        error_x={"array": np.array([each.spread for each in shares], dtype=np.float32), "color": look.BLUE, "width": 4},
        hovertext=[look.plain(each.name) for each in shares],
        hovertemplate="%{hovertext}: %{x:.0%}<extra></extra>",
    )
    return look.interactive(
        bars,
        height=90 + 34 * len(shares),
        xaxis={"title": {"text": "part of the ranks' variance"}, "tickformat": ".0%", "rangemode": "tozero"},
        yaxis=look.rows([each.name for each in shares]),
    )


@look.styled
def _still(data: JobData, shares: Sequence[Importance], title: str) -> Still:
    still, axes = look.canvas(
        title, f"{data.title}: what explains {look.shortened(data.metric)}", height=1.6 + 0.36 * len(shares)
    )
    means, spreads = [each.mean for each in shares], [each.spread for each in shares]
    axes.barh(range(len(shares)), means, xerr=spreads, height=0.62, color=look.BLUE + "80", ecolor=look.BLUE, capsize=4)
    look.still_rows(axes, [each.name for each in shares])
    axes.set_xlim(left=0)
    axes.xaxis.set_major_formatter(PercentFormatter(1, 0))
    axes.set_xlabel("part of the ranks' variance")
    return still
