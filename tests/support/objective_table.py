"""Every objective and metric of the installed XGBoost, trained on one worker and on several: the table in the docs.

`python -m tests.support.objective_table docs/reference/xgboost-objectives.md` runs them all and writes the page.
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xgboost
from ray.train import ScalingConfig

from tests.support.assignments import assignment
from tests.support.process_gang import ProcessGang, process_gang, serve_alone
from trainers import Channel, ConfigurationError, XGBoostTrainer, storage
from trainers.gangs.messages import Assignment, Segment

WORKERS = (2, 3)
ROUNDS = 4
MODEL, METRIC = 1e-4, 1e-5
"""The tolerances, relative: of what several workers predict against one, and of a metric against XGBoost's own."""

RANDOM = np.random.default_rng(5)
X = RANDOM.integers(0, 9, (600, 4)).astype(np.float32)
SIGNAL = X[:, 0] - X[:, 1] + RANDOM.normal(size=600)
# Few values a column, so that workers cut them into the same bins however rows are dealt.
FRAME = pd.DataFrame(X, columns=list("abcd")).assign(
    two=(SIGNAL > 0).astype(np.float32),
    three=np.digitize(SIGNAL, [-2, 2]).astype(np.float32),
    real=SIGNAL.astype(np.float32),
    positive=np.exp(SIGNAL / 4).astype(np.float32),
    count=np.floor(np.exp(SIGNAL / 4)).astype(np.float32),
    chance=(1 / (1 + np.exp(-SIGNAL))).astype(np.float32),
    died=np.where(X[:, 3] > 6, -1, 1) * np.exp(SIGNAL / 4).astype(np.float32),
    lo=np.exp(SIGNAL / 4).astype(np.float32),
    hi=np.where(X[:, 3] > 6, np.inf, np.exp(SIGNAL / 4)).astype(np.float32),
    query=np.repeat(np.arange(75) * 3, 8),
    grade=np.digitize(SIGNAL, [-3, -1, 1, 3]).astype(np.float32),
)
PART = slice(96, 496)
"""Rows that are evaluated: whole queries."""

QUERIES = {"qid": "query"}
BOUNDS = {"label_lower_bound": "lo", "label_upper_bound": "hi"}
OF_QUERIES = ("ndcg", "ndcg@5", "ndcg@5-", "map", "map@3", "map@3-", "pre", "pre@2")


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """An objective on rows that suit it.

    Args:
        target: the column of labels.
        metrics: measured with it.
        told: its other parameters.
        said: the columns of the rows' roles.
    """

    target: str | None
    metrics: tuple[str, ...]
    told: Mapping[str, Any] = field(default_factory=dict)
    said: Mapping[str, str] = field(default_factory=dict)


