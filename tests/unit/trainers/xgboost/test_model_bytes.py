"""A model's bytes are checked before XGBoost reads them, which would end the process at some."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xgboost

from tests.support.refusals import refuses
from trainers import DataError, ScalingConfig, XGBoostTrainer
from trainers.xgboost.model_bytes import FlawedModelError, check_model

RANDOM = np.random.default_rng(0)
ROWS = RANDOM.normal(size=(60, 4)).astype(np.float32)
LABELS = (ROWS[:, 0] > 0).astype(np.float32)


@cache
def model(form: str = "ubj", **parameters: Any) -> bytes:
    matrix = xgboost.DMatrix(ROWS, LABELS, nthread=1)
    booster = xgboost.train({"nthread": 1, "verbosity": 0, **parameters}, matrix, 2)
    return bytes(booster.save_raw(form))


@pytest.mark.parametrize("form", ["ubj", "json"])
@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"booster": "dart"},
        {"booster": "gblinear"},
        {"objective": "multi:softprob", "num_class": 3},
        {"gamma": 5, "tree_method": "exact"},
        {"num_parallel_tree": 2, "grow_policy": "lossguide"},
        {"objective": "reg:quantileerror", "quantile_alpha": (0.1, 0.9), "multi_strategy": "multi_output_tree"},
    ],
    ids=str,
)
def test_models_of_xgboost_pass(form: str, parameters: dict[str, Any]) -> None:
    check_model(model(form, **parameters))


@pytest.mark.parametrize("form", ["ubj", "json"])
def test_a_model_that_is_cut_anywhere_is_refused(form: str) -> None:
    whole = model(form)
    for end in range(0, len(whole), 17):
        with pytest.raises(FlawedModelError):
            check_model(whole[:end])
    with pytest.raises(FlawedModelError):
        check_model(whole + b"{")


def test_changed_bytes_are_passed_or_refused() -> None:
    whole = model()
    for at, value in zip(RANDOM.integers(0, len(whole), 200), RANDOM.integers(0, 256, 200), strict=True):
        changed = bytearray(whole)
        changed[at] = value
        with suppress(FlawedModelError):
            check_model(bytes(changed))


def of_tree(name: str, at: int, value: Any) -> Callable[[dict[str, Any]], None]:
    def change(learner: dict[str, Any]) -> None:
        learner["gradient_booster"]["model"]["trees"][1][name][at] = value

    return change


def of_model(name: str, value: Any) -> Callable[[dict[str, Any]], None]:
    def change(learner: dict[str, Any]) -> None:
        learner["gradient_booster"]["model"][name] = value

    return change


def nodes(learner: dict[str, Any]) -> None:
    learner["gradient_booster"]["model"]["trees"][1]["tree_param"]["num_nodes"] = "99999999"


def categories(learner: dict[str, Any]) -> None:
    learner["gradient_booster"]["model"]["trees"][1] |= {
        "categories": [1],
        "categories_nodes": [0],
        "categories_segments": [0],
        "categories_sizes": [1 << 40],
    }


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (of_tree("left_children", 0, 1 << 30), "children"),
        (of_tree("left_children", 0, -7), "children"),
        (of_tree("right_children", 0, 0), "two parents"),
        (of_tree("parents", 1, 1 << 30), "parent"),
        (of_tree("split_indices", 0, 4), "split_indices"),
        (of_tree("split_type", 0, 9), "split_type"),
        (of_model("tree_info", [0, 5]), "tree_info"),
        (of_model("tree_info", [0]), "2 trees"),
        (of_model("iteration_indptr", [0, 9]), "rounds"),
        (nodes, "99999999 nodes"),
        (categories, "categories"),
    ],
)
def test_trees_that_lead_out_of_themselves_are_refused(change: Callable[[Any], None], why: str) -> None:
    document = json.loads(model("json"))
    change(document["learner"])
    with pytest.raises(FlawedModelError, match=why):
        check_model(json.dumps(document).encode())


@pytest.mark.parametrize(
    "raw",
    [
        b"[]",
        b'{"learner": []}',
        b'{"learner": {"gradient_booster": {"model": {"trees": [7]}}}}',
        b'{"a": ' + b"[" * 100_000,
        b"{" + b"i\x01a{" * 100_000,
        b"{i\x01a[$d#L" + struct.pack(">q", 1 << 62) + b"}",
        b"{i\x01a[$d#L" + struct.pack(">q", -1) + b"}",
        b"{i\x01a[#L" + struct.pack(">q", 1 << 40) + b"}",
        b"{i\x01aSL" + struct.pack(">q", 1 << 40) + b"}",
        b"{i\xffa",
        b"{Z",
    ],
)
def test_what_is_no_model_is_refused(raw: bytes) -> None:
    with pytest.raises(FlawedModelError):
        check_model(raw)


def test_a_model_cut_on_the_disk_is_an_error_and_its_code_can_still_be_said(tmp_path: Path) -> None:
    """XGBoost 3.2 reads behind the end of some of these, and ends the process."""
    trainer = XGBoostTrainer(scaling=ScalingConfig(num_workers=0), hyperparameters={"num_round": 2})
    whole, path = model(), tmp_path / "000002.ubj"
    for end in range(5, len(whole), len(whole) // 40):
        path.write_bytes(whole[:end])
        with refuses(DataError, field="checkpoint", value=str(path), remedy=("restore", "train again")):
            trainer.load_model(str(path))
        assert str(path) in trainer.load_code(str(path))
