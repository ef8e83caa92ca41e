"""External memory: rows on disk are learnt from as rows in memory are, and leave nothing behind."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ray.train import ScalingConfig

from tests.support.external_rows import FRAME, ROWS, STATIC, order, program
from tests.support.process_gang import serve_alone
from tests.support.refusals import mentions, refuses, refuses_each
from trainers import Channel, ConfigurationError, DataError, XGBoostTrainer, storage
from trainers.channels.files.files import Files
from trainers.gangs.in_process import alone
from trainers.gangs.messages import Segment
from trainers.registry import trainer_from_json
from trainers.xgboost import program as programs

pytestmark = pytest.mark.usefixtures("scratch")


@pytest.mark.parametrize("more", [{}, {"max_bin": 32, "subsample": 0.7}, {"booster": "dart", "rate_drop": 0.3}])
def test_a_model_is_that_of_rows_in_memory(folder: Path, scratch: Path, more: dict[str, Any]) -> None:
    found = {}
    for external in (False, True):
        [found[external]] = serve_alone(program(folder, external=external, **more)(), order(folder, **more))
        found[external, "model"] = storage.read(found[external].checkpoint)
    assert found[True].reports == found[False].reports
    assert found[True, "model"] == found[False, "model"]
    assert not list(scratch.iterdir())


def test_few_rows_that_are_scored_are_in_memory(folder: Path, scratch: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for most in (0, 1 << 20):
        served = program(folder)()
        monkeypatch.setattr(programs, "SCORED_BYTES", most)
        served.open(alone(1))
        assert len(list(scratch.rglob("*.row.page"))) == (most == 0)
        found.append(served.train(order(folder), lambda report: None).reports)
        served.close()
    assert found[0] == found[1]


def test_approx_trains_too(folder: Path) -> None:
    [segment] = serve_alone(program(folder, tree_method="approx")(), order(folder, tree_method="approx"))
    assert isinstance(segment, Segment), segment
    assert segment.reports[-1].metrics["validation:auc"] > 0.7


def test_rows_are_decoded_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    noted: list[int] = []
    blocks = Files._blocks

    def read(self: Files, *of: Any) -> Iterator[Any]:
        for block in blocks(self, *of):
            noted.append(block.num_rows)
            yield block

    made = program(folder, eval_metric="auc")()
    monkeypatch.setattr(Files, "_blocks", read)
    served = serve_alone(made, *(order(folder, eval_metric="auc", max_bin=bins) for bins in (16, 32, 64)))
    assert all(isinstance(segment, Segment) for segment in served)
    assert sum(noted) == ROWS


@pytest.mark.parametrize(
    ("column", "value", "names"),
    [
        ("y", np.nan, ("train.parquet", 1234, "label", "nan")),
        ("b", np.inf, ("train.parquet", 1234, "'b'", "inf")),
        ("w", -1.0, ("train.parquet", 1234, "weight", "-1")),
        ("y", 2.0, ("binary:logistic", "2")),
    ],
)
def test_a_wrong_row_is_named(
    folder: Path,
    scratch: Path,
    column: str,
    value: float,
    names: tuple[object, ...],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("trainers.channels.files.files.QUICK_BYTES", 0)  # A driver looks at small files itself.
    made = program(folder)
    wrong = FRAME[:2500].copy()
    wrong.loc[1233, column] = value
    wrong.to_parquet(folder / "train.parquet", row_group_size=300)
    with pytest.raises(DataError) as caught:
        made().open(alone(1))
    mentions(str(caught.value), "'train'", *names)
    del caught
    assert not list(scratch.iterdir())


def test_what_needs_rows_in_memory_is_refused() -> None:
    def make(options: dict[str, Any], **hyperparameters: Any) -> Callable[[], object]:
        options = {"external_memory": True, **options}
        return lambda: XGBoostTrainer(**options, hyperparameters={**STATIC, **hyperparameters})

    with_gpu, here = ScalingConfig(num_workers=1, use_gpu=True), ScalingConfig(num_workers=0)
    refuses_each(
        [
            (make({"external_memory": "yes"}), ("external_memory", "yes", "True", "False")),
            (make({"backend": "xgboost_ray"}), ("external_memory", "backend", "xgboost_ray", "native")),
            (make({"scaling": with_gpu}), ("external_memory", "use_gpu", "GPUs")),
            (make({}, tree_method="exact"), ("external_memory", "tree_method", "exact", "hist")),
            (make({}, booster="gblinear"), ("external_memory", "booster", "gblinear", "gbtree")),
            (make({"scaling": here}, device="cuda"), ("external_memory", "device", "cuda")),
        ],
        ConfigurationError,
    )


def test_weights_of_queries_are_refused() -> None:
    trainer = XGBoostTrainer(
        scaling=ScalingConfig(num_workers=0),
        external_memory=True,
        hyperparameters={"objective": "rank:ndcg", "eval_metric": "ndcg"},
    )
    ranked = Channel.of(FRAME.assign(q=0, w=1), target="y", qid="q", weight="w", name="train")
    with refuses(ConfigurationError, field=("'train'", "queries"), remedy=("weight", "external_memory")):
        trainer.checked({"train": ranked})


def test_the_option_is_in_the_record() -> None:
    trainer = XGBoostTrainer(scaling=ScalingConfig(num_workers=2), external_memory=True, hyperparameters=STATIC)
    read = trainer_from_json(json.loads(json.dumps(trainer.to_json())))
    assert read.options == {"external_memory": True}
    assert XGBoostTrainer(hyperparameters=STATIC).options == {}
