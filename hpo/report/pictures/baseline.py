"""Random search of a job's own configurations, each trained to its end: simulated from what the record has."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from statistics import median

import numpy as np
from numpy.typing import NDArray

from hpo.record import repeats_of
from hpo.report.data import JobData
from hpo.report.pictures.timeline import billed_until
from hpo.strategies import mean

Floats = NDArray[np.float64]

POINTS = 300
"""Points of a line at most: more could not be told apart."""

LIKELY = (0.1, 0.9)
"""Between which quantiles of its outcomes the baseline's band lies."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Baseline:
    """A random search of the same configurations, each trained to its end, in any order: simulated.

    Args:
        billed: worker-seconds when so many trials are through.
        expected: mean of the best score then, over all orders.
        low: its quantile `LIKELY[0]`.
        high: its quantile `LIKELY[1]`.
    """

    billed: Floats
    expected: Floats
    low: Floats
    high: Floats


def full_scores(data: JobData) -> dict[str, float]:
    """Each trial's score at its end, by id: as measured, and estimated where it was stopped.

    A trial that was stopped is taken to gain what the median of those that went on from there gained, and to end no
    better than the best that was trained to its end. One that failed or diverged takes the worst of all scores. One
    without a single score is left out unless it failed.
    """
    sign = 1.0 if data.maximize else -1.0
    curves = {trial.trial_id: data.compared(trial.trial_id) for trial in data.trials}
    ended = {
        trial.trial_id: score
        for trial in data.trials
        if trial.status == "Completed" and (score := data.objective(trial)) is not None
    }
    gains: dict[int, float] = {}

    def gain(resource: int) -> float:
        if resource not in gains:
            known = [ended[trial] - before for trial in ended if (before := curves[trial].get(resource)) is not None]
            gains[resource] = median(known) if known else 0.0
        return gains[resource]

    scores: dict[str, float] = dict(ended)
    for trial in data.trials:
        score = data.objective(trial)
        if trial.trial_id not in ended and score is not None and trial.status not in ("Failed", "Diverged"):
            scores[trial.trial_id] = score + gain(trial.resource)
    if ended:
        most = max(sign * score for score in ended.values())
        scores = {trial: sign * min(sign * score, most) for trial, score in scores.items()}
    if scores:
        worst = sign * min(sign * score for score in scores.values())
        scores |= {trial.trial_id: worst for trial in data.trials if trial.status in ("Failed", "Diverged")}
    return {trial.trial_id: scores[trial.trial_id] for trial in data.trials if trial.trial_id in scores}


def baseline(data: JobData) -> Baseline | None:
    """Random search, from `full_scores`; None where there are fewer than two, or nothing was billed for units.

    There is none of a population either, whose trials begin from one another's checkpoints.
    """
    scores = [] if any(trial.parent for trial in data.trials) else _configuration_scores(data)
    units = data.used
    spent = sum(data.billed_by_trial.get(trial.trial_id, 0.0) for trial in data.trials)
    if len(scores) < 2 or not units or not spent:
        return None
    sign = 1.0 if data.maximize else -1.0
    ordered = np.sort(np.array([sign * score for score in scores]))
    number = len(ordered)
    draws = np.unique(np.geomspace(1, number, POINTS).round().astype(int))
    chances = _chances(number, draws)
    each = np.diff(chances, prepend=0.0, axis=1)
    quantiles = [sign * ordered[np.argmax(chances >= part - 1e-12, axis=1)] for part in LIKELY]
    return Baseline(
        billed=_before(data) + draws * data.max_resource * repeats_of(data.job) * spent / units,
        expected=sign * (each @ ordered),
        low=quantiles[0] if data.maximize else quantiles[1],
        high=quantiles[1] if data.maximize else quantiles[0],
    )


def _configuration_scores(data: JobData) -> list[float]:
    """The scores of configurations at their ends, each the mean of its trials'."""
    together: dict[int, list[float]] = defaultdict(list)
    scores = full_scores(data)
    for trial in data.trials:
        if trial.trial_id in scores:
            together[trial.number // repeats_of(data.job)].append(scores[trial.trial_id])
    return [mean(values) for values in together.values()]


def _before(data: JobData) -> float:
    """The bill before the first trial began."""
    tuned = {trial.trial_id for trial in data.trials}
    first = next(entry for entry in data.ledger if entry.trial_id in tuned)
    at_once = [entry for entry in data.ledger if entry.at == first.at and entry.trial_id == first.trial_id]
    return max(0.0, billed_until(data)(first.at) - sum(entry.worker_seconds for entry in at_once))


def _chances(number: int, draws: NDArray[np.int64]) -> Floats:
    """The chance that the best of so many drawn, without putting back, is among the i lowest of all; a row a draw.

    That is C(i, k) / C(n, k).
    """
    logs = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, number + 1)))])
    ranks = np.arange(1, number + 1)
    k = draws[:, None]
    inside = np.maximum(ranks[None, :] - k, 0)
    chance = np.exp(logs[ranks][None, :] - logs[inside] - (logs[number] - logs[number - k]))
    return np.where(ranks[None, :] >= k, chance, 0.0)


def baseline_note(data: JobData) -> str:
    """What a picture with it has to say."""
    configurations = len(data.trials) // repeats_of(data.job)
    ended = sum(trial.status == "Completed" for trial in data.trials)
    return (
        f" Random search is simulated, not run: it trains the same {configurations:,} configurations to their end in "
        f"random order, and the dashed line is the expected best so far, the band its 10% to 90% quantiles. Scores at "
        f"the end are known of {ended}; the others are taken to gain what the median of those that went on gained from "
        f"there, up to the best one's score, and what failed or diverged to be as bad as the worst. It begins when "
        f"this job's first trial did, each {data.unit} costs it what one cost here, and no gang of it is ever idle."
    )