CASES: dict[str, Case] = {
    "binary:hinge": Case(target="two", metrics=("error",)),
    "binary:logistic": Case(
        target="two", metrics=("logloss", "error", "error@0.3", "auc", "aucpr", "ams@0.15", "ams@0")
    ),
    "binary:logitraw": Case(target="two", metrics=("auc", "aucpr")),
    "count:poisson": Case(target="count", metrics=("poisson-nloglik",)),
    "multi:softmax": Case(target="three", metrics=("merror",), told={"num_class": 3}),
    "multi:softprob": Case(target="three", metrics=("mlogloss", "merror", "auc", "aucpr"), told={"num_class": 3}),
    "rank:map": Case(target="two", metrics=OF_QUERIES, said=QUERIES),
    "rank:ndcg": Case(target="grade", metrics=("ndcg", "ndcg@5", "ndcg@5-"), said=QUERIES),
    "rank:pairwise": Case(target="grade", metrics=("ndcg", "ndcg@5"), said=QUERIES),
    "reg:absoluteerror": Case(target="real", metrics=("mae",)),
    "reg:gamma": Case(target="positive", metrics=("gamma-nloglik", "gamma-deviance")),
    "reg:linear": Case(target="real", metrics=("rmse",)),
    "reg:logistic": Case(target="chance", metrics=("logloss", "rmse")),
    "reg:pseudohubererror": Case(target="real", metrics=("mphe",), told={"huber_slope": 0.7}),
    "reg:quantileerror": Case(target="real", metrics=("quantile",), told={"quantile_alpha": [0.1, 0.5]}),
    "reg:squarederror": Case(target="real", metrics=("rmse", "mae", "mape", "mphe")),
    "reg:squaredlogerror": Case(target="positive", metrics=("rmsle",)),
    "reg:tweedie": Case(target="count", metrics=("tweedie-nloglik@1.5", "tweedie-nloglik@1.2")),
    "survival:aft": Case(target=None, metrics=("aft-nloglik", "interval-regression-accuracy"), said=BOUNDS),
    "survival:cox": Case(target="died", metrics=("cox-nloglik",)),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A line of the page: what happens on one worker and on several, and why where it is refused."""

    one: str
    several: str
    why: str = ""


EQUAL_BY_HAND, EQUAL, REFUSED = "as `xgboost.train`", "as one worker", "refused"


def own_objectives() -> set[str]:
    """Those that the installed XGBoost has, as it says itself."""
    matrix = xgboost.DMatrix(X[:2], SIGNAL[:2])
    try:
        xgboost.Booster({"objective": "none of it"}, [matrix]).update(matrix, 0)
    except xgboost.core.XGBoostError as error:
        return set(re.findall(r"candidate: (\S+)", str(error)))
    raise AssertionError("XGBoost refuses no objective")


def own_metrics() -> set[str]:
    """Those among the strings of the installed library that it takes for one: it has no list of them.

    Short ones may be missing: compilers make instructions of these.
    """
    [library] = Path(xgboost.__file__).parent.glob("lib/libxgboost.*")
    strings = set(re.findall(rb"(?<=\0)[a-z][a-z0-9-]{1,30}(?=@?\0)", library.read_bytes()))
    matrix = xgboost.DMatrix(X[:2], SIGNAL[:2])
    found = set()
    for name in (string.decode() for string in strings):
        try:
            xgboost.Booster({"eval_metric": name}, [matrix]).eval_set([(matrix, "v")], 0)
        except xgboost.core.XGBoostError as error:
            if "Unknown metric" in str(error):
                continue
        found.add(name)
    return found


def outcome(objective: str, gangs: Sequence[ProcessGang], folder: Path) -> tuple[Row, dict[str, Row]]:
    """The row of an objective, and those of the metrics that are measured with it.

    Raises:
        AssertionError: a value is not what it has to be.
    """
    case = CASES[objective]
    [alone] = serve_alone(program(objective)(), order(folder / "1", objective))
    assert isinstance(alone, Segment), alone
    _check_by_hand(objective, alone)
    one = Row(one=EQUAL_BY_HAND, several=EQUAL)
    if why := refusal(objective):
        row = Row(one=EQUAL_BY_HAND, several=REFUSED, why=why)
        return row, dict.fromkeys(case.metrics, row)
    predicted = _booster(objective, alone).predict(matrix(case, PART))
    for gang in gangs:
        answers = gang.run(program(objective), order(folder / str(gang.workers), objective))
        segments = [answer for [answer] in answers]
        assert all(isinstance(segment, Segment) for segment in segments), segments
        assert [segment.reports for segment in segments] == [segments[0].reports] * gang.workers
        booster = _booster(objective, segments[0])
        np.testing.assert_allclose(booster.predict(matrix(case, PART)), predicted, rtol=MODEL, atol=MODEL / 100)
        _check_metrics(objective, segments[0], _measured(objective, booster))
    return one, dict.fromkeys(case.metrics, one)


def refusal(objective: str) -> str:
    """Why several workers are refused; empty where they are not."""
    told = told_of(objective)
    try:
        XGBoostTrainer(scaling=ScalingConfig(num_workers=2), hyperparameters=told)
    except ConfigurationError as error:
        return str(error)
    return ""


def told_of(objective: str) -> dict[str, Any]:
    """The hyperparameters of a case."""
    case = CASES[objective]
    return {"objective": objective, **case.told, "eval_metric": list(case.metrics)}


def program(objective: str) -> Callable[[], Any]:
    """Makes the program of a case, in whatever process."""
    case = CASES[objective]
    named = [*([case.target] if case.target else []), *case.said.values()]
    frame = FRAME[[*named, *"abcd"]]

    def make() -> Any:
        trainer = XGBoostTrainer(scaling=ScalingConfig(num_workers=0), hyperparameters=told_of(objective))
        parts = {"train": frame, "validation": frame[PART]}
        channels = {
            name: Channel.of(part, target=case.target, name=name, **case.said)  # type: ignore[arg-type]
            for name, part in parts.items()
        }
        return trainer.program({name: channel.place(0) for name, channel in trainer.checked(channels).items()})

    return make


def order(folder: Path, objective: str) -> Assignment:
    """A whole training of a case."""
    folder.mkdir(parents=True)
    return assignment(hyperparameters=told_of(objective), stop=ROUNDS, save_to=str(folder / f"{ROUNDS}.ubj"))


def matrix(case: Case, part: slice, kind: Any = xgboost.DMatrix) -> Any:
    """Rows of a case as a user of XGBoost makes a matrix of them."""
    columns = {role: FRAME[column].to_numpy()[part] for role, column in case.said.items()}
    return kind(FRAME[[*"abcd"]][part], FRAME[case.target or "lo"][part], **columns)


def page() -> str:
    """The page, out of runs of all cases."""
    objectives, metrics = {}, {}
    with tempfile.TemporaryDirectory() as folder, ExitStack() as open_gangs:
        gangs = [open_gangs.enter_context(process_gang(workers, folder)) for workers in WORKERS]
        for objective in sorted(CASES):
            row, measured = outcome(objective, gangs, Path(folder) / objective.replace(":", "-"))
            objectives[objective] = row
            metrics |= {(metric, objective): each for metric, each in measured.items()}
    lines = [
        head(),
        "| objective | one worker | several | why not |",
        "|---|---|---|---|",
        *(objective_line(name, row) for name, row in objectives.items()),
        "",
        "## Metrics",
        "",
        "| metric | measured with | one worker | several | why not |",
        "|---|---|---|---|---|",
        *(metric_line(*named, row) for named, row in sorted(metrics.items())),
    ]
    return "\n".join(lines) + "\n"


def head() -> str:
    """Return the text above the tables."""
    workers = " and ".join(map(str, WORKERS))
    return f"""# XGBoost's objectives and metrics

A test trains every objective of the installed XGBoost, {xgboost.__version__}, on one worker and on {workers}.

- One worker: each metric of each round and all predictions are those of `xgboost.train`.
- Several: a prediction is that of one worker's model, {MODEL:g} of it more or less, since sums of gradients are added
  up in another order. All workers report the same, and a metric is XGBoost's own of that model by hand, {METRIC:g} of
  it more or less.

Objectives of which several workers would learn another model are refused. `make docs` runs all of this and writes
the page.

## Objectives
"""


def objective_line(name: str, row: Row) -> str:
    """The line of an objective."""
    return f"| `{name}` | {row.one} | {row.several} | {row.why} |"


def metric_line(metric: str, objective: str, row: Row) -> str:
    """The line of a metric that is measured with an objective."""
    return f"| `{metric}` | `{objective}` | {row.one} | {row.several} | {row.why and 'the objective is'} |"


def _booster(objective: str, segment: Segment) -> xgboost.Booster:
    booster = xgboost.Booster({"nthread": 1}, model_file=bytearray(storage.read(segment.checkpoint)))
    told = told_of(objective)
    metrics = told.pop("eval_metric")
    booster.set_param([*told.items(), *(("eval_metric", metric) for metric in metrics)])
    return booster


def _check_by_hand(objective: str, alone: Segment) -> None:
    """Compares one worker's reports and predictions with `xgboost.train`'s."""
    case = CASES[objective]
    result: dict[str, dict[str, list[float]]] = {}
    by_hand = xgboost.train(
        {**told_of(objective), "nthread": 1},
        matrix(case, slice(None), xgboost.QuantileDMatrix),
        ROUNDS,
        evals=[(rows := matrix(case, PART), "validation")],
        evals_result=result,
        verbose_eval=False,
    )
    for at, report in enumerate(alone.reports):
        expected = {f"validation:{name}": values[at] for name, values in result["validation"].items()}
        _compare(report.metrics, expected)
    np.testing.assert_array_equal(_booster(objective, alone).predict(rows), by_hand.predict(rows))


def _measured(objective: str, booster: xgboost.Booster) -> dict[str, float]:
    line = booster.eval_set([(matrix(CASES[objective], PART), "validation")], ROUNDS - 1)
    parts = (part.rpartition(":") for part in line.split("\t")[1:])
    return {name.replace("-", ":", 1): float(value) for name, _, value in parts}


def _check_metrics(objective: str, segment: Segment, expected: Mapping[str, float]) -> None:
    assert len(expected) == len(CASES[objective].metrics)
    _compare(segment.reports[-1].metrics, expected)


def _compare(found: Mapping[str, float], expected: Mapping[str, float]) -> None:
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, rtol=METRIC, err_msg=name)


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(page())
