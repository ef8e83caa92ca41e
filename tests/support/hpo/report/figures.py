"""Figures of jobs with hostile names and values."""

from __future__ import annotations

import pytest

from hpo.report.figures import comparison_figures, job_figures
from tests.support.records import HOSTILE, made_up


@pytest.fixture(scope="module")
def hostile():
    """Return the figures of one job, and of two jobs side by side."""
    jobs = [made_up(hostile=True, name=HOSTILE), made_up(hostile=True, name="b", seed=2)]
    return [*job_figures(jobs[0]), *comparison_figures(jobs)]
