"""Weights, margins and bounds of labels: on several workers as on one, and as XGBoost has them by hand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xgboost
from ray.train import ScalingConfig

from tests.support.assignments import assignment
from tests.support.process_gang import ProcessGang, serve_alone
from tests.support.refusals import mentions, refuses, refuses_each
from trainers import Channel, ConfigurationError, TorchTrainer, XGBoostTrainer, storage
from trainers.gangs.messages import Assignment, Segment

RANDOM = np.random.default_rng(5)
X = RANDOM.integers(0, 9, (600, 4)).astype(np.float32)
SIGNAL = X[:, 0] - X[:, 1] + RANDOM.normal(size=600)
FRAME = pd.DataFrame(X, columns=list("abcd")).assign(
    y=(SIGNAL > 0).astype(np.float32),
    of_three=np.digitize(SIGNAL, [-2, 2]).astype(np.float32),
    w=np.where(X[:, 2] > 4, 5.0, 0.1).astype(np.float32),
    m0=RANDOM.normal(size=600).astype(np.float32),
    m1=RANDOM.normal(size=600).astype(np.float32),
    m2=RANDOM.normal(size=600).astype(np.float32),
    lo=np.exp(SIGNAL / 4).astype(np.float32),
    hi=np.where(X[:, 3] > 6, np.inf, np.exp(SIGNAL / 4)).astype(np.float32),
    q=np.repeat(np.arange(75) * 3 + 70_000_000, 8),
    grade=np.digitize(SIGNAL, [-3, -1, 1, 3]).astype(np.float32),
    of_query=np.repeat(RANDOM.gamma(2.0, size=75), 8).astype(np.float32),
)
BINARY = {"objective": "binary:logistic", "eval_metric": ["logloss", "auc", "error"]}
CLASSES = {"objective": "multi:softprob", "num_class": 3, "eval_metric": ["mlogloss"]}
AFT = {"objective": "survival:aft", "eval_metric": ["aft-nloglik", "interval-regression-accuracy"]}
NDCG = {"objective": "rank:ndcg", "eval_metric": ["ndcg", "ndcg@2"]}
BOUNDS = {"label_lower_bound": "lo", "label_upper_bound": "hi"}

Case = tuple[str | None, dict[str, Any], dict[str, Any]]
CASES: list[Case] = [
    ("y", {"weight": "w"}, BINARY),
    ("y", {"base_margin": "m0", "weight": "w"}, BINARY),
    ("of_three", {"base_margin": ["m0", "m1", "m2"]}, CLASSES),
    (None, BOUNDS, AFT),
    (None, {**BOUNDS, "weight": "w"}, AFT),
    ("grade", {"qid": "q"}, NDCG),
    ("grade", {"qid": "q", "weight": "of_query"}, NDCG),
    ("y", {"qid": "q"}, {"objective": "rank:map", "eval_metric": ["map", "rmse"]}),
    ("grade", {"qid": "q"}, {"objective": "rank:pairwise", "eval_metric": ["ndcg@3-"]}),
    ("y", {"qid": "q"}, {"objective": "binary:logistic", "eval_metric": ["auc", "pre@3", "logloss"]}),
    (None, BOUNDS, {"objective": "survival:aft", "eval_metric": ["rmse", "mae"]}),
]


def channels(target: str | None, said: dict[str, Any]) -> dict[str, Channel]:
    named = [name for of in said.values() for name in (of if isinstance(of, list) else [of])]
    frame = FRAME[[*([target] if target else []), *named, *"abcd"]]
    parts = {"train": frame, "validation": frame[96:496]}
    return {name: Channel.of(part, target=target, name=name, **said) for name, part in parts.items()}


def program(case: Case, **more: Any) -> Callable[[], Any]:
    target, said, hyperparameters = case

    def make() -> Any:
        trainer = XGBoostTrainer(scaling=ScalingConfig(num_workers=0), hyperparameters={**hyperparameters, **more})
        opened = trainer.checked(channels(target, said))
        return trainer.program({name: channel.place(0) for name, channel in opened.items()})

    return make


def order(folder: Path, case: Case, **more: Any) -> Assignment:
    return assignment(hyperparameters={**case[2], **more}, stop=4, save_to=str(folder / "4.ubj"))


def matrix(case: Case, part: slice) -> xgboost.DMatrix:
    target, said, _ = case
    columns = {role: FRAME[column].to_numpy()[part] for role, column in said.items()}
    if "qid" in said and "weight" in said:
        columns["weight"] = columns["weight"][::8]  # One a query.
    return xgboost.DMatrix(FRAME[[*"abcd"]][part], FRAME[target or "lo"][part], **columns)


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


@pytest.mark.process
@pytest.mark.parametrize("case", CASES)
def test_three_workers_learn_what_one_does(gang: ProcessGang, tmp_path: Path, case: Case) -> None:
    """But for weights of queries."""
    if {"qid", "weight"} <= case[1].keys():
        for answer in gang.run(program(case), order(tmp_path / "three", case)):
            mentions(str(answer), "'train'", "queries", 3, "weight", "num_workers=1")
        return
    answers = gang.run(program(case), order(tmp_path / "three", case))
    segments = [answer for [answer] in answers]
    assert all(isinstance(segment, Segment) for segment in segments), segments
    assert [segment.reports for segment in segments] == [segments[0].reports] * 3
    [alone] = serve_alone(program(case)(), order(tmp_path / "one", case))
    for mine, one in zip(segments[0].reports, alone.reports, strict=True):
        assert mine.metrics == pytest.approx(one.metrics, rel=1e-4)
    booster = xgboost.Booster({"nthread": 1}, model_file=bytearray(storage.read(segments[0].checkpoint)))
    booster.set_param([*((k, v) for k, v in case[2].items() if k != "eval_metric")])
    booster.set_param([("eval_metric", metric) for metric in case[2]["eval_metric"]])
    line = booster.eval_set([(matrix(case, slice(96, 496)), "v")], 3)
    own = {part.split(":")[0][2:]: float(part.split(":")[1]) for part in line.split("\t")[1:]}
    found = {name.partition(":")[2]: value for name, value in segments[0].reports[-1].metrics.items()}
    assert found == pytest.approx(own, rel=1e-5)


def test_an_objective_that_is_tuned_is_held_to_the_rows_too(tmp_path: Path) -> None:
    """Rows without queries would be one query on each worker: another model for each number of them."""
    case: Case = ("grade", {}, {"objective": "reg:squarederror", "eval_metric": ["rmse"]})
    [error] = serve_alone(program(case)(), order(tmp_path, case, objective="rank:ndcg"))
    mentions(str(error), "'train'", "rank:ndcg", "qid")


def test_weights_change_what_is_learnt(tmp_path: Path) -> None:
    weighted, plain = (serve_alone(program(case)(), order(tmp_path, case))[0] for case in (CASES[0], ("y", {}, BINARY)))
    assert weighted.reports != plain.reports


@pytest.mark.ray
def test_ray_s_workers_have_the_queries_and_weights(ray_cluster: None, tmp_path: Path) -> None:
    for case in (CASES[1], CASES[7]):
        alone, two = (
            XGBoostTrainer(scaling=ScalingConfig(num_workers=workers), hyperparameters={**case[2], "num_round": 3}).fit(
                channels(*case[:2]), storage_path=str(tmp_path / str(workers))
            )
            for workers in (0, 2)
        )
        assert two.metrics == pytest.approx(alone.metrics, rel=1e-4)


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


@pytest.mark.parametrize(
    ("said", "hyperparameters", "names"),
    [
        ({"base_margin": ["m0", "m1"]}, CLASSES, ("2", "multi:softprob", "3")),
        ({"base_margin": ["m0", "m1"]}, BINARY, ("2", "binary:logistic", "1")),
        (
            {"base_margin": "m0"},
            {"objective": "reg:quantileerror", "quantile_alpha": [0.1, 0.9], "eval_metric": "quantile"},
            ("1", "reg:quantileerror", "2"),
        ),
    ],
)
@pytest.mark.parametrize("kind", ["frame", "parts", "parquet"])
def test_margins_are_one_an_output(
    said: dict[str, Any], hyperparameters: dict[str, Any], names: tuple[str, ...], kind: str, tmp_path: Path
) -> None:
    trainer = XGBoostTrainer(scaling=ScalingConfig(num_workers=0), hyperparameters=hyperparameters)
    frame = FRAME[["of_three" if hyperparameters is CLASSES else "y", "a", "m0", "m1"]]
    frame.to_parquet(path := str(tmp_path / "rows.parquet"))
    sources = {
        "frame": lambda: Channel.of(frame[[frame.columns[0], *np.ravel(said["base_margin"]), "a"]], **said),
        "parts": lambda: Channel.of(
            (frame[["a"]], frame.iloc[:, 0], {"base_margin": frame[said["base_margin"]].to_numpy()})
        ),
        "parquet": lambda: Channel.of(path, **said),
    }
    with refuses(ConfigurationError, field=("'train'", "base_margin", *names)):
        trainer.checked({"train": sources[kind]()})


def test_all_channels_have_margins_or_none() -> None:
    """Without them, a model that begins at margins would be measured on half of its predictions."""
    trainer = XGBoostTrainer(scaling=ScalingConfig(num_workers=0), hyperparameters=BINARY)
    with_margins, without = channels("y", {"base_margin": "m0"}), channels("y", {})
    with refuses(ConfigurationError, field=("'validation'", "'train'", "base_margin")):
        trainer.checked({"train": with_margins["train"], "validation": without["validation"]})


@pytest.mark.process
def test_a_model_of_one_worker_is_measured_by_three_as_by_one(gang: ProcessGang, tmp_path: Path) -> None:
    """Whose bins are others, as those of a gang of another size are."""
    x = np.random.default_rng(7).normal(size=(3000, 2)).astype(np.float32)
    rows = (x, (x[:, 0] > x[:, 1]).astype(np.float32), {"weight": np.abs(x[:, 1])})
    told = {"objective": "binary:logistic", "eval_metric": ["auc", "aucpr", "logloss"]}

    def make() -> Any:
        trainer = XGBoostTrainer(scaling=ScalingConfig(num_workers=0), hyperparameters=told)
        return trainer.program({name: Channel.of(rows, name=name).place(0) for name in ("train", "validation")})

    three, one = (str(tmp_path / workers / "4.ubj") for workers in ("three", "one"))
    [trained] = serve_alone(make(), assignment(hyperparameters=told, stop=4, save_to=one))
    assert isinstance(trained, Segment), trained
    none = {"hyperparameters": {**told, "eta": 0.0}, "checkpoint": one, "start": 4, "stop": 5}
    [alone] = serve_alone(make(), assignment(**none, save_to=str(tmp_path / "5.ubj")))
    for [answer] in gang.run(make, assignment(**none, save_to=three)):
        assert answer.reports[-1].metrics == pytest.approx(alone.reports[-1].metrics, rel=1e-12)


@pytest.mark.process
def test_weights_that_are_all_0_are_every_worker_s_error(gang: ProcessGang, tmp_path: Path) -> None:
    """Metrics would be 0 and the best of all; one worker's may be."""

    def make(weights: Any) -> Callable[[], Any]:
        opened = {
            name: Channel.of((FRAME[[*"abcd"]], FRAME["y"], {"weight": of}), name=name)
            for name, of in {"train": FRAME["w"], "validation": weights}.items()
        }
        trainer = XGBoostTrainer(scaling=ScalingConfig(num_workers=0), hyperparameters=BINARY)
        return lambda: trainer.program({name: channel.place(0) for name, channel in opened.items()})

    for answer in gang.run(make(np.zeros(600)), order(tmp_path / "none", CASES[0])):
        mentions(str(answer), "'validation'", "weight", 0)
    of_one = np.arange(600) % 3 == 1
    answers = gang.run(make(of_one), order(tmp_path / "one", CASES[0]))
    assert all(isinstance(answer, Segment) for [answer] in answers), answers


