"""Workers that a probe chooses: the fewest that are about as fast as any, and why; what is given is never overruled."""

from __future__ import annotations

from contextlib import contextmanager

import numpy as np
import pytest

from hpo import CategoricalParameter, ContinuousParameter, HyperparameterTuner
from hpo.forecasts import gang_size
from hpo.forecasts.gang_size import HERE, Way, chosen_workers, fastest, left_to_probe, served, sizes
from hpo.forecasts.one_worker import NotMeasured, OneWorker
from hpo.jobs import sized
from tests.support.networks import assignment, data, train_exactly
from tests.support.refusals import mentions, refuses
from trainers import ParameterServerTrainer, ScalingConfig, TorchTrainer, XGBoostTrainer
from trainers.errors import ConfigurationError, TrialError
from trainers.gangs import GangEnded, GangUp, Report, Segment, Served, StorageAway

GANG = ScalingConfig(num_workers=3)


def trainer(workers="auto", scaling=GANG, **words):
    words = {"num_workers": workers, "epochs": 2, **words}
    return TorchTrainer(train_exactly, scaling=scaling, hyperparameters=words, metrics=["train:x"])


def chosen(estimator, at_once=1, missing=None, say=print):
    left = left_to_probe(estimator, {})
    made, choices = chosen_workers(estimator, left, missing or {}, {}, at_once, say)
    return made, *choices


def test_more_workers_have_to_be_worth_it():
    def of(**seconds):
        return fastest({Way(int(name[1:])): took for name, took in seconds.items()}).workers

    assert of(w0=1.0, w1=1.2, w2=0.95, w4=0.91) == HERE
    assert of(w0=1.0, w1=1.2, w2=0.85, w4=0.8) == 2
    assert of(w1=1.0, w2=1.1, w4=0.6, w8=0.55) == 4
    assert of(w2=1.0) == 2
    both = {Way(2, 0, "shard=1"): 1.0, Way(2, 1, "shard=2"): 0.95}
    assert fastest(both).layout == "shard=1"
    assert fastest({**both, Way(2, 1, "shard=2"): 0.8}).layout == "shard=2"


def test_sizes_double_up_to_what_there_is_room_for():
    assert [sizes(most) for most in (1, 2, 7, 8)] == [[1], [1, 2], [1, 2, 4], [1, 2, 4, 8]]


class Measured:
    """Times in the place of gangs."""

    def __init__(self, monkeypatch, most, times, here=1.0):
        self.asked = []

        @contextmanager
        def room(estimator, at_once):
            yield most

        def on_gang(estimator, channels, workers):
            assert estimator.workers_for(estimator.hyperparameters) == workers
            layout = estimator.hyperparameters.get("layout")
            way = (workers, layout) if layout else workers
            self.asked.append(way)
            if isinstance(times[way], str):
                raise TrialError(times[way])
            return times[way]

        def measured_here(estimator, channels, *, asked):
            assert asked
            assert estimator.in_hand
            self.asked.append(HERE)
            if isinstance(here, str):
                return NotMeasured(reason=here)
            return OneWorker(
                rows=1, features=1, part=1, load=0.0, threads=2, a_round=here, worker_threads=2, a_worker_round=here,
                an_assignment=0.0, cold=False,
            )  # fmt: skip

        monkeypatch.setattr(gang_size, "_room", room)
        monkeypatch.setattr(gang_size, "_on_gang", on_gang)
        monkeypatch.setattr(gang_size, "measure_here", measured_here)


def test_the_fastest_is_taken_and_said(monkeypatch):
    measured = Measured(monkeypatch, 4, {1: 1.5, 2: 0.7, 4: 0.4})
    said = []
    made, choice = chosen(trainer(), say=said.append)
    assert measured.asked == [HERE, 1, 2, 4]
    assert (made.workers_for(made.hyperparameters), made.scaling) == (4, GANG)
    assert (choice.name, choice.chosen) == ("num_workers", "4")
    ways = ("1 s", "1.5 s", "1 worker", "0.7 s", "2 workers", "0.4 s", "4 workers")
    mentions(choice.why, "epoch", "process", *ways)
    assert len(said) == 1


