"""Eight small tuning jobs whose answers are kept in a file: `python -m tests.support.frozen FILE` writes it.

One job a row of `JOBS`: XGBoost, PyTorch over AllReduce and parameter servers, in this process and on gangs, elastic,
of several sizes, stopped and resumed, with trials that raise. Everything random has a seed, and every worker one
thread, so that the same libraries on the same processor give the same bytes.
"""

from __future__ import annotations

import hashlib
import io
import json
import logging
import math
import platform
import signal
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rich.console import Console

from hpo import (
    Callback,
    CategoricalParameter,
    ContinuousParameter,
    HyperbandStrategyConfig,
    HyperparameterTuner,
    IntegerParameter,
    StrategyConfig,
)
from hpo.record import Store, best_trial, split
from tests.support import boosting
from tests.support.exact_torch_job import train
from trainers import ParameterServerTrainer, ScalingConfig, TorchTrainer, TrainContext, Trainer, XGBoostTrainer
from trainers.datasets import load

LIBRARIES = ("numpy", "torch", "xgboost")
ARITHMETIC = ("sse", "ssse", "avx", "fma", "f16c", "amx")
"""Prefixes of the processor flags that decide how libraries calculate."""

# ---- the jobs


def failing(context: TrainContext) -> None:
    """Trains, but raises for large learning rates at once and for small ones at their second rung."""
    rate = context.hyperparameters["lr"]
    if rate > 0.25:
        raise ValueError("the learning rate is too large")
    if rate < 0.03 and context.checkpoint is not None:
        raise ValueError("the learning rate is too small")
    train(context)


@dataclass(frozen=True, kw_only=True)
class Job:
    """A tuning job.

    Args:
        make: makes its trainer.
        channels: makes its data.
        ranges: what is tuned.
        options: the tuner's.
        stop_at: the report at which SIGTERM stops it, to be resumed; 0 for a job that runs through.
    """

    make: Callable[[], Trainer]
    channels: Callable[[], Mapping[str, Any]]
    ranges: Mapping[str, Any]
    options: Mapping[str, Any] = field(default_factory=dict)
    stop_at: int = 0


def workers(number: Any) -> ScalingConfig:
    """Gangs of workers with a thread each; of 0, this process."""
    return ScalingConfig(num_workers=number, resources_per_worker={"CPU": 1})


def hyperband(most: int) -> dict[str, Any]:
    """Options of a job that rations so many units a trial."""
    config = HyperbandStrategyConfig(max_resource=most, min_resource=1, suggestions="random")
    return {"strategy": "Hyperband", "strategy_config": StrategyConfig(config)}


def table() -> Mapping[str, Any]:
    """Rows for XGBoost."""
    return boosting.CHANNELS


def digits() -> Mapping[str, Any]:
    """Images for PyTorch."""
    found = load("digits")
    parts = {"train": found.train, "validation": found.validation}
    return {name: (images[:240], labels[:240]) for name, (images, labels) in parts.items()}


TREES = {"objective": "binary:logistic", "eval_metric": "auc", "eta": 0.3}
TREE_RANGES = {
    "eta": ContinuousParameter(0.01, 1, "Logarithmic"),
    "max_depth": IntegerParameter(1, 8),
    "subsample": ContinuousParameter(0.3, 1),
    "colsample_bytree": ContinuousParameter(0.2, 1),
}
RATES = {"lr": ContinuousParameter(0.01, 0.5, "Logarithmic")}
LOSS: dict[str, Any] = {"metrics": ["validation:loss"]}

