"""Working directories of jobs: one to submit from, and one with a package of a user's own."""

from tests.support.fixtures.hpo_jobs import package_folder  # noqa: F401
