"""The pages of the docs, and the ground on which their blocks run."""

from __future__ import annotations

import contextlib
import re
import shutil
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch

from hpo import (
    Callback,
    ContinuousParameter,
    HyperbandStrategyConfig,
    HyperparameterTuner,
    IntegerParameter,
    Prices,
    StrategyConfig,
)
from tests.support.boosting import CHANNELS
from tests.support.refusals import mentions, missing_names
from tests.support.snippets import PAGES, ROOT, RUN, begin, blocks
from trainers import ScalingConfig, XGBoostTrainer

PYTORCH = (ROOT / "docs" / "guides" / "pytorch.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"(?:<!-- (?:port|shown): (\w+) -->\n)?```python\n(.*?)```", PYTORCH, re.DOTALL)

ALL = [block for page in PAGES for block in blocks(page)]
HERE = "docs/guides/pytorch.md"
"""Its blocks are no one session: the tests at the end run them, each with what it belongs to."""

RUN_PAGES = sorted({block.page for block in ALL if block.language in RUN and block.reason is None} - {HERE})

LONG = {
    "docs/guides/coming-from-script-mode.md",
    "docs/guides/jobs.md",
    "docs/guides/report.md",
    "docs/guides/resuming.md",
    "docs/guides/simulating.md",
    "docs/guides/your-own-program.md",
    "docs/start/first-job.md",
    "docs/start/from-ray-tune.md",
}
"""The pages that take longest, a dozen commands or more."""

JOB = """
data: {channels: {train: {path: train.csv, target: y}, validation: {path: validation.csv, target: y}}}
trainer: {type: xgboost, num_workers: 0, hyperparameters: {objective: "binary:logistic", eval_metric: auc}}
tuning:
  objective_metric_name: validation:auc
  strategy: Hyperband
  hyperband: {max_resource: 9}
  max_jobs: 9
  random_seed: 1
  ranges: {eta: {type: continuous, min: 0.01, max: 1}, max_depth: {type: integer, min: 1, max: 6}}
"""


RANGES = {"eta": ContinuousParameter(0.01, 1), "max_depth": IntegerParameter(1, 6)}


@dataclass(frozen=True)
class Ground:
    """The files for every page's blocks: a folder with data and job files, and a record with three jobs."""

    folder: Path
    home: Path


class Stops(Callback):
    """Presses Ctrl-C when the third trial has ended."""

    def __init__(self) -> None:
        self.ended = 0

    def on_trial_end(self, trial: Any, end: Any) -> None:
        self.ended += 1
        if self.ended == 3:
            signal.raise_signal(signal.SIGINT)


def small(**options: Any) -> HyperparameterTuner:
    """The tuner that pages call `tuner`, on a few rows, in this process."""
    scaling = ScalingConfig(num_workers=0, resources_per_worker={"CPU": 1})
    static = {"objective": "binary:logistic", "eval_metric": "auc", "num_round": 9}
    return HyperparameterTuner(
        XGBoostTrainer(scaling=scaling, hyperparameters=static),
        "validation:auc",
        RANGES,
        strategy="Hyperband",
        strategy_config=StrategyConfig(HyperbandStrategyConfig(max_resource=9, min_resource=1)),
        max_jobs=9,
        random_seed=1,
        console=False,
        **options,
    )


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Ground:
    """`churn-1` was stopped by Ctrl-C, `churn-2` and `bank-1` have ended."""
    folder, home = tmp_path_factory.mktemp("folder"), tmp_path_factory.mktemp("home")
    inputs = {name: str(folder / f"{name}.csv") for name in CHANNELS}
    for name, rows in CHANNELS.items():
        rows.to_csv(inputs[name], index=False)
    for name in ("job.yaml", "bank.yaml"):
        (folder / name).write_text(JOB, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WARMBAND_HOME", str(home))
        patch.delenv("WARMBAND_STORE", raising=False)
        limits = {"max_runtime_in_seconds": 3600, "prices": Prices(per_worker_hour=0.1), "max_cost": 5}
        stopped = small(callbacks=[Stops()], **limits)
        with contextlib.suppress(KeyboardInterrupt):
            stopped.fit(inputs, job_name="churn-1")
        assert stopped.describe()["HyperParameterTuningJobStatus"] == "Stopped"
        for name in ("churn-2", "bank-1"):
            small().fit(inputs, job_name=name)
    for each in (folder, home):
        shutil.copytree(each, each.with_name(f"{each.name}-kept"))
    return Ground(folder, home)


@pytest.fixture
def fresh(ground: Ground) -> Ground:
    """As it was when it was made, at the same place: the record names files by their paths."""
    for each in (ground.folder, ground.home):
        shutil.rmtree(each)
        shutil.copytree(each.with_name(f"{each.name}-kept"), each)
    return ground


def run_page(page: str, fresh: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the blocks of a page in their order: Python in one namespace, commands in one shell."""
    monkeypatch.syspath_prepend(ROOT / "trainers" / "script" / "module")  # Where programs have the module `warmband`.
    tuner = small(store=f"sqlite:///{fresh.home}/warmband.db")
    names = {"trainer": tuner.estimator, "ranges": RANGES, "tuner": tuner, "train": loop}
    with begin(fresh.folder, fresh.home, monkeypatch, names) as session:
        for block in blocks(ROOT / page):
            if block.reason is None:
                session.run(block)
        if page == "docs/start/pytorch-function.md":
            learned(session.names["tuner"].describe()["Summary"])
        if page == "docs/start/from-ray-tune.md":
            as_planned(session.names["tuner"].describe()["Summary"], (ROOT / page).read_text(encoding="utf-8"))


def loop(context: Any) -> None:
    """The training function that pages call `train`."""


def learned(summary: dict[str, Any]) -> None:
    """Tuning finds what asynchronous workers learn with."""
    assert summary["best"]["value"] > 0.9
    assert summary["untuned"]["value"] < 0.5


def shown_in(page: str, *names: object) -> list[str]:
    """The lines of a page that have all of these names."""
    return [line for line in page.splitlines() if not missing_names(line, *names)]


def as_planned(summary: dict[str, Any], page: str) -> None:
    """The page shows what a run gives, as far as that follows from the plan."""
    ended = summary["trials"]
    assert shown_in(page, f"{ended['Completed']} completed", f"{ended['Stopped']} stopped")
    mentions(page, f"{summary['resource_used']} of 81")


def run(code: str, names: dict | None = None, *, workers: int) -> dict:
    """Runs a script in this process; where it has `workers`, they are simulated or left out."""
    assert f"num_workers={workers}" in code
    names = {"__name__": "shown", **(names or {})}
    exec(code.replace(f"num_workers={workers}", 'num_workers=0, resources_per_worker={"CPU": 1}'), names)
    return names


def shown(port: str) -> str:
    [code] = [code for name, code in BLOCKS if name == port]
    return code


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Networks this small are slower on several."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def first() -> dict:
    """Run the page's first script; return its names."""
    return run(BLOCKS[0][1], workers=2)
