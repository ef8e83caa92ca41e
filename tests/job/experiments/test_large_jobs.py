"""Models of large jobs: the functions, the trees, and the tables that the pages are given."""

from __future__ import annotations

import pytest

from experiments import large_jobs
from experiments.large_jobs import SEARCHES, on_function


@pytest.mark.parametrize("arm", SEARCHES)
def test_a_search_is_the_same_again_and_asks_its_model(arm: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(large_jobs, "LOOKED_AT", (8, 12))
    made = on_function("Hartmann, 6 dimensions", arm, 12, 1)
    assert made["regrets"] == on_function("Hartmann, 6 dimensions", arm, 12, 1)["regrets"]
    assert 1.5 > made["regrets"][0] >= made["regrets"][1] > 0
    assert made["seconds"] > 0
