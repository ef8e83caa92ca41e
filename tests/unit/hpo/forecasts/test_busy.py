"""When a machine is called busy: made-up processor times, and a real job beside real busy processes."""

from __future__ import annotations

import pytest

from hpo.forecasts.busy import Busy, Usage, used_by_job
from tests.support.hpo.forecasts.busy import ME, WORKER, busy
from tests.support.refusals import mentions


def test_what_others_used_is_what_the_job_did_not() -> None:
    found = busy(20.0, 1.0)
    assert found == Busy(others=pytest.approx(1.9), cores=2)
    mentions(found.text, "busy", "processes", 1.9, "2 cores")


@pytest.mark.parametrize(
    ("by_all", "by_job", "cores", "wanted", "expected"),
    [
        (20.0, 20.0, 2, 2, False),  # All of it was the job's own,
        (20.0, 20.0, 2, 12, False),  # with more workers than cores as well.
        (4.9, 0.0, 2, 2, False),
        (5.1, 0.0, 2, 2, True),
        (10.0, 0.0, 2, 1, False),  # One thread has the other core.
        (13.0, 0.0, 2, 1, True),
        (30.0, 0.0, 16, 4, False),
        (141.0, 10.0, 16, 4, True),
        (19.0, 20.0, 2, 2, False),  # Clocks that tick in hundredths.
    ],
)
def test_it_is_busy_where_less_than_three_quarters_of_what_was_wanted_is_left(
    by_all: float, by_job: float, cores: int, wanted: int, expected: bool
) -> None:
    assert (busy(by_all, by_job, cores=cores, wanted=wanted) is not None) == expected


def test_a_time_too_short_to_tell_says_nothing() -> None:
    assert busy(0.1, 0.0, seconds=0.05) is None


@pytest.mark.parametrize(
    ("waited_for", "expected"),
    [
        (0.0, 2.0),  # Its parent ignores it, as a raylet does: nothing is known, and nothing is made up.
        (31.5, 3.5),  # Its parent has all of its life: 30 s before, 1.5 s since.
    ],
)
def test_a_worker_that_ends_meanwhile_is_not_taken_for_others_work(waited_for: float, expected: float) -> None:
    before = Usage(at=0.0, by_all=0.0, by_job={ME: (5.0, 0.0), WORKER: (30.0, 0.0)})
    after = Usage(at=9.0, by_all=4.0, by_job={ME: (7.0, waited_for)})
    assert used_by_job(before, after) == pytest.approx(expected)
