"""A driver on the Ray of `RAY_ADDRESS`: runs one tuning job, which waits in its second rung for a file.

    python -m tests.support.docker.watched_job FOLDER

What happened is printed as lines of JSON; a line on standard input lets it go on when Ray is up and the job has ended.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import time
from pathlib import Path
from typing import Any

import ray
import torch
from ray.train import ScalingConfig
from ray.util.state import get_log, list_actors, list_logs
from torch import nn
from torch.nn import functional

from hpo import CategoricalParameter, HyperbandStrategyConfig, HyperparameterTuner, StrategyConfig
from trainers import ParameterServerTrainer, TrainContext
from trainers.datasets import load

GATE_SECONDS = 300.0
JOB = "watched"
STATIC, RAISES, DIVERGES = 0.01, 5.0, 1e30

logger = logging.getLogger(__name__)


def train(context: TrainContext) -> None:
    """A small network; a tuned one waits before its second epoch until the gate is there."""
    lr, gate = context.hyperparameters["lr"], Path(context.hyperparameters["gate"])
    if lr == RAISES:
        raise ValueError("this learning rate is not to be")
    model = context.prepare_model(nn.Sequential(nn.Linear(64, 16), nn.ReLU(), nn.Linear(16, 10)))
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    if context.checkpoint is not None:
        model.load_state_dict(context.checkpoint["model"])
    batches = context.prepare_data("train", labels=torch.int64)
    validation = context.shard("validation", labels=torch.int64)
    for epoch in context.epochs():
        logger.info("an epoch begins", extra={"epoch": epoch})
        waited = time.monotonic()
        while lr != STATIC and epoch > 1 and not gate.exists() and time.monotonic() < waited + GATE_SECONDS:
            time.sleep(0.05)
        for features, labels in batches:
            context.step(functional.cross_entropy(model(features), labels), optimizer)
        with torch.no_grad():
            right = (model(validation.features).argmax(1) == validation.labels).sum()
        right, rows = context.sum(torch.stack([right, torch.tensor(len(validation))])).tolist()
        context.report({"validation:accuracy": right / rows}, checkpoint={"model": model.state_dict()})


def tell(what: str, **more: Any) -> None:
    """One line for whoever started this."""
    sys.stdout.write(json.dumps({"what": what, **more}) + "\n")
    sys.stdout.flush()


def listed(address: str) -> dict[str, Any]:
    """Return the job's entries in Ray's state API, which `ray logs` and the dashboard use too."""
    node = ray.get_runtime_context().get_node_id()

    def log(name: str) -> str:
        return "".join(get_log(address=address, node_id=node, filename=name, tail=-1))

    workers = list_logs(address=address, node_id=node, glob_filter="train/ray-train-app-worker*")
    return {
        "job_log": log(f"warmband-{JOB}.log"),
        "worker_logs": [log(name) for names in workers.values() for name in names],
        "actors": [{"class_name": actor.class_name, "name": actor.name} for actor in list_actors(address=address)],
    }


def main(folder: Path) -> None:
    """Joins Ray, runs the job, and waits between."""
    found: Any = ray.init(log_to_driver=False)
    tell("up", **found.address_info, pid=os.getpid())
    digits = load("digits")
    trainer = ParameterServerTrainer(
        train,
        scaling=ScalingConfig(num_workers=2),
        hyperparameters={"per_worker_batch_size": 32, "mode": "async", "lr": STATIC, "gate": str(folder / "gate")},
        metrics=["validation:accuracy"],
    )
    tuner = HyperparameterTuner(
        trainer,
        "validation:accuracy",
        {"lr": CategoricalParameter([0.02, 0.05, 0.1, RAISES, DIVERGES])},
        strategy="Hyperband",
        strategy_config=StrategyConfig(HyperbandStrategyConfig(max_resource=3, min_resource=1, suggestions="random")),
        max_jobs=10,
        random_seed=5,
    )
    sys.stdin.readline()
    tuner.fit({"train": digits.train, "validation": digits.validation}, job_name=JOB)
    tell("ended", **listed(found.address_info["address"]))
    sys.stdin.readline()
    ray.shutdown()
    tell("left")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