IN_HAND = {
    "xgboost": Job(
        make=lambda: XGBoostTrainer(scaling=workers(0), hyperparameters=TREES),
        channels=table,
        ranges=TREE_RANGES,
        options={**hyperband(9), "max_jobs": 12},
    ),
    "xgboost-resumed": Job(
        make=lambda: XGBoostTrainer(scaling=workers(0), hyperparameters={**TREES, "num_round": 6}),
        channels=table,
        ranges=TREE_RANGES,
        options={"strategy": "Random", "max_jobs": 5, "objective_value": "best"},
        stop_at=14,
    ),
    "pytorch-failing": Job(
        make=lambda: TorchTrainer(
            failing, scaling=workers(0), hyperparameters={"lr": 0.1, "per_worker_batch_size": 20}, **LOSS
        ),
        channels=digits,
        ranges=RATES,
        options={**hyperband(4), "max_jobs": 9},
    ),
    "pytorch-resumed": Job(
        make=lambda: TorchTrainer(
            train, scaling=workers(0), hyperparameters={"lr": 0.1, "per_worker_batch_size": 20}, **LOSS
        ),
        channels=digits,
        ranges={**RATES, "per_worker_batch_size": CategoricalParameter([10, 20, 40])},
        options={**hyperband(4), "max_jobs": 6},
        stop_at=6,
    ),
    "servers-simulated": Job(
        make=lambda: ParameterServerTrainer(
            train,
            scaling=workers(0),
            hyperparameters={"lr": 0.1, "per_worker_batch_size": 20, "delay_ms": 5, "num_servers": 2},
            **LOSS,
        ),
        channels=digits,
        ranges={
            **RATES,
            "mode": CategoricalParameter(["sync", "async", "bounded"]),
            "num_workers": CategoricalParameter([1, 2, 3]),
        },
        options={**hyperband(3), "max_jobs": 9},
    ),
}
"""Jobs in this process."""

ON_RAY = {
    "xgboost-sizes": Job(
        make=lambda: XGBoostTrainer(scaling=workers(1), hyperparameters=TREES),
        channels=table,
        ranges={**TREE_RANGES, "num_workers": CategoricalParameter([1, 3])},
        options={**hyperband(9), "max_jobs": 9},
    ),
    "pytorch-elastic": Job(
        make=lambda: TorchTrainer(
            train, scaling=workers((1, 2)), hyperparameters={"lr": 0.1, "global_batch_size": 40}, **LOSS
        ),
        channels=digits,
        ranges=RATES,
        options={**hyperband(3), "max_jobs": 5},
    ),
    "servers-failing": Job(
        make=lambda: ParameterServerTrainer(
            failing,
            scaling=workers(2),
            hyperparameters={"lr": 0.1, "per_worker_batch_size": 20, "mode": "sync", "num_servers": 2},
            **LOSS,
        ),
        channels=digits,
        ranges=RATES,
        options={**hyperband(3), "max_jobs": 7},
    ),
}
"""Jobs on gangs, which need a Ray of 4 CPUs."""

JOBS = {**IN_HAND, **ON_RAY}

# ---- their answers


class Stops(Callback):
    """Stops the job at its n-th report, as a machine does that shuts down."""

    def __init__(self, at: int) -> None:
        self._left = at

    def on_trial_report(self, trial: Any, report: Any) -> None:
        self._left -= 1
        if self._left == 0:
            signal.raise_signal(signal.SIGTERM)


def answer(name: str, folder: Path, **options: Any) -> dict[str, Any]:
    """Runs a job, and reads what it came to from its record and its checkpoints.

    Args:
        name: one of `JOBS`.
        folder: where it keeps what it writes.
        **options: the tuner's, instead of the job's own.

    Returns:
        "status", "winner" (the number of a trial), and "trials": a dict for each, in the order of suggestion.
    """
    job = JOBS[name]
    loss = job.make().metrics(["train", "validation"]) == ["validation:loss"]
    settings: dict[str, Any] = {
        "objective_type": "Minimize" if loss else "Maximize",
        "random_seed": 11,
        "num_to_keep": None,
        "storage_path": str(folder),
        "store": f"sqlite:///{folder}/record.db",
        "console": Console(file=io.StringIO()),
        "callbacks": (Stops(job.stop_at),),
    }
    objective = "validation:loss" if loss else "validation:auc"
    tuner = HyperparameterTuner(job.make(), objective, job.ranges, **{**settings, **job.options, **options})
    try:
        tuner.fit(job.channels(), job_name=name)
        stopped = False
    except SystemExit:  # What SIGTERM comes to.
        stopped = True
        assert tuner.describe()["HyperParameterTuningJobStatus"] == "Stopped"
        tuner.resume()
    assert stopped == bool(job.stop_at), f"{name} was stopped: {stopped}"
    analytics = tuner.analytics()
    rows = analytics.dataframe().to_dict("records")
    names = [row["TrainingJobName"] for row in rows]
    tuned = list(job.ranges)
    with Store({**settings, **job.options, **options}["store"]) as store:
        trials, _ = split(store.trials(name))
        best = best_trial(store.job(name), trials)
    assert best is not None, "a trial has a value"
    return {
        "status": tuner.describe()["HyperParameterTuningJobStatus"],
        "winner": names.index(best.trial_id),
        "trials": [trial(row, tuned, analytics.curve(row["TrainingJobName"]), objective) for row in rows],
    }


