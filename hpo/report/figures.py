"""All pictures of a job, or of several jobs side by side, in the order of the page."""

from __future__ import annotations

from collections.abc import Sequence

from hpo.record import is_training
from hpo.report.data import JobData
from hpo.report.model import model_figures
from hpo.report.pictures import (
    Figure,
    best_by_cost,
    best_compared,
    brackets,
    communication,
    cost,
    costs_compared,
    learning_curves,
    parallel_coordinates,
    parents_and_forks,
    staleness_histograms,
)

_OF_TRIALS = (
    learning_curves,
    brackets,
    parents_and_forks,
    cost,
    best_by_cost,
    parallel_coordinates,
    communication,
    staleness_histograms,
)
_OF_TRAINING = (learning_curves, cost, communication, staleness_histograms)
_OF_SEVERAL = (best_compared, costs_compared)


def job_figures(data: JobData) -> list[Figure]:
    """A job's pictures; one that the record has nothing for, or that compares trials of a training, is not there."""
    if is_training(data.job):
        return [figure for draw in _OF_TRAINING if (figure := draw(data)) is not None]
    return [*(figure for draw in _OF_TRIALS if (figure := draw(data)) is not None), *model_figures(data)]


def comparison_figures(jobs: Sequence[JobData]) -> list[Figure]:
    """Pictures of several jobs' best scores by their cost; the first leaves out jobs without a score."""
    return [figure for draw in _OF_SEVERAL if (figure := draw(jobs)) is not None]
