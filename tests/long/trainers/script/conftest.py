"""A gang's only worker with a program of the test's own."""

from tests.support.fixtures.trainers_script import opened  # noqa: F401