def trial(row: Mapping[str, Any], tuned: list[str], curve: Any, objective: str) -> dict[str, Any]:
    """Return a trial's row of the analytics, and the objective at each trained unit."""
    checkpoint = row["Checkpoint"]
    return {
        "hyperparameters": {name: plain(row[name]) for name in tuned},
        "status": row["Status"],
        "bracket": plain(row["Bracket"]),
        "resource": plain(row["Resource"]),
        "values": [] if curve.empty else [float(value) for value in curve[objective]],
        "sha256": hashlib.sha256(Path(checkpoint).read_bytes()).hexdigest() if checkpoint else "",
    }


def plain(value: Any) -> Any:
    """NumPy's numbers as Python's."""
    return value.item() if hasattr(value, "item") else value


def made_on() -> dict[str, Any]:
    """The libraries and the processor on which the bytes of an answer depend."""
    text = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
    processor = dict(
        (part.strip() for part in line.split(":", 1)) for line in text.partition("\n\n")[0].splitlines() if ":" in line
    )
    flags = sorted(flag for flag in processor.get("flags", "").split() if flag.startswith(ARITHMETIC))
    return {
        "versions": {
            "python": ".".join(platform.python_version_tuple()[:2]),
            **{name: version(name) for name in LIBRARIES},
        },
        "processor": processor.get("model name", platform.machine()),
        "vendor": processor.get("vendor_id", ""),
        "flags": " ".join(flags),
    }


# ---- the file


def lines(found: Mapping[str, Any]) -> list[str]:
    """An answer as text: what the job came to, and a line a trial."""
    whole = {key: value for key, value in found.items() if key != "trials"}
    return [json.dumps(each, sort_keys=True) for each in (whole, *found["trials"])]


def text_of(answers: Mapping[str, Mapping[str, Any]]) -> str:
    """The file: JSON, sorted, a trial a line, so that a difference of two files shows the trials that differ."""
    jobs = []
    for name in sorted(answers):
        whole, *trials = lines(answers[name])
        jobs.append(f'"{name}": {{{whole[1:-1]}, "trials": [\n' + ",\n".join(trials) + "\n]}")
    made = json.dumps(made_on(), indent=1, sort_keys=True)
    return f'{{\n"made_on": {made},\n"jobs": {{\n' + ",\n".join(jobs) + "\n}\n}\n"


def is_exact(made: Mapping[str, Any]) -> bool:
    """Whether answers that were made there have to be given here to the last byte."""
    here = made_on()
    return all(made[key] == here[key] for key in ("versions", "vendor", "flags"))


def nearly(found: Any, frozen: Any) -> Any:
    """An answer with the frozen one's digests, and its floats where they are the same to 1e-6."""
    if isinstance(found, dict) and isinstance(frozen, dict):
        return {key: nearly(each, frozen.get(key)) for key, each in found.items()} | (
            {"sha256": frozen["sha256"]} if "sha256" in found and "sha256" in frozen else {}
        )
    if isinstance(found, list) and isinstance(frozen, list) and len(found) == len(frozen):
        return [nearly(*pair) for pair in zip(found, frozen, strict=True)]
    if isinstance(found, float) and isinstance(frozen, float) and math.isclose(found, frozen, rel_tol=1e-6):
        return frozen
    return found


def main(file: Path) -> None:
    """Runs all jobs, on a Ray of its own, and writes their answers."""
    import ray

    ray.init(address="local", num_cpus=16, include_dashboard=False, logging_level=logging.ERROR, log_to_driver=False)
    with tempfile.TemporaryDirectory() as folder:
        answers = {}
        for name in JOBS:
            (place := Path(folder) / name).mkdir()
            answers[name] = answer(name, place)
    ray.shutdown()
    file.write_text(text_of(answers))


if __name__ == "__main__":
    # By its name, since workers and a resumed job import the training functions from there.
    from tests.support import frozen

    frozen.main(Path(sys.argv[1]))
