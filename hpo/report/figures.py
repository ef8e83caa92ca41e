"""Every picture of a job, and of several side by side, in the order in which a page shows them."""

from __future__ import annotations

from hpo.report.costs import cost
from hpo.report.curves import learning_curves
from hpo.report.data import JobData
from hpo.report.figure import Figure
from hpo.report.gantt import brackets
from hpo.report.importance import importance
from hpo.report.parallel import parallel
from hpo.report.progress import cost_of_best

_OF_A_JOB = (learning_curves, brackets, cost, cost_of_best, importance, parallel)


def job_figures(data: JobData) -> list[Figure]:
    """A job's pictures; one that the record has nothing for is not among them."""
    return [figure for draw in _OF_A_JOB if (figure := draw(data)) is not None]
