"""Importance of hyperparameters: parts of the variance of the model's surface, with their uncertainty."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import plotly.graph_objects as go
from matplotlib.figure import Figure as Still
from matplotlib.ticker import PercentFormatter
from scipy.stats import sobol_indices
from scipy.stats.qmc import Sobol

from hpo.report.model.belief import Belief, Floats
from hpo.report.pictures import Figure, look
from hpo.text import count, enumerated

SAMPLES = 512
"""Configurations at which the surface is asked, twice and once more a hyperparameter; a power of two."""

FLAT = 1e-6
"""A surface whose normal scores differ by less explains nothing."""

FUNCTIONS, MOST_POINTS = 30, 1500
"""Functions drawn from the process, and points of each at most: the time grows with their cube."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Importance:
    """A hyperparameter's part of the variance of the surface at the largest resource.

    Args:
        name: the hyperparameter.
        total: its part, 0 to 1, with all that it does together with others; of all, they add up to 1 or more.
        alone: its part by itself, no larger.
        spread: the standard deviation of `total` over functions that the process takes to be possible.
    """

    name: str
    total: float
    alone: float
    spread: float


def importances(belief: Belief) -> list[Importance]:
    """The most important first; empty where there is one hyperparameter, or the surface is flat.

    Source: Saltelli et al., "Variance Based Sensitivity Analysis of Model Output" (2010), table 2, (b) and (f), in
    SciPy, on the mean of the process; how sure that is, from functions drawn from it, as in Le Gratiet, Cannamela,
    Iooss, "A Bayesian Approach for Global Sensitivity Analysis of (Multifidelity) Computer Codes" (2014), section 3.
    """
    if len(belief.names) < 2:
        return []
    points = _points(belief, SAMPLES)
    means, _ = belief.surface.predict(points)
    if np.ptp(means) < FLAT:
        return []
    alone, total = _indices(means, SAMPLES)
    fewer = 2 ** int(np.log2(MOST_POINTS / (belief.space.sides + 2)))
    points = _points(belief, fewer)
    normal = np.random.default_rng(0).standard_normal((len(points), FUNCTIONS))
    possible = belief.surface.drawn(points, normal)
    spread = np.std([_indices(function, fewer)[1] for function in possible.T], axis=0)
    told = [
        Importance(name=name, total=float(whole), alone=float(min(part, whole)), spread=float(off))
        for name, part, whole, off in zip(belief.space.names, alone, total, spread, strict=True)
        if name in belief.names
    ]
    return sorted(told, key=lambda each: -each.total)


def _points(belief: Belief, samples: int) -> Floats:
    """Two sets of configurations spread evenly over the space, and the first with each side of the second in turn."""
    space = belief.space
    drawn = Sobol(2 * space.sides, rng=np.random.default_rng(0)).random(samples)
    for column, name in enumerate(space.names * 2):
        bounds = belief.data.ranges[name]
        drawn[:, column] = [bounds.position(bounds.at(float(place))) for place in drawn[:, column]]
    one, other = drawn[:, : space.sides], drawn[:, space.sides :]
    mixed = np.repeat(one[None], space.sides, axis=0)
    for side, points in enumerate(mixed):
        points[:, side] = other[:, side]
    return np.concatenate([one, other, *mixed])


def _indices(values: Floats, samples: int) -> tuple[Floats, Floats]:
    """First-order and total indices, a side each, of a function's values at `_points`."""
    one, other, *mixed = values.reshape(-1, 1, samples)
    indices = sobol_indices(func={"f_A": one, "f_B": other, "f_AB": np.array(mixed)}, n=samples)
    return np.clip(indices.first_order, 0, 1), np.clip(indices.total_order, 0, 1)


# ---- the picture


def importance_bars(belief: Belief, shares: Sequence[Importance]) -> Figure | None:
    """The picture; None where there is nothing to compare."""
    if not shares:
        return None
    tried = len(np.unique(belief.groups[: len(belief.trials)]))
    note = (
        f"The part of the variance of the model's surface, over all configurations at {belief.data.max_resource:,} "
        f"{belief.data.unit}s, that is due to each hyperparameter: strong by itself, faint together with others "
        "(Sobol' indices; Saltelli et al. 2010). The surface is one of ranks, so that far-off values do not "
        "outweigh all others. Lines are one standard deviation over functions that the model takes to be possible."
    )
    title = headline(shares, tried)
    return Figure(
        name="importance",
        title=title,
        note=note,
        interactive=_interactive(shares),
        still=partial(_still, belief, shares, title),
    )


def headline(shares: Sequence[Importance], tried: int) -> str:
    """The most important hyperparameter, as far as that can be told."""
    first = shares[0]
    ahead = [look.shortened(each.name, 24) for each in shares if each.total + each.spread >= first.total - first.spread]
    if len(ahead) > max(1, min(3, len(shares) // 2)):
        return f"{count(tried, 'configuration')} do not tell which hyperparameter mattered most"
    return f"{enumerated(ahead)} mattered most"


def _interactive(shares: Sequence[Importance]) -> go.Figure:
    alone, total, spread = (
        np.array(part, dtype=np.float32)
        for part in zip(*((each.alone, each.total, each.spread) for each in shares), strict=True)
    )
    names = [look.plain(each.name) for each in shares]
    shared = {"orientation": "h", "y": list(range(len(shares))), "width": 0.62, "hovertext": names}
    bars = [
        go.Bar(
            x=alone,
            name="by itself",
            marker={"color": look.BLUE, "line": {"width": 0}},
            hovertemplate="%{hovertext}, by itself: %{x:.0%}<extra></extra>",
            **shared,
        ),
        go.Bar(
            x=total - alone,
            customdata=total,
            name="together with others",
            marker={"color": look.faded(look.BLUE, 0.4), "line": {"width": 0}},
            error_x={
                "array": np.minimum(spread, 1 - total),
                "arrayminus": np.minimum(spread, total),
                "symmetric": False,
                "color": look.GREY,
                "width": 4,
            },
            hovertemplate="%{hovertext}, with others: %{customdata:.0%}<extra></extra>",
            **shared,
        ),
    ]
    return look.interactive(
        *bars,
        height=130 + 34 * len(shares),
        barmode="stack",
        showlegend=True,
        xaxis={"title": {"text": "part of the surface's variance"}, "tickformat": ".0%", "rangemode": "tozero"},
        yaxis=look.rows([each.name for each in shares]),
    )


@look.styled
def _still(belief: Belief, shares: Sequence[Importance], title: str) -> Still:
    data = belief.data
    still, axes = look.canvas(
        title,
        f"{data.title}: the part of the variance of {look.shortened(data.metric)}",
        height=1.9 + 0.36 * len(shares),
    )
    places = range(len(shares))
    alone = [each.alone for each in shares]
    more = [each.total - each.alone for each in shares]
    axes.barh(places, alone, height=0.62, color=look.BLUE, label="by itself")
    axes.barh(
        places,
        more,
        left=alone,
        xerr=[
            [min(each.spread, each.total) for each in shares],
            [min(each.spread, 1 - each.total) for each in shares],
        ],
        height=0.62,
        color=look.BLUE + "66",
        ecolor=look.GREY,
        capsize=4,
        label="together with others",
    )
    look.still_rows(axes, [each.name for each in shares])
    axes.set_xlim(left=0)
    axes.xaxis.set_major_formatter(PercentFormatter(1, 0))
    axes.set_xlabel("part of the surface's variance")
    axes.legend(loc="lower right", fontsize=9)
    return still
