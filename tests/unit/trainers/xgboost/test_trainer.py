"""XGBoost's checkpoints: whole, or one clear error before XGBoost sees them."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas
import pytest
import xgboost
from ray.train import ScalingConfig

from tests.support.assignments import assignment
from tests.support.refusals import mentions, refuses, refuses_each
from trainers import ConfigurationError, DataError, GangError, TrialError, XGBoostTrainer, storage
from trainers.checkpoint import File, Manifest
from trainers.errors import CheckpointError
from trainers.registry import trainer_from_json
from trainers.trainer import Trainer
from trainers.xgboost.booster import booster_parameters


@pytest.fixture
def checkpoint(tmp_path: Path) -> str:
    random = np.random.default_rng(0)
    matrix = xgboost.DMatrix(random.normal(size=(100, 4)), random.integers(0, 2, 100))
    storage.write(str(tmp_path / "000003"), bytes(xgboost.train({}, matrix, 3).save_raw("ubj")))
    return str(tmp_path / "000003")


def test_a_whole_checkpoint_is_a_booster(checkpoint: str) -> None:
    assert XGBoostTrainer().trained(checkpoint).model().num_boosted_rounds() == 3


class OwnReader(XGBoostTrainer):
    """A user's, which loads its model in a way of its own."""

    def load_model(self, checkpoint: str) -> bytes:
        return Path(checkpoint).read_bytes()


@pytest.mark.parametrize(
    ("kind", "looks"), [(XGBoostTrainer, 1), (type("Own", (XGBoostTrainer,), {}), 1), (OwnReader, 2)]
)
def test_a_model_is_read_and_compared_once(
    checkpoint: str, monkeypatch: pytest.MonkeyPatch, kind: type[XGBoostTrainer], looks: int
) -> None:
    """Where its trainer is not a user's own that reads it in another way: the job's digest holds for that, too."""
    whole, reads, compared = Path(checkpoint).read_bytes(), [], []
    read, own, flaw = storage.read, Path.read_bytes, File.flaw
    monkeypatch.setattr(storage, "read", lambda uri, *span: reads.append(uri) or read(uri, *span))
    monkeypatch.setattr(Path, "read_bytes", lambda path: reads.append(str(path)) or own(path))
    monkeypatch.setattr(File, "flaw", lambda file, data: compared.append(data) or flaw(file, data))
    trained = kind().trained(checkpoint, manifest=Manifest((File.of("000003", whole),)))
    assert trained.model()
    assert (reads, compared) == ([checkpoint] * looks, [whole])
    Path(checkpoint).write_bytes(whole[:-1] + b"?")
    with refuses(CheckpointError, field=checkpoint):
        trained.model()
    Path(checkpoint).write_bytes(whole)
    other = Path(checkpoint).with_name("000009")
    other.write_bytes(bytes(xgboost.Booster(model_file=bytearray(whole)).save_raw("json")))
    assert trained.load_model(str(other)) is not None, "only its own has to be what was written"


@pytest.mark.parametrize(("length", "why"), [(0, "empty"), (1, "no model of XGBoost"), (2000, "2000 bytes")])
def test_a_checkpoint_that_is_cut_short_says_so(checkpoint: str, length: int, why: str) -> None:
    path = Path(checkpoint)
    path.write_bytes(path.read_bytes()[:length])
    with refuses(DataError, field=("checkpoint", checkpoint), value=why) as caught:
        XGBoostTrainer().load_model(checkpoint)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("content", "why"),
    [(b"not a model", "byte 0"), (b"{L" + b"\xff" * 500, "502 bytes"), (b"{i\x01aU\x05}", "learner")],
)
def test_what_is_no_checkpoint_says_so_in_one_line(checkpoint: str, content: bytes, why: str) -> None:
    Path(checkpoint).write_bytes(content)
    with refuses(DataError, field=("checkpoint", checkpoint), value=why) as caught:
        XGBoostTrainer().load_model(checkpoint)
    assert "\n" not in str(caught.value)


def test_a_trainer_without_a_model_says_why() -> None:
    with pytest.raises(ValueError, match="it was dropped"):
        XGBoostTrainer().trained("", missing="it was dropped").model()


def trainer(workers: int = 3, **options: object) -> XGBoostTrainer:
    return XGBoostTrainer(scaling=ScalingConfig(num_workers=workers), **options)


