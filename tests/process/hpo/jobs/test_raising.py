"""Limits that are raised where a job is resumed: by the command and from Python, and what is refused."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hpo import HyperparameterTuner
from hpo.jobs.launch import background, supervisor
from hpo.jobs.raising import RAISED
from tests.support.driving import CHANNELS, row, tuner
from tests.support.hpo.jobs.raising import (
    Command,
    found,
    hpo,  # noqa: F401  # Fixtures.
)
from tests.support.lines import line_with
from tests.support.refusals import mentions, refuses
from tests.support.rows import until
from trainers import ConfigurationError


@pytest.mark.parametrize("waits", [True, False])
def test_another_process_that_refuses_to_run_raises_nothing_however_late(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], waits: bool
) -> None:
    """Completed, with the copies of its rows gone: nobody could go on with it, or have it Completed again."""
    tuner(tmp_path, max_jobs=5).fit(CHANNELS, job_name="job")
    before, store = row(tmp_path), f"sqlite:///{tmp_path}/record.db"
    made = HyperparameterTuner.attach("job", store=store)
    if waits:
        with refuses(ConfigurationError, field=("job", "channel", "train"), remedy="resume(inputs=...)"):
            made.resume(wait=False, max_jobs=9)
    else:
        monkeypatch.setattr(background, "START_SECONDS", 0.0)
        made.resume(wait=False, max_jobs=9)
        said = capsys.readouterr().out
        begun = re.search(r"\bprocess (\d+)", said)
        assert begun, said
        until(lambda: bool(supervisor.failure("job", int(begun[1]))))
        mentions(supervisor.log_file("job").read_text(), "channel", "train", "resume(inputs=...)")
    assert row(tmp_path) == before


def test_another_process_that_takes_the_job_up_raises_its_limits(hpo: Command) -> None:
    hpo.tune()
    made = HyperparameterTuner.attach("job")
    made.resume(wait=False, max_jobs=9)
    made.wait()
    job, trials = found()
    assert (job.status, len(trials), job.spec["max_jobs"]) == ("Completed", 9, 9)
    assert [entry["max_jobs"] for entry in job.spec[RAISED]] == [[5, 9]]
    line_with(supervisor.log_file("job").read_text(), "job", "max_jobs", "5", "9")
    with refuses(ConfigurationError, field="job", value="Completed"):
        made.resume(wait=False, max_jobs=9)
    with refuses(ConfigurationError, field=("max_jobs", "job"), value=7, remedy="9"):
        made.resume(wait=False, max_jobs=7)
