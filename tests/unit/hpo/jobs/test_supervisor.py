"""Jobs in the background of this machine: what comes after a driver's end, and real processes that are killed."""

from __future__ import annotations

from hypothesis import given, strategies as st

from hpo.jobs.launch.supervisor import FIRST_PAUSE, LONGEST_PAUSE, RESTARTS, judge
from hpo.record.tables import LOST_AFTER
from tests.support.refusals import mentions


@given(st.sampled_from(["Completed", "Failed", "Stopped"]), st.integers(-15, 130), st.integers(1, 50))
def test_a_job_that_has_ended_is_left_alone(status: str, code: int, deaths: int) -> None:
    verdict = judge(status, code, deaths)
    assert (verdict.again, verdict.reason) == (None, "")


@given(st.sampled_from(["InProgress", "Stopping"]), st.sampled_from([-9, -11, -6, 1, 137]), st.integers(1, 50))
def test_a_driver_that_dies_is_started_again_ever_later_and_not_for_ever(status: str, code: int, deaths: int) -> None:
    verdict = judge(status, code, deaths)
    if deaths <= RESTARTS:
        assert verdict.again == min(FIRST_PAUSE * 2 ** (deaths - 1), LONGEST_PAUSE)
        assert not verdict.reason
    else:
        assert verdict.again is None
        mentions(verdict.reason, deaths)


def test_others_do_not_take_a_job_for_lost_while_its_driver_is_to_be_started_again() -> None:
    assert 2 * LONGEST_PAUSE <= LOST_AFTER


def test_what_is_wrong_is_not_tried_again() -> None:
    verdict = judge("InProgress", 2, 1, "error: no job named 'x'")
    assert verdict.again is None
    mentions(verdict.reason, "driver", "no job named 'x'")
    assert "error: " not in verdict.reason


def test_the_signal_is_named() -> None:
    mentions(judge("InProgress", -9, RESTARTS + 1).reason, "SIGKILL")
