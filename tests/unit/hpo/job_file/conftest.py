"""A job file for tests to change."""

from tests.support.fixtures.hpo_job_file import path  # noqa: F401
