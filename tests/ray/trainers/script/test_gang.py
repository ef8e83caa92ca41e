"""Programs as trials on gangs of two: ranks that fail or hang, a worker that is killed, and torchrun."""

from __future__ import annotations

import os
import signal
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.gangs import Pool
from tests.support.refusals import mentions
from tests.support.rows import until
from tests.support.script_programs import running
from tests.support.trainers.script.gang import (
    ACCURACY,
    assignment,
    pool,  # noqa: F401  # Fixtures.
    served,
)
from trainers import ScriptTrainer
from trainers.gangs import found
from trainers.gangs.messages import GangLost, Progress


def test_a_program_of_two_ranks_is_paused_and_goes_on(pool: Pool, tmp_path: Path) -> None:
    first = served(pool, assignment(tmp_path, 2))
    second = served(pool, assignment(tmp_path, 6, first))
    steps = [(report.step, report.metrics["validation:accuracy"]) for report in (*first.reports, *second.reports)]
    assert steps == [(step, step / 10) for step in range(1, 7)]
    assert running("ranks.py") == []


@pytest.mark.parametrize(
    ("mode", "names"),
    [
        ("fail", ("ranks.py", "worker 1", "ValueError: no third epoch")),
        ("hang", ("ranks.py", "5 s", "report_timeout_s")),
    ],
)
def test_one_rank_that_breaks_ends_the_trial_and_not_the_gang(
    pool: Pool, tmp_path: Path, mode: str, names: tuple[str, ...]
) -> None:
    (gang,) = pool.up
    answer = pool.serve(gang, assignment(tmp_path, 6, mode=mode))
    mentions(answer.error.partition("\n")[0], *names)
    assert [report.step for report in answer.reports] == [1, 2]
    log = found(answer.logs)[1]
    assert log.name == ("trial.worker-1.log" if mode == "fail" else "trial.log")
    assert ("ValueError: no third epoch" if mode == "fail" else "acc=0.2") in log.read_text()
    assert running("ranks.py") == []
    assert served(pool, assignment(tmp_path, 1)).reached == 1


def test_the_output_of_another_worker_does_not_count_and_the_user_is_told(pool: Pool, tmp_path: Path) -> None:
    (gang,) = pool.up
    answer = pool.serve(gang, assignment(tmp_path, 6, mode="loud"))
    assert answer.segment is not None, answer.error
    assert [report.metrics["validation:accuracy"] for report in answer.segment.reports] == [n / 10 for n in range(1, 7)]
    mentions(answer.segment.details["warnings"]["other_ranks"], "worker 1", "'validation:accuracy'", "rank 0")
    own = found(answer.logs)[1]
    assert "acc=0.6" in own.read_text()
    assert "acc=6" in own.with_name("trial.worker-1.log").read_text()


def test_a_worker_that_is_killed_leaves_no_process(pool: Pool, tmp_path: Path) -> None:
    (gang,) = pool.up
    pool.gangs.assign(gang, assignment(tmp_path, 1000, epochs=1000))
    pool.until(lambda event: isinstance(event, Progress))
    assert len(running("ranks.py")) == 2
    os.kill(pool.up[gang].pids[1], signal.SIGKILL)
    pool.until(lambda event: isinstance(event, GangLost))
    until(lambda: not running("ranks.py"))
    pool.up.clear()
    pool.start(1)
    assert served(pool, assignment(tmp_path, 2)).reached == 2


def test_a_worker_that_is_killed_leaves_no_program_that_stands_at_its_rung(pool: Pool, tmp_path: Path) -> None:
    first = served(pool, replace(assignment(tmp_path, 2, epochs=1000), goes_on=True))
    assert len(running("ranks.py")) == 2
    (gang,) = pool.up
    os.kill(pool.up[gang].pids[0], signal.SIGKILL)
    pool.until(lambda event: isinstance(event, GangLost))
    until(lambda: not running("ranks.py"))
    pool.up.clear()
    pool.start(1)
    second = served(pool, assignment(tmp_path, 6, first, epochs=1000))
    steps = [(report.step, report.metrics["validation:accuracy"]) for report in (*first.reports, *second.reports)]
    assert steps == [(step, step / 10) for step in range(1, 7)]


def test_workers_have_the_runtime_environment_of_their_trainer(ray_cluster: None, tmp_path: Path) -> None:
    (tmp_path / "mark.py").write_text("import os\nprint('acc=' + os.environ['MARK'])\n")
    trainer = ScriptTrainer(
        "mark.py",
        source_dir=tmp_path,
        hyperparameters={"epochs": 1},
        metric_definitions=[ACCURACY],
        runtime_env={"env_vars": {"MARK": "0.25"}},
    )
    assert trainer.fit({}, storage_path=str(tmp_path / "runs")).metrics == {"validation:accuracy": 0.25}
    assert ScriptTrainer(**{**trainer.arguments, "scaling": trainer.scaling}).runtime_env == trainer.runtime_env
