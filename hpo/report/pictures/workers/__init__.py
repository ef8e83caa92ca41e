"""Pictures of what a trial's workers had to do with each other."""

from typing import TYPE_CHECKING

from trainers.lazy import load_when_used

if TYPE_CHECKING:
    from hpo.report.pictures.workers.push_staleness import (
        mean as mean,
        staleness as staleness,
        staleness_histograms as staleness_histograms,
    )
    from hpo.report.pictures.workers.step_communication import communication as communication, shares as shares

load_when_used(__name__)
