"""What a report reads of a job, whatever has become of it."""

from dataclasses import replace

import pytest

from hpo.report.data import JobData
from hpo.report.figures import job_figures
from tests.support.records import made_up


def nothing() -> JobData:
    data = made_up()
    return JobData(job=replace(data.job, plan={}, summary={}), reports={})


@pytest.mark.parametrize(
    "data",
    [
        nothing(),
        made_up(ended=False),
        made_up(trials=1, resource=1),
        replace(made_up(), ledger=()),
        replace(made_up(), reports={}),
        replace(made_up(), untuned=None),
        made_up(trials=2, hostile=True),
        replace(made_up(), trials=tuple(trial for trial in made_up().trials if trial.status == "Failed")),
    ],
    ids=["empty", "running", "one", "no ledger", "no reports", "no un-tuned", "two", "all failed"],
)
def test_whatever_is_missing_is_left_out(data, tmp_path):
    for figure in job_figures(data):
        assert figure.title
        assert figure.note
        assert "nan" not in figure.title.lower().split()
        figure.still()
        figure.interactive.to_json()
