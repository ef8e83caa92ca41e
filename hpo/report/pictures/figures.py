"""All pictures of a job, or of several jobs side by side, in the order of the page."""

from __future__ import annotations

from collections.abc import Sequence

from hpo.report.data import JobData
from hpo.report.pictures.costs import cost, costs_compared
from hpo.report.pictures.curves import learning_curves
from hpo.report.pictures.figure import Figure
from hpo.report.pictures.gantt import brackets
from hpo.report.pictures.importance import importance
from hpo.report.pictures.parallel import parallel
from hpo.report.pictures.progress import best_by_cost, best_compared
from hpo.report.pictures.staleness import staleness_histograms

_OF_A_JOB = (learning_curves, brackets, cost, best_by_cost, importance, parallel, staleness_histograms)
_OF_SEVERAL = (best_compared, costs_compared)


def job_figures(data: JobData) -> list[Figure]:
    """A job's pictures; one that the record has nothing for is not among them."""
    return [figure for draw in _OF_A_JOB if (figure := draw(data)) is not None]


def comparison_figures(jobs: Sequence[JobData]) -> list[Figure]:
    """Pictures of several jobs' best scores by their cost; the first leaves out jobs without a score."""
    return [figure for draw in _OF_SEVERAL if (figure := draw(jobs)) is not None]