def test_the_number_of_workers_may_be_a_hyperparameter_which_xgboost_is_not_told() -> None:
    assert trainer().workers_for({"eta": 0.3}) == 3
    assert trainer().workers_for({"num_workers": 2}) == 2
    given = booster_parameters(assignment(hyperparameters={"num_workers": 2, "eta": 0.3}), 1)
    assert given.keys() == {"eta", "nthread", "seed", "verbosity"}


def test_a_number_of_workers_that_cannot_be_is_refused() -> None:
    def make(workers: int, backend: str = "native", **hyperparameters: object) -> Callable[[], object]:
        return lambda: trainer(workers, hyperparameters=hyperparameters, backend=backend)

    refuses_each(
        [
            (make(3, num_workers=0), ("'num_workers'", 0, 1)),
            (make(3, num_workers=True), ("'num_workers'", True, 1)),
            (make(0, num_workers=2), ("'num_workers'", 2, "num_workers=0", 1)),
            (make(1, num_workers=2, tree_method="exact"), ("tree_method", "exact", 2, "hist", "num_workers=1")),
            (make(3, "xgboost_ray", num_workers=2), ("'num_workers'", "backend", "native", "ScalingConfig")),
            (make(3, nthread=8), ("nthread", 8, 1, "{'CPU': 8}")),
            (make(1, n_jobs="2"), ("n_jobs", 2, 1, "{'CPU': 2}")),
        ],
        ConfigurationError,
    )


TABLE = np.random.default_rng(0).normal(size=(400, 5)).astype("float32")
TABLE[:, 0] = TABLE[:, 1] + TABLE[:, 2] * TABLE[:, 3] > 0
DRAWING = {"objective": "binary:logistic", "eval_metric": "logloss", "subsample": 0.5, "colsample_bytree": 0.5}


def fitted(folder: Path, **hyperparameters: object) -> bytes:
    """The model of a training in this process, whose job's seed is always the same."""
    hand = trainer(0, hyperparameters={**DRAWING, "num_round": 5, **hyperparameters})
    return storage.read(hand.fit({"train": TABLE, "validation": TABLE}, storage_path=str(folder), seed=3).checkpoint)


@pytest.mark.parametrize("name", ["seed", "random_state"])
def test_a_seed_draws_what_xgboost_itself_draws_with_it(tmp_path: Path, name: str) -> None:
    matrix = xgboost.QuantileDMatrix(TABLE[:, 1:], TABLE[:, 0])
    for seed in (7, 8):
        own = xgboost.train({**DRAWING, "seed": seed}, matrix, 5).save_raw("ubj")
        assert fitted(tmp_path, **{name: seed}) == bytes(own)
    assert fitted(tmp_path, **{name: 7}) != fitted(tmp_path, **{name: 8})
    assert fitted(tmp_path) == fitted(tmp_path)


def noted(monkeypatch: pytest.MonkeyPatch, parameter: str) -> list[str]:
    """What a parameter is in each round that is trained from now on."""
    used: list[str] = []
    update = xgboost.Booster.update

    def note(booster: xgboost.Booster, *arguments: object) -> None:
        used.append(json.loads(booster.save_config())["learner"]["generic_param"][parameter])
        update(booster, *arguments)

    monkeypatch.setattr(xgboost.Booster, "update", note)
    return used


def test_as_many_threads_train_as_were_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    used = noted(monkeypatch, "nthread")
    for given in ({"nthread": 1}, {"n_jobs": 3}):
        fitted(tmp_path, num_round=1, **given)
    assert used == ["1", "3"]
    XGBoostTrainer(
        scaling=ScalingConfig(num_workers=2, resources_per_worker={"CPU": 8}), hyperparameters={"nthread": 8}
    )


@pytest.mark.parametrize(
    ("given", "as_text"),
    [
        ({"monotone_constraints": (1, 0, 0, -1)}, "(1,0,0,-1)"),
        ({"monotone_constraints": [np.int64(1), 0, 0, -1]}, "(1,0,0,-1)"),
        ({"monotone_constraints": {"a": 1, "d": -1}}, "(1,0,0,-1)"),
        ({"interaction_constraints": [[0, 1], (2, 3)]}, "[[0,1],[2,3]]"),
        ({"interaction_constraints": (["a", "b"], ["c", "d"])}, "[[0,1],[2,3]]"),
    ],
)
def test_constraints_hold_in_every_form_and_after_the_record_too(
    tmp_path: Path, given: dict[str, object], as_text: str
) -> None:
    frame = pandas.DataFrame(TABLE, columns=["y", "a", "b", "c", "d"])

    def model(made: Trainer) -> bytes:
        result = made.fit({"train": frame, "validation": frame}, storage_path=str(tmp_path))
        return storage.read(result.checkpoint)

    static = {**DRAWING, "num_round": 5}
    first = trainer(0, hyperparameters={**static, **given})
    expected = model(trainer(0, hyperparameters={**static, next(iter(given)): as_text}))
    assert expected != model(trainer(0, hyperparameters=static))
    assert model(first) == expected
    # NumPy's numbers are the record's own affair.
    record = json.dumps(first.to_json(), default=int)
    assert model(trainer_from_json(json.loads(record))) == expected


