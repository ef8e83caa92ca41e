"""The model of a job's results, fitted to its record: what it believes, and how far that can be trusted."""

from typing import TYPE_CHECKING

from trainers.lazy import load_when_used

if TYPE_CHECKING:
    from hpo.report.model.pictures import model_figures as model_figures

load_when_used(__name__)
