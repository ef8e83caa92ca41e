"""Weights, margins and bounds of labels: on several workers as on one, and as XGBoost has them by hand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import xgboost
from ray.train import ScalingConfig

from tests.support.process_gang import serve_alone
from tests.support.refusals import mentions, refuses, refuses_each
from tests.support.trainers.xgboost.said import AFT, BINARY, BOUNDS, CASES, NDCG, Case, channels, matrix, order, program
from trainers import ConfigurationError, TorchTrainer, XGBoostTrainer
from trainers.gangs.messages import Segment


@pytest.mark.parametrize("case", CASES)
def test_one_worker_trains_what_xgboost_does_by_hand(tmp_path: Path, case: Case) -> None:
    [segment] = serve_alone(program(case, tree_method="exact")(), order(tmp_path, case, tree_method="exact"))
    assert isinstance(segment, Segment), segment
    told = {**case[2], "tree_method": "exact", "nthread": 1}
    by_hand: dict[str, dict[str, list[float]]] = {}
    evals = [(matrix(case, slice(96, 496)), "validation")]
    xgboost.train(told, matrix(case, slice(None)), 4, evals=evals, evals_result=by_hand, verbose_eval=False)
    for name, values in by_hand["validation"].items():
        found = [report.metrics[f"validation:{name}"] for report in segment.reports]
        assert found == pytest.approx(values, rel=1e-5)


def test_an_objective_that_is_tuned_is_held_to_the_rows_too(tmp_path: Path) -> None:
    """Rows without queries would be one query on each worker: another model for each number of them."""
    case: Case = ("grade", {}, {"objective": "reg:squarederror", "eval_metric": ["rmse"]})
    [error] = serve_alone(program(case)(), order(tmp_path, case, objective="rank:ndcg"))
    mentions(str(error), "'train'", "rank:ndcg", "qid")


def test_weights_change_what_is_learnt(tmp_path: Path) -> None:
    weighted, plain = (serve_alone(program(case)(), order(tmp_path, case))[0] for case in (CASES[0], ("y", {}, BINARY)))
    assert weighted.reports != plain.reports


def test_bounds_are_for_survival_and_queries_for_ranking() -> None:
    def checked(said: dict[str, Any], hyperparameters: dict[str, Any]) -> Callable[[], object]:
        trainer = XGBoostTrainer(scaling=ScalingConfig(num_workers=0), hyperparameters=hyperparameters)
        return lambda: trainer.checked(channels(None if said == BOUNDS else "y", said))

    refuses_each(
        [
            (checked({}, AFT), ("'train'", "bounds", "survival:aft", "label_lower_bound", "label_upper_bound")),
            (checked(BOUNDS, BINARY), ("'train'", "bounds", "binary:logistic", "survival:aft")),
            (checked({}, NDCG), ("'train'", "rank:ndcg", "qid")),
            (
                checked({"qid": "q", "weight": "of_query"}, BINARY),
                ("'train'", "qid", "weight", "binary:logistic"),
            ),
            (
                checked({}, {**BINARY, "eval_metric": "aft-nloglik"}),
                ("'validation'", "bounds", "aft-nloglik", "label_lower_bound"),
            ),
        ],
        ConfigurationError,
    )


def test_all_channels_have_margins_or_none() -> None:
    """Without them, a model that begins at margins would be measured on half of its predictions."""
    trainer = XGBoostTrainer(scaling=ScalingConfig(num_workers=0), hyperparameters=BINARY)
    with_margins, without = channels("y", {"base_margin": "m0"}), channels("y", {})
    with refuses(ConfigurationError, field=("'validation'", "'train'", "base_margin")):
        trainer.checked({"train": with_margins["train"], "validation": without["validation"]})


def test_who_does_not_read_weights_refuses_them() -> None:
    ours = channels("y", {"weight": "w"})
    with refuses(ConfigurationError, field=("'train'", "weight"), value="TorchTrainer", remedy="XGBoostTrainer"):
        TorchTrainer(lambda context: None, scaling=ScalingConfig(num_workers=0)).checked(ours)
    old = XGBoostTrainer(scaling=ScalingConfig(num_workers=2), hyperparameters=BINARY, backend="xgboost_ray")
    field = ("'train'", "weight", "backend")
    with refuses(ConfigurationError, field=field, value="xgboost_ray", remedy="native"):
        old.checked(ours)


@pytest.mark.parametrize("objective", ["survival:cox", "reg:absoluteerror", "reg:quantileerror"])
def test_what_several_workers_learn_otherwise_is_refused(objective: str) -> None:
    told = {"objective": objective, "quantile_alpha": 0.5}
    with refuses(ConfigurationError, field=("objective", "2"), value=objective, remedy="num_workers=1"):
        XGBoostTrainer(scaling=ScalingConfig(num_workers=2), hyperparameters=told)
    XGBoostTrainer(scaling=ScalingConfig(num_workers=1), hyperparameters=told)


def test_a_linear_model_is_refused_on_several_workers() -> None:
    """XGBoost would train one for each worker, on that worker's rows alone."""
    told = {"booster": "gblinear"}
    with refuses(ConfigurationError, field=("booster", "2"), value="gblinear", remedy="num_workers=1"):
        XGBoostTrainer(scaling=ScalingConfig(num_workers=2), hyperparameters=told)
    XGBoostTrainer(scaling=ScalingConfig(num_workers=1), hyperparameters=told)
