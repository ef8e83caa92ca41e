"""Sweep files of Weights & Biases, turned into job files."""

from typing import TYPE_CHECKING

from trainers.lazy import load_when_used

if TYPE_CHECKING:
    from hpo.job_file.sweep.job import job_of_sweep as job_of_sweep

load_when_used(__name__)
