"""A record with a job, and the server's app over it."""

from tests.support.fixtures.hpo_serve import client, settings, store, tokens  # noqa: F401