def test_who_does_not_read_weights_refuses_them() -> None:
    ours = channels("y", {"weight": "w"})
    with refuses(ConfigurationError, field=("'train'", "weight"), value="TorchTrainer", remedy="XGBoostTrainer"):
        TorchTrainer(lambda context: None, scaling=ScalingConfig(num_workers=0)).checked(ours)
    old = XGBoostTrainer(scaling=ScalingConfig(num_workers=2), hyperparameters=BINARY, backend="xgboost_ray")
    field = ("'train'", "weight", "backend")
    with refuses(ConfigurationError, field=field, value="xgboost_ray", remedy="native"):
        old.checked(ours)


def test_margins_are_held_to_a_tuned_number_of_classes(tmp_path: Path) -> None:
    case = CASES[2]
    [error] = serve_alone(program(case)(), order(tmp_path, case, num_class=4))
    mentions(str(error), "'train'", 3, "base_margin", "multi:softprob", 4)


def test_ams_has_no_use_for_weights_of_queries() -> None:
    told = {"objective": "rank:map", "eval_metric": ["map", "ams@0.15"]}
    trainer = XGBoostTrainer(scaling=ScalingConfig(num_workers=0), hyperparameters=told)
    with refuses(ConfigurationError, field=("'train'", "queries", "weights"), value="ams@0.15"):
        trainer.checked(channels("y", {"qid": "q", "weight": "of_query"}))


@pytest.mark.parametrize("objective", ["survival:cox", "reg:absoluteerror", "reg:quantileerror"])
def test_what_several_workers_learn_otherwise_is_refused(objective: str) -> None:
    told = {"objective": objective, "quantile_alpha": 0.5}
    with refuses(ConfigurationError, field=("objective", "2"), value=objective, remedy="num_workers=1"):
        XGBoostTrainer(scaling=ScalingConfig(num_workers=2), hyperparameters=told)
    XGBoostTrainer(scaling=ScalingConfig(num_workers=1), hyperparameters=told)
