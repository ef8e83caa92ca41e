"""A record with a job, and the server's app over it."""

from tests.support.fixtures.hpo_serve import settings, store  # noqa: F401
