"""Three processes that train together, without Ray."""

from __future__ import annotations

import pytest

from tests.support.process_gang import process_gang


@pytest.fixture(scope="module")
def gang(tmp_path_factory):
    with process_gang(3, str(tmp_path_factory.mktemp("stores"))) as started:
        yield started