def test_no_larger_gang_is_measured_once_one_is_slower(monkeypatch):
    measured = Measured(monkeypatch, 16, {1: 1.0, 2: "out of memory", 4: 1.1})
    made, _ = chosen(trainer(), 2)
    assert measured.asked == [1, 2, 4]
    assert made.workers_for(made.hyperparameters) == 1


def test_this_process_is_taken_where_gangs_are_no_faster(monkeypatch):
    Measured(monkeypatch, 2, {1: 1.5, 2: 0.95})
    made, choice = chosen(trainer())
    assert made.in_hand
    assert made.hyperparameters["num_workers"] is None
    assert choice.chosen == "0"


def test_trials_beside_each_other_train_on_gangs(monkeypatch):
    measured = Measured(monkeypatch, 2, {1: 1.0, 2: 0.95})
    made, choice = chosen(trainer(), 4)
    assert measured.asked == [1, 2]
    assert made.workers_for(made.hyperparameters) == 1
    mentions(choice.why, "2 workers", "4 trials")


def test_what_cannot_be_measured_is_said_and_left_out(monkeypatch):
    measured = Measured(monkeypatch, 4, {1: "out of memory", 2: 0.7, 4: 0.1}, here="it is too large")
    made, choice = chosen(trainer(global_batch_size=6))
    assert measured.asked == [HERE, 1, 2]  # Six rows are not divided by four.
    assert made.workers_for(made.hyperparameters) == 2
    mentions(choice.why, "process", "it is too large", "1 worker", "out of memory")
    Measured(monkeypatch, 1, {1: "out of memory"}, here="it is too large")
    with refuses(TrialError, field="num_workers", value="auto", remedy="it is too large"):
        chosen(trainer())


class Events:
    """A gang that says what it is told to, one thing after another."""

    def __init__(self, *said):
        self.said, self.assigned = list(said), []

    def want(self, sizes, seconds_left):
        assert sizes == {2: 1}

    def events(self, timeout):
        return [self.said.pop(0)] if self.said else []

    def assign(self, gang, assignment):
        self.assigned.append(assignment)


UP = GangUp(gang="probe", workers=2, incarnation="1", pids=(1,), nodes=("n",))


def test_a_gang_serves_one_assignment_after_the_other(tmp_path):
    first, second = (assignment(tmp_path, stop=stop) for stop in (1, 2))
    done = [Served(gang="probe", trial_id="trial", segment=segment(seconds)) for seconds in (9.0, 3.0)]
    gangs = Events(UP, done[0], StorageAway(gang="probe", reason=""), done[1])
    assert served(gangs, [first, second], 2, 60.0).training_seconds == 3.0
    assert gangs.assigned == [first, second]


@pytest.mark.parametrize(
    "said",
    [
        Served(gang="probe", trial_id="trial", error="no such thing"),
        GangEnded(gang="probe", error="no such thing"),
        StorageAway(gang="probe", reason="no such thing"),
    ],
)
def test_what_goes_wrong_on_a_gang_is_said(tmp_path, said):
    with refuses(TrialError, value="no such thing"):
        served(Events(UP, said), [assignment(tmp_path)], 2, 60.0)
    with refuses(TrialError, field="gang", value="0.05 s", remedy="2 workers"):
        served(Events(), [assignment(tmp_path)], 2, 0.05)


def segment(seconds):
    return Segment(
        reports=(Report(step=1, metrics={}),), checkpoint="c", training_seconds=seconds, checkpointing_seconds=0.0,
        first_step_at=0.0,
    )  # fmt: skip


