"""Whole tuning jobs in this process: the answer of the cluster, and no cluster."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path

import pytest
from ray.train import ScalingConfig
from rich.console import Console

from hpo import HyperbandStrategyConfig, HyperparameterTuner, StrategyConfig
from hpo.store import Store
from tests.hpo.test_tuner import CHANNELS, RANGES, STATIC
from trainers import XGBoostTrainer, storage

ROOT = str(Path(__file__).parents[2])


@dataclass(frozen=True)
class Answer:
    """What a job decided, and the models behind it."""

    resources: dict[str, int]
    values: dict[str, float]
    best: str
    models: dict[str, bytes]
    printed: str


def answer(workers: int, folder: Path, threads: int = 1) -> Answer:
    """The answer of the README's job, all its 30 trials, with so many workers."""
    printed = io.StringIO()
    tuner = HyperparameterTuner(
        XGBoostTrainer(
            scaling=ScalingConfig(num_workers=workers, resources_per_worker={"CPU": threads}), hyperparameters=STATIC
        ),
        "validation:auc",
        RANGES,
        strategy="Hyperband",
        max_jobs=30,
        max_parallel_jobs=2,
        strategy_config=StrategyConfig(HyperbandStrategyConfig(max_resource=30, min_resource=1)),
        random_seed=1729,
        storage_path=str(folder),
        num_to_keep=None,
        store=f"sqlite:///{folder}/store.db",
        console=Console(file=printed, width=120),
    )
    tuner.fit(CHANNELS, job_name="job")
    with Store(f"sqlite:///{folder}/store.db") as store:
        trials = store.trials("job")
    return Answer(
        resources={trial.trial_id: trial.resource for trial in trials},
        values={trial.trial_id: trial.objective or 0.0 for trial in trials},
        best=tuner.best_training_job(),
        models={trial.trial_id: storage.read(trial.checkpoint) for trial in trials},
        printed=printed.getvalue(),
    )


@pytest.fixture(scope="module")
def in_hand(tmp_path_factory: pytest.TempPathFactory) -> Answer:
    return answer(0, tmp_path_factory.mktemp("hand"))


def test_it_says_that_trials_run_one_after_another(in_hand: Answer) -> None:
    assert "one trial after another in this process, not 2 at once" in in_hand.printed
    assert sum(in_hand.resources.values()) == 334 + 30


def test_a_gang_of_one_gives_the_same_answer_to_the_last_byte(
    ray_cluster: None, in_hand: Answer, tmp_path: Path
) -> None:
    on_ray = answer(1, tmp_path)
    assert (on_ray.resources, on_ray.values, on_ray.best) == (in_hand.resources, in_hand.values, in_hand.best)
    assert on_ray.models == in_hand.models


def test_more_threads_decide_alike(in_hand: Answer, tmp_path: Path) -> None:
    threaded = answer(0, tmp_path, threads=2)
    assert (threaded.resources, threaded.best) == (in_hand.resources, in_hand.best)
    assert threaded.values == pytest.approx(in_hand.values, abs=1e-3)


WITHOUT_RAY = """
    import os, pathlib
    import ray
    from tests.hpo.test_in_hand import answer
    answer(0, pathlib.Path(os.environ["WARMBAND_HOME"]))
    assert not ray.is_initialized()
    children = pathlib.Path(f"/proc/self/task/{os.getpid()}/children").read_text()
    assert not children, children
    print("done")
"""


def test_neither_ray_nor_any_process_is_started(home: Path) -> None:
    home.mkdir()
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(WITHOUT_RAY)],
        env={**os.environ, "PYTHONPATH": ROOT, "WARMBAND_HOME": str(home)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.stdout.strip() == "done", done.stderr
