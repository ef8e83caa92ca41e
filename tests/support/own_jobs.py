"""Jobs of a user's own trainers and strategies: a package of theirs, tuners and a job file."""

from __future__ import annotations

import io
import os
import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from ray.train import ScalingConfig
from rich.console import Console

from hpo import ContinuousParameter, HyperbandStrategyConfig, HyperparameterTuner, StrategyConfig
from hpo.record.store import Store
from tests.support import own_code, yaml_text
from tests.support.driving import CHANNELS, Counting
from trainers import Trainer

HERE = ScalingConfig(num_workers=0, resources_per_worker={"CPU": 1})
CODE = Path(own_code.__file__).read_text(encoding="utf-8")
RANGES = {"eta": ContinuousParameter(0.05, 1)}
STATIC = {"objective": "binary:logistic", "eval_metric": "auc"}
SEARCH: dict[str, Any] = {
    "strategy": "Hyperband",
    "strategy_config": StrategyConfig(HyperbandStrategyConfig(max_resource=4, min_resource=1, suggestions="random")),
    "max_jobs": 4,
    "random_seed": 5,
}


@contextmanager
def own_package(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A folder as the working directory, which Python does not look in, with a package that marks its import."""
    package = folder / "shop"
    package.mkdir()
    (package / "__init__.py").touch()
    mark = f"\n\nopen({str(folder / 'ran')!r}, 'a').close()\n"
    (package / "training.py").write_text(CODE + mark)
    monkeypatch.chdir(folder)
    monkeypatch.setattr("sys.path", [path for path in sys.path if path not in ("", str(folder))])
    monkeypatch.setenv("WARMBAND_STORE", f"sqlite:///{folder}/record.db")
    forget()
    yield
    forget()


def forget() -> None:
    """As in another process: the package is not imported."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "shop"]:
        del sys.modules[name]


def given(folder: Path, name: str) -> Any:
    """Something of the package, as a user's program has it, which then ends."""
    sys.path.insert(0, str(folder))
    try:
        return getattr(import_module("shop.training"), name)
    finally:
        sys.path.remove(str(folder))
        forget()
        (folder / "ran").unlink()


def tuner(folder: Path, trainer: Trainer, ranges: dict[str, Any], **options: Any) -> HyperparameterTuner:
    quiet = Console(file=io.StringIO())
    where = str(folder / "jobs")
    settings = {"storage_path": where, "console": quiet, **SEARCH, **options}
    return HyperparameterTuner(trainer, "validation:auc", ranges, **settings)


def own_trainer(folder: Path, **options: Any) -> Trainer:
    made: Trainer = given(folder, "Churn")(scaling=HERE, hyperparameters=STATIC, **options)
    return made


def line(folder: Path) -> Trainer:
    """A trainer that owes nothing to Warmband's, whose trials take no time."""
    made: Trainer = given(folder, "Line")(scaling=HERE, hyperparameters={"steps": 4, "eta": 0.1})
    return made


def halves(folder: Path, **options: Any) -> dict[str, Any]:
    """The search by a strategy of the user's own."""
    return {"strategy": given(folder, "Halves")(**options), "strategy_config": None, "max_jobs": 8}


def interrupted(tuner: HyperparameterTuner, at: int = 5) -> None:
    """Begins a job that Ctrl-C stops at its `at`-th report."""
    tuner.callbacks = (Counting(at, lambda: os.kill(os.getpid(), signal.SIGINT)),)
    with pytest.raises(KeyboardInterrupt):
        tuner.fit(CHANNELS, job_name="job")
    tuner.callbacks = ()


def status() -> str:
    with Store() as store:
        return store.job("job").status


def job_file(folder: Path, tuning: Mapping[str, Any] | None = None, **trainer: Any) -> str:
    frames = {name: folder / f"{name}.csv" for name in CHANNELS}
    for name, path in frames.items():
        CHANNELS[name].to_csv(path, index=False)
    path = folder / "job.yaml"
    path.write_text(
        yaml_text.dump(
            {
                "name": "job",
                "data": {"channels": {name: {"path": str(file)} for name, file in frames.items()}},
                "trainer": {"type": "custom", "num_workers": 0, "hyperparameters": STATIC, **trainer},
                "tuning": {
                    "objective_metric_name": "validation:auc",
                    "ranges": {"eta": {"type": "continuous", "min": 0.05, "max": 1.0}},
                    "hyperband": {"max_resource": 4, "suggestions": "random"},
                    "max_jobs": 4,
                    **(tuning or {}),
                },
            }
        )
    )
    return str(path)
