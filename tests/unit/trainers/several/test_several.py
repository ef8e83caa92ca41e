"""Several trainers in one: which of them trains, under whose names, and what is refused."""

from __future__ import annotations

import numpy as np

from tests.support.refusals import refuses_each
from trainers import ConfigurationError, ScalingConfig, SeveralTrainers, XGBoostTrainer
from trainers.parts import ESTIMATOR
from trainers.registry import code_in, trainer_from_json, unit_in

ROWS = np.random.default_rng(5).normal(size=(120, 3))
LABELS = (ROWS[:, 0] + 0.3 * ROWS[:, 1] > 0).astype(float)
CHANNELS = {"train": (ROWS[:80], LABELS[:80]), "validation": (ROWS[80:], LABELS[80:])}


def boosted(num_workers: int = 0, **hyperparameters: object) -> XGBoostTrainer:
    static = {"objective": "binary:logistic", "eval_metric": "auc", "num_round": 3, **hyperparameters}
    return XGBoostTrainer(scaling=ScalingConfig(num_workers=num_workers), hyperparameters=static)


def test_each_trains_what_it_trains_alone() -> None:
    deep, stump = boosted(max_depth=6), boosted(max_depth=1, num_round=5)
    both = SeveralTrainers({"deep": deep, "stump": stump})
    assert both.fit(CHANNELS).metrics == deep.fit(CHANNELS).metrics
    chosen = both.with_hyperparameters({ESTIMATOR: "stump", "stump.eta": 0.7})
    result = chosen.fit(CHANNELS)
    alone = stump.with_hyperparameters({"eta": 0.7}).fit(CHANNELS)
    assert result.metrics == alone.metrics
    assert len(result.reports) == 5
    assert result.checkpoint.endswith("000005.ubj")
    assert result.model().save_raw("ubj") == alone.model().save_raw("ubj")


def test_an_objective_of_several_names_is_reported_under_that_of_the_job() -> None:
    both = SeveralTrainers(
        {"first": boosted(), "second": boosted(eval_metric="aucpr")}, metrics={"second": "validation:aucpr"}
    )
    result = both.with_hyperparameters({ESTIMATOR: "second"}).fit(CHANNELS)
    assert set(result.metrics) == {"validation:aucpr"}  # A training alone has no objective.
    assert both.metrics(["train", "validation"]) is None


def test_its_record_makes_it_again() -> None:
    both = SeveralTrainers({"a": boosted(eta=0.1), "b": boosted(eta=0.2)}, hyperparameters={ESTIMATOR: "b"})
    again = trainer_from_json(both.to_json())
    assert isinstance(again, SeveralTrainers)
    assert again.to_json() == both.to_json()
    assert again.workers_for(again.hyperparameters) == 1
    assert unit_in(both.to_json()) == both.unit == "round"


def test_code_within_is_named_whatever_the_record_says() -> None:
    state = SeveralTrainers({"a": boosted(), "b": boosted()}).to_json()
    state["options"]["trainers"]["b"] = {
        "trainer": "TorchTrainer",
        "scaling": {"num_workers": 0},
        "hyperparameters": {},
        "options": {"train_loop_per_worker": "evil:run"},
    }
    assert code_in(state) == {"b.train_loop_per_worker": "evil:run"}


def test_sizes_of_gangs_and_lengths_follow_the_one_that_is_chosen() -> None:
    both = SeveralTrainers({"one": boosted(1, num_round=10), "three": boosted(3, num_round=20)})
    assert [both.workers_for({**both.hyperparameters, ESTIMATOR: name}) for name in ("one", "three")] == [1, 3]
    assert [both.length_of({**both.hyperparameters, ESTIMATOR: name}) for name in ("one", "three")] == [10, 20]
    assert both.workers == 3


def test_what_does_not_go_together_is_refused() -> None:
    alone = XGBoostTrainer(backend="xgboost_ray", hyperparameters={"eval_metric": "auc"})
    refuses_each(
        [
            (lambda: SeveralTrainers({"a": boosted()}), ("trainers", "dict")),
            (lambda: SeveralTrainers({"a": boosted(), "b.c": boosted()}), ("trainers", "'b.c'", "underscores")),
            (lambda: SeveralTrainers({"a": boosted(), "b": 5}), ("trainers['b']", 5, "XGBoostTrainer")),
            (
                lambda: SeveralTrainers({"a": boosted(), "b": boosted(1)}),
                ("trainers['b']", "'a'", "ScalingConfig", "num_workers"),
            ),
            (lambda: SeveralTrainers({"a": boosted(1), "b": alone}), ("trainers['b']", "XGBoostTrainer", "job")),
        ],
        ConfigurationError,
    )


def test_a_wrong_hyperparameter_is_said_with_its_trainer() -> None:
    both = SeveralTrainers({"a": boosted(), "b": boosted()})
    refuses_each(
        [
            (lambda: both.with_hyperparameters({ESTIMATOR: "boosed"}), (ESTIMATOR, "boosed", "a", "b")),
            (lambda: both.with_hyperparameters({"eta": 0.3}), ("'eta'", "'a.eta'")),
            (lambda: both.with_hyperparameters({"b.eta": -1.0}), ("'b'", "eta", -1.0)),
        ],
        ConfigurationError,
    )
