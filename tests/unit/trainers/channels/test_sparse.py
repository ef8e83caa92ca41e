"""Sparse rows in memory: shards stay CSR, an explicit 0 is no absent entry, and digests and copies tell them apart."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from ray.train import ScalingConfig

from hpo.jobs.files.inputs import copy_inputs, open_inputs, record_inputs
from tests.support.refusals import refuses
from tests.support.trainers.channels.sparse import RANDOM, ROWS, WHOLE, X, Y, shown
from trainers import Channel, ConfigurationError, DataError, TorchTrainer, XGBoostTrainer
from trainers.channels import interleave

W = RANDOM.gamma(2.0, size=ROWS).astype(np.float32)


KINDS: list[Callable[[Any], Any]] = [
    sp.csr_matrix,
    sp.csr_array,
    sp.csc_matrix,
    sp.coo_array,
]


@pytest.mark.parametrize("kind", KINDS)
def test_row_i_is_rank_i_modulo_the_workers(kind: Callable[[Any], Any]) -> None:
    channel = Channel.of((kind(X), Y, {"weight": W}))
    shards = [channel.read(rank, 3) for rank in range(3)]
    for rank, shard in enumerate(shards):
        assert shown(shard) == WHOLE[rank::3]
        assert shard.said["weight"].tolist() == W[rank::3].tolist()
    together = interleave(shards)
    assert shown(together) == WHOLE
    assert together.labels.tolist() == Y.tolist()
    assert shown(interleave([shards[2], shards[0]])) == WHOLE[2::3] + WHOLE[0::3], "one behind the other: not in order"
    assert channel.describe() == {
        "kind": "scipy",
        "rows": ROWS,
        "columns": None,
        "files": [],
        "weight": None,
        "target": None,
    }


def test_queries_are_whole_and_come_back_in_order() -> None:
    channel = Channel.of((X, Y, {"qid": np.repeat(np.arange(8), 3)[:ROWS]}))
    shards = [channel.read(rank, 3) for rank in range(3)]
    assert shown(shards[1]) == [row for query in (1, 4, 7) for row in WHOLE[3 * query : 3 * query + 3]]
    assert shown(interleave(shards)) == WHOLE


def test_an_explicit_0_is_not_what_is_absent() -> None:
    pruned = X.copy()
    pruned.eliminate_zeros()
    assert pruned.nnz < X.nnz
    assert Channel.of((X, Y)).fingerprint() != Channel.of((pruned, Y)).fingerprint()
    assert Channel.of((X, Y)).fingerprint() == Channel.of((sp.coo_matrix(X), Y)).fingerprint()
    assert Channel.of((X, Y)).fingerprint() != Channel.of((X.toarray(), Y)).fingerprint()


def test_entries_out_of_order_are_sorted_and_those_at_one_place_added_up_in_a_copy() -> None:
    messy = sp.csr_matrix((np.array([1.0, 2.0, 3.0]), np.array([2, 0, 2]), np.array([0, 3])), shape=(1, 3))
    assert shown(Channel.of((messy, [1])).read_whole()) == [{0: 2.0, 2: 4.0}]
    assert messy.data.tolist() == [1.0, 2.0, 3.0], "the user's own stays"


def test_empty_rows_and_whole_numbers() -> None:
    empty = sp.csr_matrix((3, 2), dtype=np.int8)
    assert shown(Channel.of((empty, [0, 1, 0])).read(0, 2)) == [{}, {}]
    assert shown(Channel.of((sp.csr_matrix(np.array([[True, False]])), [1])).read_whole()) == [{0: 1.0}]


@pytest.mark.parametrize("said", [{}, {"weight": W}])
def test_another_process_opens_a_copy_of_the_same_rows(said: dict[str, Any], tmp_path: Any) -> None:
    channels = {"train": Channel.of((X, Y, said), name="train")}
    recorded = record_inputs(channels, str(tmp_path))
    copy_inputs(recorded, channels)
    table = open_inputs(recorded)["train"].read_whole()
    assert shown(table) == WHOLE
    assert list(table.said) == list(said)
    assert record_inputs(channels, str(tmp_path), most_bytes=X.nnz * 8 - 1)["train"]["open"] == {}


@pytest.mark.parametrize("value", [np.inf, 1e39])
def test_infinite_entries_are_refused_with_their_column(value: float) -> None:
    wrong = sp.csr_matrix(np.array([[0, 1.0, value], [1.0, 0, 0]]))
    with refuses(DataError, field=("'data'", "'2'"), value="inf", remedy=("float32", "NaN")):
        Channel.of((wrong, [0, 1]))


@pytest.mark.parametrize(("shape", "lacking"), [((0, 3), "rows"), ((3, 0), "feature")])
def test_nothing_is_refused(shape: tuple[int, int], lacking: str) -> None:
    with refuses(DataError, field=lacking):
        Channel.of((sp.csr_matrix(shape), np.zeros(shape[0])))


def test_who_reads_dense_rows_alone_refuses_before_a_start() -> None:
    sparse = {"train": Channel.of((X, Y), name="train")}
    in_hand = ScalingConfig(num_workers=0)
    with refuses(ConfigurationError, field=("'train'", "TorchTrainer"), value="sparse", remedy="X.toarray()"):
        TorchTrainer(lambda context: None, scaling=in_hand).checked(sparse)
    hyperparameters = {"eval_metric": "rmse", "num_round": 2}
    other = XGBoostTrainer(backend="xgboost_ray", hyperparameters=hyperparameters)
    with refuses(
        ConfigurationError,
        field=("'train'", "backend", "xgboost_ray"),
        value="sparse",
        remedy=("native", "X.toarray()"),
    ):
        other.checked(sparse)
    XGBoostTrainer(scaling=in_hand, hyperparameters=hyperparameters).checked(sparse)


def test_columns_are_compared_with_those_that_are_trained_on() -> None:
    with refuses(DataError, field=("'other'", "columns"), value=8, remedy=("9", "'train'")):
        Channel.of((X[:, :8], Y), name="other").check_like(Channel.of((X, Y), name="train"))


def test_the_column_that_changed_is_named() -> None:
    other = X.copy()
    at = int(np.flatnonzero(other.indices == 4)[0])
    other.data[at] += 1
    before, now = Channel.of((X, Y)).parts(), Channel.of((other, Y)).parts()
    assert [name for name in before if before[name] != now[name]] == ["column '4'"]
