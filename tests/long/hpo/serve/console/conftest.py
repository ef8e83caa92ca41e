"""A real server over a record of two jobs, and a real Chromium that is logged in."""

from tests.support.fixtures.hpo_serve_console import chromium, record, served, visit  # noqa: F401
