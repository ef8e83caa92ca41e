"""When a machine is called busy: made-up processor times, and a real job beside real busy processes."""

from __future__ import annotations

import dataclasses
import json

from hypothesis import given, strategies as st

from hpo.forecasts.busy import Busy, Usage, busy_between

ME, WORKER = (1, 0.5), (2, 3.5)


def busy(by_all: float, by_job: float, *, seconds: float = 10.0, cores: int = 2, wanted: int = 2) -> Busy | None:
    before = Usage(at=100.0, by_all=5000.0, by_job={ME: (7.0, 1.0)})
    after = Usage(at=100.0 + seconds, by_all=5000.0 + by_all, by_job={ME: (7.0 + by_job, 1.0)})
    return busy_between(before, after, cores=cores, wanted=wanted)


@given(st.floats(0, 50), st.floats(0, 50), st.integers(1, 8), st.integers(1, 20))
def test_others_never_use_more_than_there_is_nor_less_than_nothing(
    by_all: float, by_job: float, cores: int, wanted: int
) -> None:
    found = busy(by_all, by_job, cores=cores, wanted=wanted)
    assert found is None or 0 < found.others <= cores
    assert json.loads(json.dumps(dataclasses.asdict(found))) if found else True
