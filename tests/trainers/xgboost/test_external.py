"""External memory: rows on disk are learnt from as rows in memory are, and leave nothing behind."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from ray.train import ScalingConfig

from tests.support.assignments import assignment
from tests.support.process_gang import ProcessGang, process_gang, serve_alone
from tests.support.processes import ROOT
from trainers import Channel, ConfigurationError, DataError, XGBoostTrainer, storage
from trainers.channels.files.files import Files
from trainers.gangs.in_process import alone
from trainers.gangs.messages import Assignment, Segment
from trainers.registry import trainer_from_json
from trainers.xgboost import program as programs

RANDOM = np.random.default_rng(5)
ROWS = 3000
X = RANDOM.normal(size=(ROWS, 4)).astype(np.float32)
FRAME = pd.DataFrame(X, columns=list("abcd")).assign(
    y=(X[:, 0] - X[:, 1] * X[:, 2] + RANDOM.normal(size=ROWS) > 0).astype(np.float32),
    w=RANDOM.gamma(2.0, size=ROWS).astype(np.float32),
)
FRAME.loc[::7, "c"] = np.nan
STATIC = {"objective": "binary:logistic", "eval_metric": ["auc", "logloss", "aucpr"], "max_depth": 4}
SMALL = 4000
"""Bytes of a block: 250 rows."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    FRAME[:2500].to_parquet(tmp_path / "train.parquet", row_group_size=300)
    FRAME[2500:].to_csv(tmp_path / "validation.csv", index=False)
    return tmp_path


