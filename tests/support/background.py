"""A job in the background, as a script of its own begins it."""

from __future__ import annotations

from tests.support.boosting import CHANNELS, make


def begin() -> None:
    """Starts a background job that does not end soon."""
    make(workers=0, max_jobs=5000).fit(CHANNELS, job_name="background", wait=False)
