"""External memory: rows on disk are learnt from as rows in memory are, and leave nothing behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from ray.train import ScalingConfig
from scipy.sparse import csr_matrix
from sklearn.datasets import dump_svmlight_file

from tests.support.external_rows import FRAME, RANDOM, ROWS, SMALL, STATIC, X, order, program
from tests.support.process_gang import ProcessGang, serve_alone
from tests.support.processes import ROOT
from tests.support.refusals import mentions, refuses, refuses_each
from trainers import Channel, ConfigurationError, DataError, XGBoostTrainer, storage
from trainers.channels import open_channels
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


@pytest.mark.process
def test_a_gang_trains_what_it_does_in_memory_and_again(pair: ProcessGang, folder: Path) -> None:
    found = {}
    for external in (False, True):
        answers = pair.run(program(folder, external=external), order(folder, max_bin=64), order(folder, max_bin=32))
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


TOWNS = ["Åre", "Paris", "東京", "a", "b"]
CODES = np.asarray(RANDOM.integers(0, len(TOWNS), ROWS))
KINDS: dict[str, dict[str, Any]] = {
    "categories": {},
    "categories in parts": {"max_cat_to_onehot": 1, "max_cat_threshold": 3},
    "categories in memory": {},
    "queries": {"objective": "rank:ndcg", "eval_metric": ["ndcg@3", "map"]},
    "queries in memory": {"objective": "rank:ndcg", "eval_metric": ["ndcg@3"]},
    "sparse": {},
    "libsvm": {"max_bin": 512},
}


def rows_of(kind: str, folder: Path, part: str) -> Channel:
    """Rows that are more than numbers, in files and in memory: the first 2500, or the others."""
    few = slice(0, 2500) if part == "train" else slice(2500, ROWS)
    frame = FRAME[few].drop(columns="w")
    if kind.startswith("categories"):
        town = pd.Series([TOWNS[code] for code in CODES]).where(CODES + X[:, 0] < 4.5)
        frame = frame.assign(town=town[few], y=(frame["y"] + (CODES[few] == 2)).clip(0, 1))
    elif kind.startswith("queries"):
        begins = np.sort(RANDOM.permutation(np.arange(1, ROWS))[: ROWS // 9])
        query = np.searchsorted(begins, np.arange(ROWS), side="right")[few]
        frame = frame.assign(q=query)
    named = {"categorical": ["town"] if "town" in frame else None, "qid": "q" if "q" in frame else None}
    options: dict[str, Any] = {"target": "y", **named}
    if kind in ("sparse", "libsvm"):
        matrix = csr_matrix(np.where(np.abs(X[few]) > 1, X[few], 0))
        if kind == "sparse":
            return Channel.of((matrix, frame["y"].to_numpy()), name=part)
        dump_svmlight_file(matrix, frame["y"], str(folder / f"{part}.libsvm"))
        return Channel.of(folder / f"{part}.libsvm", name=part)
    if kind.endswith("in memory"):
        return Channel.of(frame, name=part, **options)
    frame.to_parquet(folder / f"{part}.parquet", row_group_size=300, index=False)
    return Channel.of(folder / f"{part}.parquet", name=part, **options)


def of_kind(kind: str, opened: dict[str, Channel], *, external: bool) -> Callable[[], Any]:
    def make() -> Any:
        programs.BLOCK_BYTES, programs.SCORED_BYTES = SMALL, 0
        trainer = XGBoostTrainer(
            scaling=ScalingConfig(num_workers=0),
            hyperparameters={**STATIC, **KINDS[kind]},
            external_memory=external,
        )
        checked = trainer.checked(open_channels(opened))
        return trainer.program({name: channel.place(0) for name, channel in checked.items()})

    return make


@pytest.mark.parametrize("kind", KINDS)
def test_categories_queries_and_sparse_rows_come_from_disk_too(folder: Path, scratch: Path, kind: str) -> None:
    opened = {part: rows_of(kind, folder, part) for part in ("train", "validation")}
    found = {}
    for external in (False, True):
        program = of_kind(kind, opened, external=external)()
        [segment] = serve_alone(program, order(folder, **KINDS[kind]))
        assert isinstance(segment, Segment), segment
        found[external] = segment.reports, storage.read(segment.checkpoint)
    assert found[True] == found[False]
    assert not list(scratch.iterdir())


@pytest.mark.process
@pytest.mark.parametrize("kind", ["categories", "queries", "libsvm"])
def test_a_gang_reads_them_from_disk_too(pair: ProcessGang, folder: Path, kind: str) -> None:
    opened = {part: rows_of(kind, folder, part) for part in ("train", "validation")}
    found = {}
    for external in (False, True):
        answers = pair.run(of_kind(kind, opened, external=external), order(folder, **KINDS[kind]))
        assert all(isinstance(segment, Segment) for [segment] in answers), answers
        found[external] = [segment.reports for [segment] in answers]
    assert found[True] == found[False]


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
