"""Trials that need gangs of several sizes: all are served, within the room there is, and decided as with one size."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import pytest
from hypothesis import example, given, settings, strategies as st
from ray.train import ScalingConfig

from hpo import CategoricalParameter, ContinuousParameter, IntegerParameter
from hpo.cost.limits import Limits
from hpo.jobs.checks import gang_sizes
from hpo.search.controller import Controller
from hpo.search.simulated_gangs import SimulatedGangs
from hpo.search.trial import PROBE
from hpo.strategies.hyperband import lay_out, run_all
from hpo.strategies.scheduler import SynchronousHyperBandScheduler
from tests.support.assignments import segment
from tests.support.simulated import METRIC, PLAN, Draws, Kept, outcome, search_of, simulate
from trainers.gangs.messages import Assignment, Event, GangLost, GangUp, Report, Segment, Served
from trainers.gangs.program import WorkerContext, never
from trainers.gangs.ray_gangs import RayGangs
from trainers.pytorch.allreduce_trainer import TorchTrainer


def sized(*sizes: int):  # type: ignore[no-untyped-def]
    """The gang of a configuration: one of these sizes, by its eta; the first for the static one."""
    return lambda hyperparameters: sizes[int(hyperparameters.get("eta", 0.0) * len(sizes))]


class Watched(SimulatedGangs):
    """Simulated gangs that look at what is asked of them, and keep an account of their own."""

    workers: Any
    room: int

    def __init__(self, *arguments: Any, room: int | None = None, **options: Any) -> None:
        super().__init__(*arguments, room=room, **options)
        self.limit = room
        self.used: dict[str, tuple[float, int]] = {}
        self.uses = 0
        self.busy: set[str] = set()
        self.most_at_once = 0
        self.held: dict[str, tuple[int, float]] = {}
        self.billed = 0.0

    def want(self, sizes: Mapping[int, int], seconds_left: float | None) -> Collection[str]:
        idle = {gang: when for gang, when in self.used.items() if gang not in self.busy}
        gone = list(super().want(sizes, seconds_left))
        assert self.limit is None or sum(self.sizes.values()) <= self.limit
        for gang in gone:
            assert idle.pop(gang) == min([*idle.values(), self.used[gang]]), "another was idle for longer"
            del self.used[gang]
            workers, since = self.held.pop(gang)
            self.billed += workers * (self.now - since)
        for gang, workers in self.sizes.items():
            self.held.setdefault(gang, (workers, self.now))
        return gone

    def assign(self, gang: str, assignment: Assignment) -> None:
        assert self.sizes[gang] == self.workers(assignment.hyperparameters)
        assert gang not in self.busy
        self.busy.add(gang)
        self.most_at_once = max(self.most_at_once, len(self.busy))
        super().assign(gang, assignment)

    def events(self, timeout: float) -> Sequence[Event]:
        events = super().events(timeout)
        for event in events:
            if isinstance(event, GangLost):
                self.busy.discard(event.gang)
                del self.used[event.gang]  # It serves nothing, and is not idle until it is back.
            elif isinstance(event, GangUp | Served):
                self.uses += 1
                self.used[event.gang] = (self.now, self.uses)
                self.busy.discard(event.gang)
        return events

    def close(self, *, now: bool = False) -> None:
        self.billed += sum(workers * (self.now - since) for workers, since in self.held.values())
        self.held.clear()


def watched(workers: Any, **options: Any) -> tuple[Any, Watched, Any]:
    kind = type("Sized", (Watched,), {"workers": staticmethod(workers)})
    return simulate(workers=workers, gangs=kind, **options)


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.integers(1, 5), min_size=1, max_size=4),
    st.integers(0, 8),
    st.integers(1, 40),
    st.integers(1, 6),
    st.frozensets(st.integers(0, 60), max_size=2),
    st.booleans(),
)
@example([2, 1], 2, 23, 2, frozenset({33}), False)
def test_any_mix_of_sizes_is_served_within_the_room_and_decided_as_one_size_is(
    sizes: list[int], more: int, jobs: int, parallel: int, losses: frozenset[int], probe: bool
) -> None:
    plan = lay_out(jobs, 1, 27)
    options: dict[str, Any] = {"plan": plan, "parallel": parallel, "losses": losses, "probes": (1, 5) if probe else ()}
    controller, gangs, _ = watched(sized(*sizes), room=max(sizes) + more, **options)
    assert all(run.trial.is_finished() and not run.failure for run in controller.runs.values())
    assert controller.untuned.resource == 27
    assert gangs.most_at_once <= parallel
    assert controller.ledger.total == pytest.approx(gangs.billed)
    assert outcome(controller) == outcome(simulate(**{**options, "losses": frozenset()})[0])


def test_gangs_of_each_size_are_kept_where_there_is_room() -> None:
    controller, gangs, _ = watched(sized(1, 2, 4), room=7, parallel=1)
    assert (gangs.gangs, gangs.released) == (3, [])
    assert set(gangs.sizes.values()) == {1, 2, 4}
    assert controller.ledger.gangs == 3


def test_where_there_is_not_the_longest_idle_goes() -> None:
    _, gangs, _ = watched(sized(1, 2, 4), room=6, parallel=1)
    assert gangs.gangs > 3
    assert len(gangs.released) == gangs.gangs - len(gangs.sizes)


def test_one_size_starts_what_it_always_did() -> None:
    _, gangs, _ = watched(sized(3), parallel=4)
    assert (gangs.gangs, gangs.released) == (4, [])
    _, gangs, _ = watched(sized(3), parallel=4, room=8)
    assert (gangs.gangs, gangs.released) == (2, [])


def test_the_probe_and_the_untuned_run_have_the_static_size() -> None:
    controller, gangs, record = watched(sized(2, 4), room=4, parallel=2, probes=(1, 5))
    assert gangs.served[0].trial_id == PROBE
    assert record.probed == [5]
    assert controller.untuned.workers == 2


def test_a_trial_that_waits_for_its_gang_takes_a_place_and_is_drawn_once() -> None:
    """Of two places one waits for a gang of 4 beside a busy gang of 3, with room for no more."""
    searcher = Draws()
    controller, gangs, _ = watched(sized(3, 4), room=5, parallel=2, searcher=searcher)
    assert searcher.suggested == PLAN.trials
    assert gangs.most_at_once == 1
    assert len({run.id for run in controller.runs.values()}) == PLAN.trials


def nothing(context: object) -> None:
    pass


def test_the_sizes_of_gangs_are_what_ranges_allow() -> None:
    trainer = TorchTrainer(nothing, scaling=ScalingConfig(num_workers=2), hyperparameters={"per_worker_batch_size": 8})
    learning = {"lr": ContinuousParameter(0.01, 1)}
    assert gang_sizes(trainer, learning) == (2, 2)
    assert gang_sizes(trainer, {**learning, "num_workers": IntegerParameter(1, 6)}) == (1, 6)
    assert gang_sizes(trainer, {"num_workers": CategoricalParameter([4, 1])}) == (1, 4)
    assert gang_sizes(trainer, {"num_workers": CategoricalParameter([1])}) == (1, 2)  # The un-tuned run's.
    assert trainer.logical_cpus(3, 6) == 18
    in_hand = TorchTrainer(nothing, scaling=ScalingConfig(num_workers=0), hyperparameters={"per_worker_batch_size": 8})
    assert gang_sizes(in_hand, learning) == (1, 1)


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


@pytest.mark.ray
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


def test_a_stop_leaves_nothing_waiting() -> None:
    controller, _, _ = watched(sized(2, 4), room=5, parallel=2, limits=Limits(max_seconds=60.0))
    assert controller.stopped
    assert all(run.trial.is_finished() for run in controller.runs.values())
