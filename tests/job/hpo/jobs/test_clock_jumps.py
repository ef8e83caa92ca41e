"""A wall clock that is set while a job runs: nothing that is measured follows it."""

from __future__ import annotations

import ast
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from ray.train import ScalingConfig

from hpo.jobs.run import Job
from hpo.jobs.stop_signals import Interrupts
from hpo.observers.progress import Goal, Progress
from hpo.record.store import JobRow, LedgerRow, Store
from hpo.search.simulated_gangs import SimulatedGangs
from hpo.strategies.hyperband import lay_out
from hpo.strategies.random_strategy import at_random
from hpo.strategies.strategy import Task
from tests.support.drivers import METRIC, Disturbance
from tests.support.driving import CHANNELS, Counting, row, tuner
from tests.support.hpo.jobs.clock_jumps import (
    HOUR,
    JUMPS,
    Wall,
    wall,  # noqa: F401  # Fixtures.
)
from tests.support.job_life import LOST, SPEC, World
from tests.support.job_search import RANGES, Aim
from tests.support.simulated import WORKERS, rising, search_of
from trainers import XGBoostTrainer, steady
from trainers.gangs.messages import Event

ROOT = Path(__file__).parents[4]


def bills(folder: Path) -> list[LedgerRow]:
    with Store(f"sqlite:///{folder}/record.db") as store:
        return store.ledger("job")


def check(folder: Path, began: float, workers: int) -> None:
    """What the record of a job that began at `began`, by the monotonic clock, says of its seconds."""
    took = time.monotonic() - began
    summary = row(folder).summary
    [[first, last]] = summary["runs"]
    assert 0.0 <= last - first <= took
    assert 0.0 < summary["first_step_seconds"] <= summary["wall_seconds"] <= took
    billed = bills(folder)
    assert 0.0 < sum(bill.worker_seconds for bill in billed) <= took * workers
    assert sum(summary["worker_seconds"].values()) <= took * workers
    assert all(first <= bill.at <= last for bill in billed)
    with Store(f"sqlite:///{folder}/record.db") as store:
        assert all(first <= trial.started_at <= trial.ended_at <= last for trial in store.trials("job"))
        assert all(first <= report.at <= last for report in store.reports("job"))


@JUMPS
@pytest.mark.parametrize("at", [1, 20])
def test_a_job_in_hand_is_billed_what_it_took(wall: Wall, tmp_path: Path, at: int, seconds: float) -> None:
    began = time.monotonic()
    tuner(tmp_path, (Counting(at, lambda: setattr(wall, "ahead", seconds)),)).fit(CHANNELS, job_name="job")
    assert row(tmp_path).status == "Completed"
    check(tmp_path, began, workers=1)


class Real(SimulatedGangs):
    """Gangs that train nothing, on the clock that real gangs have; before one of their events something happens."""

    def __init__(self, at: int, act: Callable[[], None]) -> None:
        super().__init__(rising, metric="validation:auc", start_seconds=0.01, unit_seconds=lambda assignment: 0.002)
        self.now, self.at, self.act, self.heard = steady.now(), at, act, 0
        self.began = self.now - time.monotonic()
        self.recycled: list[str] = []

    def events(self, timeout: float) -> Sequence[Event]:
        if self.heard == self.at:
            self.act()
        self.heard += 1
        events = super().events(timeout)
        time.sleep(max(0.0, self.now - self.began - time.monotonic()))
        self.now = max(self.now, self.began + time.monotonic())
        return events

    def recycle(self, gang: str, reason: str) -> None:
        self.recycled.append(gang)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(aim=Aim(plan=lay_out(9, 1, 9)), root=tmp_path / "world")
    yield made
    made.close()