@pytest.fixture(autouse=True)
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where rows go, and few of them at a time."""
    (tmp_path / "scratch").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "scratch"))
    monkeypatch.setattr(programs, "BLOCK_BYTES", SMALL)
    monkeypatch.setattr(programs, "SCORED_BYTES", 0)
    return tmp_path / "scratch"


def channels(folder: Path, **said: Any) -> dict[str, Channel]:
    files = {"train": "train.parquet", "validation": "validation.csv"}
    return {name: Channel.of(folder / file, target="y", name=name, **said) for name, file in files.items()}


def program(folder: Path, *, external: bool = True, weight: str = "w", **hyperparameters: Any) -> Callable[[], Any]:
    def make() -> Any:
        programs.BLOCK_BYTES, programs.SCORED_BYTES = SMALL, 0
        trainer = XGBoostTrainer(
            scaling=ScalingConfig(num_workers=0),
            hyperparameters={**STATIC, **hyperparameters},
            external_memory=external,
        )
        opened = trainer.checked(channels(folder, weight=weight))
        return trainer.program({name: channel.place(0) for name, channel in opened.items()})

    return make


def order(folder: Path, **hyperparameters: Any) -> Assignment:
    name = "-".join(f"{value}" for value in hyperparameters.values())
    return assignment(hyperparameters={**STATIC, **hyperparameters}, stop=4, save_to=str(folder / f"{name}.ubj"))


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


@pytest.fixture(scope="module")
def gang() -> Iterator[ProcessGang]:
    with tempfile.TemporaryDirectory() as folder, process_gang(2, folder) as started:
        yield started


@pytest.mark.process
def test_a_gang_trains_what_it_does_in_memory_and_again(gang: ProcessGang, folder: Path) -> None:
    found = {}
    for external in (False, True):
        answers = gang.run(program(folder, external=external), order(folder, max_bin=64), order(folder, max_bin=32))
        for answer in answers:
            assert all(isinstance(segment, Segment) for segment in answer), answer
        found[external] = [[segment.reports for segment in answer] for answer in answers]
    assert found[True] == found[False]


def test_pages_are_on_disk_for_the_last_two_values_of_max_bin_and_rows_once(folder: Path, scratch: Path) -> None:
    served = program(folder)()
    served.open(alone(1))
    rows = {path: path.stat().st_mtime_ns for path in scratch.rglob("*.npy")}
    assert len(rows) == 10, "of the rows to train on; those to score are XGBoost's alone by now"
    for max_bin in (16, 32, 64, 16):
        served.train(order(folder, max_bin=max_bin), lambda report: None)
        assert len(list(scratch.rglob("*.gradient_index.page"))) <= 2
    assert {path: path.stat().st_mtime_ns for path in scratch.rglob("*.npy")} == rows
    served.close()
    assert not list(scratch.iterdir())


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
    ("column", "value", "message"),
    [
        ("y", np.nan, "row 1234: the label is nan"),
        ("b", np.inf, "row 1234: column 'b' holds inf"),
        ("w", -1.0, "row 1234: weight is -1"),
        ("y", 2.0, "binary:logistic"),
    ],
)
def test_a_wrong_row_is_named(
    folder: Path, scratch: Path, column: str, value: float, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trainers.channels.files.files.QUICK_BYTES", 0)  # A driver looks at small files itself.
    made = program(folder)
    wrong = FRAME[:2500].copy()
    wrong.loc[1233, column] = value
    wrong.to_parquet(folder / "train.parquet", row_group_size=300)
    with pytest.raises(DataError) as caught:
        made().open(alone(1))
    assert message in str(caught.value)
    assert "channel 'train'" in str(caught.value)
    assert value == 2 or "train.parquet: row" in str(caught.value)
    del caught
    assert not list(scratch.iterdir())


@pytest.mark.process
def test_what_a_killed_worker_left_goes_with_the_next(folder: Path, scratch: Path) -> None:
    code = (
        "import os, signal\n"
        "from trainers import Channel, ScalingConfig, XGBoostTrainer\n"
        "from trainers.gangs.in_process import alone\n"
        "trainer = XGBoostTrainer(scaling=ScalingConfig(num_workers=0), external_memory=True, hyperparameters="
        "{'objective': 'binary:logistic', 'eval_metric': 'auc'})\n"
        f"channel = Channel.of({str(folder / 'train.parquet')!r}, target='y', name='train')\n"
        "program = trainer.program({'train': channel.place(0)})\n"
        "program.open(alone(1))\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    environment = {**os.environ, "TMPDIR": str(scratch)}
    ended = subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=environment, check=False)
    assert ended.returncode == -signal.SIGKILL
    assert list(scratch.rglob("*.page"))
    serve_alone(program(folder)(), order(folder))
    assert not list(scratch.iterdir())


@pytest.mark.parametrize(
    ("options", "hyperparameters", "message"),
    [
        ({"external_memory": "yes"}, {}, "external_memory='yes'"),
        ({"backend": "xgboost_ray"}, {}, "'xgboost_ray' holds all rows in memory"),
        ({"scaling": ScalingConfig(num_workers=1, use_gpu=True)}, {}, "holds GPUs"),
        ({}, {"tree_method": "exact"}, "'exact' sorts all rows in memory"),
        ({}, {"booster": "gblinear"}, "'gblinear' goes through all rows"),
        ({"scaling": ScalingConfig(num_workers=0)}, {"device": "cuda"}, "'device' is 'cuda', and external_memory"),
    ],
)
def test_what_needs_rows_in_memory_is_refused(
    options: dict[str, Any], hyperparameters: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigurationError, match=message):
        XGBoostTrainer(**{"external_memory": True, **options}, hyperparameters={**STATIC, **hyperparameters})


def test_queries_and_categories_are_refused() -> None:
    trainer = XGBoostTrainer(
        scaling=ScalingConfig(num_workers=0),
        external_memory=True,
        hyperparameters={"objective": "rank:ndcg", "eval_metric": "ndcg"},
    )
    ranked = Channel.of(FRAME.assign(q=0), target="y", qid="q", name="train")
    with pytest.raises(ConfigurationError, match="has queries, which blocks"):
        trainer.checked({"train": ranked})
    frame = FRAME[["y", "a"]].assign(k=pd.Categorical(["u", "v", "w"] * 1000))
    trainer = XGBoostTrainer(scaling=ScalingConfig(num_workers=0), external_memory=True, hyperparameters=STATIC)
    made = trainer.program({"train": Channel.of(frame, name="train").place(0)})
    with pytest.raises(DataError, match="rows of numbers, and these rows are a DataFrame"):
        made.open(alone(1))


def test_the_option_is_in_the_record() -> None:
    trainer = XGBoostTrainer(scaling=ScalingConfig(num_workers=2), external_memory=True, hyperparameters=STATIC)
    read = trainer_from_json(json.loads(json.dumps(trainer.to_json())))
    assert read.options == {"external_memory": True}
    assert XGBoostTrainer(hyperparameters=STATIC).options == {}


@pytest.mark.ray
def test_a_ray_dataset_comes_a_block_at_a_time(ray_cluster: None, scratch: Path) -> None:
    import ray.data

    dataset = ray.data.from_pandas([FRAME[start : start + 500] for start in range(0, ROWS, 500)])
    placed = Channel.of(dataset, target="y", weight="w").place(2)
    shards = [list(placed.blocks(rank, 2, SMALL)) for rank in range(2)]
    for rank, blocks in enumerate(shards):
        assert [len(block.labels) for block in blocks] == [250] * 6
        np.testing.assert_array_equal(
            np.concatenate([block.features for block in blocks]), placed.read(rank, 2).features
        )
    assert sum(len(block.labels) for block in placed.blocks(0, 1, SMALL)) == ROWS


@pytest.mark.parametrize("max_bin", [64, 512])
def test_a_disk_without_room_for_pages_is_an_error(
    folder: Path, scratch: Path, monkeypatch: pytest.MonkeyPatch, max_bin: int
) -> None:
    """XGBoost itself would end the process, which is the user's own where workers are none."""
    numbers = 2500 * 5
    for left, fits in ((2 * numbers, False), (200 * numbers, True)):
        usage = shutil.disk_usage(scratch)._replace(free=left)
        monkeypatch.setattr("trainers.xgboost.matrices.spooled.shutil.disk_usage", lambda path, usage=usage: usage)
        served = program(folder, max_bin=max_bin)()
        if fits:
            served.open(alone(1))
            served.close()
        else:
            with pytest.raises(DataError, match=r"pages of rows for external_memory take .* give TMPDIR a folder"):
                served.open(alone(1))
        assert not list(scratch.iterdir())
