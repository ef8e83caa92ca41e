"""Trials that need gangs of several sizes: all are served, within the room there is, and decided as with one size."""

from __future__ import annotations

from ray.train import ScalingConfig

from hpo import CategoricalParameter, ContinuousParameter, IntegerParameter
from hpo.cost.limits import Limits
from hpo.jobs.checks import gang_sizes
from hpo.search.trial import PROBE
from tests.support.hpo.jobs.sizes import sized, watched
from tests.support.simulated import PLAN, Draws
from trainers.pytorch.allreduce_trainer import TorchTrainer


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


def test_a_stop_leaves_nothing_waiting() -> None:
    controller, _, _ = watched(sized(2, 4), room=5, parallel=2, limits=Limits(max_seconds=60.0))
    assert controller.stopped
    assert all(run.trial.is_finished() for run in controller.runs.values())
