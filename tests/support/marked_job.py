"""A tuning job that writes where it stands, one mark a moment, for who types Ctrl-C there: `python -m` this module."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas

NAME = "interrupted"
METRIC = "validation:auc"
STATIC = {"objective": "binary:logistic", "eval_metric": "auc", "eta": 0.3}
LEAST, MOST = 1, 10
"""Of max_depth, which is tuned."""

UNITS = 30


def channels() -> dict[str, pandas.DataFrame]:
    """A small table for each channel, the target first."""
    import numpy as np
    import pandas

    random = np.random.default_rng(0)
    found = {}
    for name, rows in {"train": 2000, "validation": 500}.items():
        frame = pandas.DataFrame(random.normal(size=(rows, 6)).round(1), columns=list("abcdef"))
        noise = 1.5 * random.normal(size=rows)
        frame.insert(0, "y", (frame["a"] + frame["b"] * frame["c"] + noise > 0).astype("float32"))
        found[name] = frame
    return found


def mark(moment: str) -> None:
    """Writes that a moment begins; past `sys.stdout`, which a live view holds back."""
    print(f"[at {moment}]", file=sys.__stdout__, flush=True)


def marked(moment: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """The same function, which writes that it begins."""

    @wraps(function)
    def run(*arguments: Any, **options: Any) -> Any:
        mark(moment)
        return function(*arguments, **options)

    return run


def main(trials: int, command: list[str]) -> None:
    """Runs a job of so many trials; with a command, as `hpo` does it, else as a user's script does."""
    mark("import")
    from hpo import HyperbandStrategyConfig, HyperparameterTuner, IntegerParameter, StrategyConfig
    from hpo.cli import main as run_hpo
    from hpo.observers.callbacks import Callbacks
    from trainers import XGBoostTrainer
    from trainers.gangs.ray_gangs import RayGangs

    ray = import_module("ray")  # Behind ours; see trainers.loopback.
    train = import_module("ray.train")
    for owner, name in ((ray, "init"), (ray, "shutdown"), (RayGangs, "close"), (Callbacks, "job_end")):
        setattr(owner, name, marked(name, getattr(owner, name)))
    if command:
        sys.argv = ["hpo", *command]
        run_hpo()
        return
    scaling = train.ScalingConfig(num_workers=1, resources_per_worker={"CPU": 1})
    HyperparameterTuner(
        XGBoostTrainer(scaling=scaling, hyperparameters=STATIC),
        METRIC,
        {"max_depth": IntegerParameter(LEAST, MOST)},
        strategy="Hyperband",
        strategy_config=StrategyConfig(
            HyperbandStrategyConfig(max_resource=UNITS, min_resource=1, suggestions="random")
        ),
        max_jobs=trials,
        random_seed=1729,
    ).fit(channels(), job_name=NAME)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