@pytest.mark.parametrize("workers", [None, 1, 2])
def test_a_number_is_never_overruled(workers):
    assert left_to_probe(trainer(workers), {}) == ()
    assert left_to_probe(trainer(), {"num_workers": CategoricalParameter([1, 2])}) == ()
    assert left_to_probe(trainer(), {"lr": ContinuousParameter(0.1, 1.0)}) == ("num_workers",)


def test_where_nobody_chooses_it_is_refused():
    with refuses(ConfigurationError, field="num_workers", value="auto", remedy=("probe", "fit()", "number")):
        trainer().fit({"train": data(8)})
    with refuses(ConfigurationError, field="num_workers", value="auto", remedy=("ScalingConfig(num_workers=0)", "1")):
        trainer(scaling=ScalingConfig(num_workers=0))
    with refuses(ConfigurationError, field="num_workers", value="most", remedy=("whole", "1")):
        trainer("most")
    boosting = XGBoostTrainer(scaling=GANG, hyperparameters={"num_workers": "auto", "eval_metric": "auc"})
    assert left_to_probe(boosting, {}) == ("num_workers",)


def test_layouts_of_a_number_of_workers_that_is_given_are_compared(monkeypatch):
    measured = Measured(monkeypatch, 8, {(4, "shard=1"): "out of memory", (4, "shard=4"): 1.0, (4, "shard=2"): 0.8})
    made, choice = chosen(trainer(4, layout="auto"))
    assert measured.asked == [(4, "shard=1"), (4, "shard=4"), (4, "shard=2")]
    assert (made.hyperparameters["layout"], made.hyperparameters["num_workers"]) == ("shard=2", 4)
    assert (choice.name, choice.chosen) == ("layout", "shard=2")
    mentions(choice.why, "epoch", "4 workers", "1 s", "shard=4", "0.8 s", "shard=2", "shard=1", "out of memory")


def test_workers_and_layout_may_both_be_left_to_it(monkeypatch):
    times = {(1, "shard=1"): 1.0, (2, "shard=1"): 0.6, (2, "shard=2"): 0.58}
    measured = Measured(monkeypatch, 2, times, here=1.1)
    made, workers, layout = chosen(trainer(layout="auto"))
    assert measured.asked == [HERE, *times]
    assert (workers.chosen, layout.chosen) == ("2", "shard=1")
    assert (made.hyperparameters["layout"], made.workers_for(made.hyperparameters)) == ("shard=1", 2)
    Measured(monkeypatch, 2, times, here=0.3)
    made, workers, layout = chosen(trainer(layout="auto"))
    assert (made.in_hand, made.hyperparameters["layout"], layout.chosen) == (True, None, "none")


def test_a_layout_that_is_given_is_never_overruled():
    assert left_to_probe(trainer(2, layout="shard=2"), {}) == ()
    assert left_to_probe(trainer(2, layout="auto"), {"layout": CategoricalParameter(["shard=1", "shard=2"])}) == ()
    servers = ParameterServerTrainer(train_exactly, scaling=GANG, hyperparameters={"layout": "auto"})
    assert left_to_probe(servers, {}) == ()  # It is the function's own word there.


def test_a_tuner_s_settings_have_what_was_chosen(monkeypatch):
    Measured(monkeypatch, 2, {1: 1.5, 2: 0.2})
    tuner = HyperparameterTuner(
        trainer(), "train:x", {"lr": ContinuousParameter(0.1, 1.0)}, max_jobs=2, strategy="Random", console=False
    )
    settings = sized(tuner.settings, {"train": data(48)}, print)
    assert "lr" not in settings.estimator.hyperparameters
    assert settings.estimator.hyperparameters["num_workers"] == 2
    assert settings.autotune.choices[0].chosen == "2"
    assert settings.to_json({}, 0)["autotune"][0]["name"] == "num_workers"
    given = HyperparameterTuner(trainer(3), "train:x", {"lr": ContinuousParameter(0.1, 1.0)}, max_jobs=2, console=False)
    assert sized(given.settings, {"train": np.zeros(1)}, print) is given.settings
