"""A cluster of several machines for all tests, and what jobs answer that nothing happens to."""

from tests.support.fixtures.cluster import cluster, pytest_terminal_summary  # noqa: F401
