"""The pictures of a job, each interactive for the page and still for a file."""

from typing import TYPE_CHECKING

from trainers.lazy import load_when_used

if TYPE_CHECKING:
    from hpo.report.pictures import look as look
    from hpo.report.pictures.figure import Figure as Figure
    from hpo.report.pictures.figures import comparison_figures as comparison_figures, job_figures as job_figures
    from hpo.report.pictures.look import TEMPLATES as TEMPLATES

load_when_used(__name__)
