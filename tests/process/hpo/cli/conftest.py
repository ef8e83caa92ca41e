"""The record and the job file that commands read."""

from tests.support.fixtures.hpo_cli import job, store  # noqa: F401
