"""Channels of a job file that are datasets of PyTorch."""

from typing import TYPE_CHECKING

from trainers.lazy import load_when_used

if TYPE_CHECKING:
    from hpo.job_file.channels.examples import ExampleKeys as ExampleKeys

load_when_used(__name__)
