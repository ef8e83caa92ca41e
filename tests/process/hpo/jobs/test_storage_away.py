"""Jobs whose models' storage goes away, and resumes that fail early: nothing is lost, and the answer is the same."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from hpo.record.store import Store
from tests.support import driving
from tests.support.driving import answer
from tests.support.hpo.jobs.storage_away import (
    models,
    quick,  # noqa: F401  # Of every test.
    resume,
    stopped,
    undisturbed,  # noqa: F401  # Fixtures.
)
from tests.support.processes import python

IMPATIENT = """
from hpo.cli import main
from trainers.cluster import head
head.ANSWER_SECONDS = 2.0
main()
"""
"""The command, which asks for a head for 2 s instead of 30."""


def test_a_resume_that_finds_no_head_removes_no_model(tmp_path: Path, undisturbed: dict[str, Any]) -> None:
    stopped(tmp_path)
    before, summary = models(tmp_path), driving.row(tmp_path).summary
    with Store(f"sqlite:///{tmp_path}/record.db") as store:
        spec = store.job("job").spec
        in_hand = {**spec["estimator"], "scaling": {**spec["estimator"]["scaling"], "num_workers": 2}}
        store.update_job("job", spec={**spec, "estimator": in_hand})
    command = ("-c", IMPATIENT, "resume", "job", "--store", f"sqlite:///{tmp_path}/record.db")
    ended = python(*command, environment={**os.environ, "RAY_ADDRESS": "127.0.0.1:6399"})
    assert ended.returncode != 0
    assert "6399" in ended.stdout + ended.stderr
    assert models(tmp_path) == before
    kept = driving.row(tmp_path).summary
    assert {**kept, "runs": 0, "forecast": 0} == {**summary, "runs": 0, "forecast": 0}
    with Store(f"sqlite:///{tmp_path}/record.db") as store:
        store.update_job("job", spec=spec)
    resume(tmp_path)
    assert answer(tmp_path, "job") == undisturbed
