"""A real Chromium, and pages opened in it."""

from tests.support.fixtures.hpo_report import chromium, job, see, see_once  # noqa: F401
