"""Trials that need gangs of several sizes: all are served, within the room there is, and decided as with one size."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from ray.train import ScalingConfig

from hpo.search.controller import Controller
from hpo.strategies.hyperband import run_all
from hpo.strategies.scheduler import SynchronousHyperBandScheduler
from tests.support.assignments import segment
from tests.support.simulated import METRIC, Draws, Kept, search_of
from trainers.gangs.messages import Assignment, Report, Segment
from trainers.gangs.program import WorkerContext, never
from trainers.gangs.ray_gangs import RayGangs


class Tells:
    """A program that reports how many it is trained by."""

    def __init__(self, placed_for: int) -> None:
        self._placed_for = placed_for
        self._workers = 0

    def open(self, context: WorkerContext) -> dict[str, float]:
        self._workers = context.world_size
        return {}

    def train(
        self, assignment: Assignment, on_report: Callable[[Report], None], halted: Callable[[], bool] = never
    ) -> Segment:
        assert self._placed_for == self._workers == assignment.hyperparameters["num_workers"]
        report = Report(step=1, metrics={METRIC: float(self._workers)})
        on_report(report)
        return segment(report, checkpoint=assignment.save_to, training_seconds=0.1, first_step_at=time.time())

    def close(self) -> None:
        pass


class Sizes(Draws):
    """Suggests two trials on one worker, and then two on two."""

    def suggest(self, trial_id: str) -> dict[str, Any]:
        return {"num_workers": 1 if int(trial_id[-3:]) < 2 else 2}


def test_on_ray_a_gang_goes_for_one_of_another_size_where_there_is_room_for_one(ray_cluster: None) -> None:
    gangs = RayGangs("sizes", Tells, ScalingConfig(resources_per_worker={"CPU": 6}))  # Of 16: one or two workers.
    record = Kept()
    controller = Controller(
        search_of(
            run_all(4, 1),
            parallel=1,
            name="sizes",
            static={"num_workers": 1},
            workers=lambda hyperparameters: int(hyperparameters["num_workers"]),
            untuned=False,
        ),
        searcher=Sizes(),
        scheduler=SynchronousHyperBandScheduler(run_all(4, 1), metric=METRIC, mode="max"),
        decode=dict,
        gangs=gangs,
        record=record,
    )
    controller.run()
    assert {run.failure for run in controller.runs.values()} == {""}
    assert [run.value for run in controller.runs.values()] == [1.0, 1.0, 2.0, 2.0]
    assert controller.ledger.gangs == 2
    billed = {entry.gang for entry in record.entries if entry.trial_id}
    assert len(billed) == 2
