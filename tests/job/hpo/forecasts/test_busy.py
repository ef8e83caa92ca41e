"""When a machine is called busy: made-up processor times, and a real job beside real busy processes."""

from __future__ import annotations

import dataclasses
import json

from hypothesis import given, strategies as st

from tests.support.hpo.forecasts.busy import busy


@given(st.floats(0, 50), st.floats(0, 50), st.integers(1, 8), st.integers(1, 20))
def test_others_never_use_more_than_there_is_nor_less_than_nothing(
    by_all: float, by_job: float, cores: int, wanted: int
) -> None:
    found = busy(by_all, by_job, cores=cores, wanted=wanted)
    assert found is None or 0 < found.others <= cores
    assert json.loads(json.dumps(dataclasses.asdict(found))) if found else True