@pytest.mark.parametrize(
    "given",
    [
        {"eval_metric": ("logloss", "auc")},
        {"objective": "reg:quantileerror", "quantile_alpha": (np.float64(0.25), 0.75), "eval_metric": "quantile"},
        {"base_score": [np.float32(0.5)]},
    ],
)
def test_what_the_check_lets_pass_trains(tmp_path: Path, given: dict[str, object]) -> None:
    assert fitted(tmp_path, **given)


def test_a_worker_that_holds_a_gpu_trains_on_it_or_says_why_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """XGBoost itself turns to the CPU where it sees no GPU."""
    devices = noted(monkeypatch, "device")
    scaling = ScalingConfig(num_workers=0, use_gpu=True)
    for made in (
        XGBoostTrainer(scaling=scaling, hyperparameters={**DRAWING, "num_round": 1}),
        trainer(0, hyperparameters={**DRAWING, "num_round": 1, "device": "cuda"}),
    ):
        refused = ""
        try:
            made.fit({"train": TABLE, "validation": TABLE}, storage_path=str(tmp_path))
        except (GangError, TrialError) as error:
            refused = str(error)
        if devices:
            assert devices.pop().startswith("cuda")
        else:
            mentions(refused, "device", "cuda", "GPU", "nvidia-smi")


def test_what_is_told_where_a_worker_holds_a_gpu() -> None:
    made = XGBoostTrainer(scaling=ScalingConfig(num_workers=2, use_gpu=True))
    mentions(made.probe_obstacle(), "GPU")
    assert not made.exact_from({})
    assert XGBoostTrainer().exact_from({})
    assert booster_parameters(assignment(), 1, use_gpu=True)["device"] == "cuda"
    assert "device" not in booster_parameters(assignment(), 1)


@pytest.mark.parametrize(
    ("given", "expected"),
    [({}, "cuda:2"), ({"device": "cuda"}, "cuda:2"), ({"device": "gpu"}, "cuda:2"), ({"device": "cuda:1"}, "cuda:1")],
)
def test_a_worker_trains_on_its_own_gpu_of_those_that_it_sees(given: dict[str, str], expected: str) -> None:
    """Those of its peers on the node are among them; a number that the user gives is no worker's."""
    told = replace(assignment(), hyperparameters=given)
    assert booster_parameters(told, 1, use_gpu=True, gpus=(2, 3))["device"] == expected


def test_threads_beside_a_gpu_are_not_counted_before_the_node_is_known() -> None:
    XGBoostTrainer(scaling=ScalingConfig(num_workers=1, use_gpu=True), hyperparameters={"nthread": 8})
    holds_two = ScalingConfig(num_workers=1, use_gpu=True, resources_per_worker={"CPU": 2, "GPU": 1})
    with refuses(ConfigurationError, field=("nthread", "2"), value=8, remedy="{'CPU': 8}"):
        XGBoostTrainer(scaling=holds_two, hyperparameters={"nthread": 8})


def test_a_device_that_workers_do_not_hold_is_refused() -> None:
    def make(use_gpu: bool, **hyperparameters: str) -> Callable[[], object]:
        scaling = ScalingConfig(num_workers=1, use_gpu=use_gpu)
        return lambda: XGBoostTrainer(scaling=scaling, hyperparameters=hyperparameters)

    refuses_each(
        [
            (make(True, device="cpu"), ("device", "cpu", "use_gpu=True")),
            (make(False, device="cuda"), ("device", "cuda", "use_gpu=True")),
            (make(False, device="gpu:1"), ("device", "gpu:1", "use_gpu=True")),
            (make(True, device="cudda"), ("device", "cudda", "cpu", "cuda")),
            (make(True, tree_method="exact"), ("tree_method", "exact", "CPUs", "hist", "use_gpu")),
        ],
        ConfigurationError,
    )
