"""Communication and profiles on a job's page, and in a line."""

from __future__ import annotations

from hpo.report.pictures.workers import communication, shares
from hpo.text import communication_share, details_text
from tests.support.hpo.report.communication import (
    PROFILE,
    data,  # noqa: F401  # Fixtures.
    measured,
)
from tests.support.refusals import mentions


def test_shares_are_told_by_workers_and_trial(data):
    found = shares(data)
    assert list(found) == [2, 4]
    assert {share for of in found.values() for share in of.values()} == {0.25, 0.75}
    figure = communication(data)
    mentions(figure.title, 4, "75%")
    assert [trace.name for trace in figure.interactive.data] == ["2 workers", "4 workers"]
    (axes,) = figure.still().axes
    assert len(axes.patches) == len(data.trials)


def test_a_line_tells_the_share_and_the_bytes():
    details = {"communication": measured(2, 0.25)}
    mentions(details_text(details), "communication", "25.0%", "2.5 MB")
    both = details_text({**details, "profile": PROFILE, "units_by_workers": {"2": 9}})
    mentions(both, "25.0%", "bucket/job/job-003/profile.json.gz", "units_by_workers", "2 9")
    assert "SECRET" not in both
    long = {"staleness": {str(number): 1 for number in range(40)}}
    assert details_text({**details, **long}) == details_text(details)
    assert details_text({}) == details_text({"communication": {}}) == ""


def test_without_steps_there_is_no_share():
    assert communication_share({}) is None
    assert communication_share({"step_seconds": {"0": 0.0}, "waiting_seconds": {"0": 0.0}}) is None
