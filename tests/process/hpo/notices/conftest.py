"""Receivers of notices, and pauses between attempts that are short."""

from tests.support.fixtures.hpo_notices import receiver, soon  # noqa: F401
