"""A store with one job, on each database or in a SQLite file, and writers that are not heard of in between."""

from tests.support.fixtures.hpo_record import store  # noqa: F401