@JUMPS
def test_gangs_that_are_at_work_are_neither_recycled_nor_billed_for_it(
    wall: Wall, tmp_path: Path, seconds: float
) -> None:
    began = time.monotonic()  # Before the clock of the gangs, which the bill goes by.
    gangs = Real(12, lambda: setattr(wall, "ahead", seconds))

    class OnThem(XGBoostTrainer):
        @contextmanager
        def gangs(self, *_: Any, **options: Any) -> Iterator[Any]:
            yield gangs

    plan, url = lay_out(9, 1, 9), f"sqlite:///{tmp_path}/record.db"
    search = search_of(plan, parallel=3, seed=7, storage_path=str(tmp_path / "models"))
    with Store(url) as store:
        store.create_job(JobRow(name="job", created_at=time.time(), spec={**SPEC, "storage_path": search.storage_path}))
    goal = Goal(job="job", metric=METRIC, objective_type="Maximize", objective_value="last", plan=plan)
    with Interrupts(print) as interrupts:
        ended = Job(
            search=search,
            strategy=at_random(Task(plan=plan, ranges=RANGES, metric=METRIC, mode="max", seed=search.seed)),
            ranges=RANGES,
            estimator=OnThem(scaling=ScalingConfig(num_workers=0), hyperparameters={"objective": "binary:logistic"}),
            channels={},
            store=url,
            watcher=Progress(goal, print),
            notify=print,
            interrupts=interrupts,
        ).run()
    assert ended.status == "Completed"
    assert gangs.gangs == 3
    assert gangs.heard > 12
    assert not gangs.recycled
    check(tmp_path, began, workers=gangs.gangs * WORKERS)


@JUMPS
def test_what_a_driver_held_when_it_died_is_billed_until_then(world: World, seconds: float) -> None:
    """It was last heard of by the database's clock, which was set since it had begun."""

    def jump() -> None:
        world.skew += seconds

    world.drive(Disturbance(acts={(6, 0): jump, (12, 0): lambda: world.kill(heard=True)}))
    world.now += LOST + HOUR
    world.drive(Disturbance())
    world.check()
    assert world.rows()[0].status == "Completed"


DATES = {
    "hpo/jobs/launch/background.py": "the end of a job that nobody drives",
    "hpo/jobs/launch/supervisor.py": "the end of a job that nobody drives",
    "hpo/jobs/begin.py": "when a job was asked for",
    "hpo/observers/job_log.py": "a line's date in Ray's logs",
    "hpo/notices/webhook.py": "when it was sent, which its receiver compares with a clock of its own",
    "hpo/serve/aws/keys.py": "when a key was made",
    "hpo/serve/deployments/asked.py": "when a deployment was asked for",
    "hpo/serve/deployments/files.py": "the age of a deployment whose process has not begun yet",
    "hpo/serve/deployments/process.py": "when a deployment was asked for",
    "hpo/serve/security/codes.py": "a code's end, which has to hold in another process too",
    "hpo/serve/security/expiring.py": "the end of codes and of sessions that were ended, likewise",
    "hpo/serve/security/sessions.py": "a session's end, which has to hold in another process too",
    "hpo/serve/security/tokens.py": "when a token was made",
    "hpo/trackers/mlflow.py": "dates in another program's record",
    "hpo/trackers/registry.py": "dates in another program's record",
    "hpo/trackers/tensorboard.py": "dates in another program's record",
    "hpo/trackers/tracker.py": "dates in another program's record",
    "trainers/script/process.py": "the age of a file, which has a date; a clock that was set makes it an old one",
    "trainers/script/metric_lines.py": "compared with the times of checkpoint files, which the node's clock stamps",
    "trainers/script/units.py": "likewise, when the program was started",
    "trainers/steady.py": "the one moment that the steady clock begins with",
}
"""The modules that read the wall clock, and for what: shown, and subtracted from files' dates alone."""


def test_the_wall_clock_is_read_for_dates_alone() -> None:
    reading = set()
    for path in [*(ROOT / "hpo").rglob("*.py"), *(ROOT / "trainers").rglob("*.py")]:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute) and ast.unparse(node) in ("time.time", "time.time_ns"):
                reading.add(str(path.relative_to(ROOT)))
    assert reading == DATES.keys()
