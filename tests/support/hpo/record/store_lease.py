"""A machine whose clock is wrong, and the description of its job."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest

from tests.support.boosting import make
from trainers import steady

SPEC = make(workers=0).settings.to_json({"train": {"kind": "pandas", "rows": 1, "columns": ["y"], "files": []}}, 1)


@pytest.fixture(params=[90.0, -90.0, -3600.0])
def ahead(request) -> Iterator[Callable[[], None]]:
    """Return a function that sets this machine's clock ahead; the database's clock stays right."""
    clock = time.time
    with pytest.MonkeyPatch.context() as patch:
        yield lambda: patch.setattr(time, "time", lambda: clock() + request.param)
    with steady.measuring():
        pass  # The clock is right again for the next test.
