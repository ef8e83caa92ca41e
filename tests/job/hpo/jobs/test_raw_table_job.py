"""A table as it comes, from the job to predictions: text labels, dates, identifiers and columns in any order."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from ray.train import ScalingConfig
from rich.console import Console
from sklearn.metrics import roc_auc_score

from hpo import ContinuousParameter, HyperparameterTuner
from hpo.endpoints.scoring import scorer_of
from tests.support.refusals import mentions
from trainers import Channel, XGBoostTrainer

ROWS = 400
RANDOM = np.random.default_rng(5)


def table() -> pd.DataFrame:
    """Rows of customers, of whom those on the basic plan leave."""
    plan = RANDOM.choice(["basic", "pro", "team"], ROWS)
    return pd.DataFrame(
        {
            "customer_id": np.arange(ROWS) + 1000,
            "signup_date": pd.date_range("2023-01-01", periods=ROWS).strftime("%Y-%m-%d"),
            "plan": plan,
            "active": RANDOM.random(ROWS) > 0.5,
            "age": RANDOM.choice([-999, 20, 40, 60], ROWS),
            "churned": np.where((plan == "basic") ^ (RANDOM.random(ROWS) < 0.1), "yes", "no"),
        }
    )


TABLE = table()
SAID: dict[str, Any] = {"target": "churned", "categorical": ["plan"], "missing": -999}


def trainer() -> XGBoostTrainer:
    return XGBoostTrainer(
        scaling=ScalingConfig(num_workers=0, resources_per_worker={"CPU": 1}),
        hyperparameters={"objective": "binary:logistic", "eval_metric": "auc", "num_round": 4, "max_depth": 2},
    )


def sources(kind: str, folder: Path) -> tuple[Any, Any]:
    """Rows to train on, and rows to score with their columns turned round."""
    mine, turned = TABLE[:300], TABLE[300:][TABLE.columns[::-1]]
    if kind == "memory":
        return mine, turned
    paths = folder / f"train.{kind}", folder / f"validation.{kind}"
    for path, rows in zip(paths, (mine, turned), strict=True):
        rows.to_csv(path, index=False) if kind == "csv" else rows.to_parquet(path)
    return paths


@pytest.mark.parametrize("kind", ["csv", "parquet", "memory"])
def test_a_job_on_a_table_as_it_comes_predicts_its_labels(kind: str, tmp_path: Path, home: Path) -> None:
    console = Console(file=io.StringIO(), width=300)
    mine, scored = sources(kind, tmp_path)
    channels = {name: Channel.of(rows, name=name, **SAID) for name, rows in (("train", mine), ("validation", scored))}
    tuner = HyperparameterTuner(
        trainer(),
        "validation:auc",
        {"eta": ContinuousParameter(0.1, 1)},
        max_jobs=2,
        random_seed=7,
        console=console,
    )
    tuner.fit(channels, job_name="churn")
    said = console.file.getvalue()  # type: ignore[attr-defined]
    mentions(said, "predicts churned, 2 classes (no, yes)", "keep=['customer_id']", "'signup_date'", "-999")
    new = TABLE[300:].drop(columns="churned")
    new.to_csv(tmp_path / "new.csv", index=False)
    scorer = scorer_of(HyperparameterTuner.attach("churn").best_estimator())
    cells = pd.read_csv(tmp_path / "new.csv", dtype="str")  # As `hpo predict` reads them.
    found = scorer.named(scorer.predict(scorer.checked(cells)))
    assert list(found.columns) == ["prediction", "probability_no", "probability_yes"]
    truth = TABLE["churned"][300:].to_numpy()
    best = tuner.describe()["Summary"]["best"]
    assert roc_auc_score(truth == "yes", found["probability_yes"]) == pytest.approx(best["value"], abs=1e-6)
    assert (found["prediction"] == np.where(found["probability_yes"] > 0.5, "yes", "no")).all()
    model = tuner.best_estimator().model()
    by_hand = model.predict(XGBoostTrainer.matrix(model, new.assign(signup_date=pd.to_datetime(new["signup_date"]))))
    np.testing.assert_allclose(by_hand, found["probability_yes"], rtol=1e-5)


def test_all_ways_to_hold_a_table_give_one_model(tmp_path: Path, home: Path) -> None:
    models = set()
    for kind in ("csv", "parquet", "memory"):
        mine, scored = sources(kind, tmp_path)
        result = trainer().fit({"train": Channel.of(mine, **SAID), "validation": Channel.of(scored, **SAID)})
        models.add(bytes(result.trainer.model().save_raw("ubj")))
    assert len(models) == 1


def test_one_channel_alone_is_train_and_its_objective_is_what_scikit_learn_says(home: Path) -> None:
    rows = TABLE.drop(columns=["plan", "signup_date"]).rename(columns={"churned": "y"})
    tuner = HyperparameterTuner(
        trainer(),
        "train:auc",
        {"eta": ContinuousParameter(0.1, 1)},
        max_jobs=2,
        random_seed=7,
        console=Console(file=io.StringIO()),
    )
    tuner.fit(rows, job_name="alone")
    model = tuner.best_estimator().model()
    scores = model.predict(XGBoostTrainer.matrix(model, rows))
    value = tuner.describe()["Summary"]["best"]["value"]
    assert roc_auc_score(rows["y"] == "yes", scores) == pytest.approx(value, abs=1e-6)
