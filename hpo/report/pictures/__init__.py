"""The pictures of a job, each interactive for the page and still for a file."""

from typing import TYPE_CHECKING

from trainers.lazy import load_when_used

if TYPE_CHECKING:
    from hpo.report.pictures import look as look
    from hpo.report.pictures.costs import cost as cost, costs_compared as costs_compared
    from hpo.report.pictures.curves import learning_curves as learning_curves
    from hpo.report.pictures.figure import Figure as Figure
    from hpo.report.pictures.gantt import brackets as brackets
    from hpo.report.pictures.lineage import parents_and_forks as parents_and_forks
    from hpo.report.pictures.look import TEMPLATES as TEMPLATES
    from hpo.report.pictures.parallel import parallel_coordinates as parallel_coordinates
    from hpo.report.pictures.progress import best_by_cost as best_by_cost, best_compared as best_compared
    from hpo.report.pictures.scales import fixed as fixed
    from hpo.report.pictures.workers import (
        communication as communication,
        staleness_histograms as staleness_histograms,
    )

load_when_used(__name__)
