"""Jobs whose trials are a small program, with checkpoints or without any."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from rich.console import Console

from hpo import ContinuousParameter, HyperparameterTuner
from hpo.record.store import Store
from hpo.record.tables import TrialRow
from trainers import ScalingConfig, ScriptTrainer

ACCURACY = {"Name": "accuracy", "Regex": r"epoch=(?P<step>\d+) accuracy=(?P<value>\S+)"}

WITHOUT = """
import argparse, os, time

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=9)
parser.add_argument("--eta", type=float, default=0.1)
parser.add_argument("--seconds", type=float, default=0.0)
args = parser.parse_args()
with open(os.environ["STARTS"], "a") as file:
    file.write(f"{args.eta}\\n")
weight = 0.0
for epoch in range(1, args.epochs + 1):
    time.sleep(args.seconds)
    weight += args.eta * (1 - weight)
    print(f"epoch={epoch} accuracy={weight:.6f}", flush=True)
"""
"""Begins at its first epoch, whatever there is."""

WITH = """
import argparse, json, os, time

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=9)
parser.add_argument("--eta", type=float, default=0.1)
parser.add_argument("--seconds", type=float, default=0.0)
args = parser.parse_args()
with open(os.environ["STARTS"], "a") as file:
    file.write(f"{args.eta}\\n")
path = os.path.join(os.environ["SM_CHECKPOINT_DIR"], "state.json")
epoch, weight = json.load(open(path)) if os.path.exists(path) else (0, 0.0)
while epoch < args.epochs:
    time.sleep(args.seconds)
    epoch, weight = epoch + 1, weight + args.eta * (1 - weight)
    print(f"epoch={epoch} accuracy={weight:.6f}", flush=True)
    with open(path + ".new", "w") as file:
        json.dump([epoch, weight], file)
    os.replace(path + ".new", path)
with open(os.path.join(os.environ["SM_MODEL_DIR"], "model.json"), "w") as file:
    json.dump([epoch, weight], file)
"""
"""Goes on from its checkpoint."""


class ScriptJob:
    """A job of such a program.

    Args:
        folder: of everything that it writes.
        source: the program.
        workers: of a gang; 0 is this process, without Ray.
        static: hyperparameters beside nine epochs.
        trainer: other arguments of the trainer.
        options: of the tuner.
    """

    def __init__(
        self,
        folder: Path,
        source: str = WITH,
        *,
        workers: int = 0,
        static: dict[str, Any] | None = None,
        trainer: dict[str, Any] | None = None,
        **options: Any,
    ) -> None:
        self.folder, self._printed = folder, io.StringIO()
        self._starts = folder / "starts"
        (folder / "source").mkdir(parents=True, exist_ok=True)
        (folder / "source" / "train.py").write_text(source)
        self.store = f"sqlite:///{folder}/store.db"
        made = ScriptTrainer(
            "train.py",
            source_dir=folder / "source",
            scaling=ScalingConfig(num_workers=workers),
            hyperparameters={"epochs": 9, **(static or {})},
            environment={"STARTS": str(self._starts)},
            **{"metric_definitions": [ACCURACY], "grace_period_s": 5, "report_timeout_s": 60, **(trainer or {})},
        )
        self.tuner = HyperparameterTuner(
            made,
            "accuracy",
            options.pop("ranges", {"eta": ContinuousParameter(0.01, 0.5, "Logarithmic")}),
            storage_path=str(folder),
            store=self.store,
            console=Console(file=self._printed, width=400),
            **{"max_jobs": 6, "random_seed": 1, **options},
        )

    def fit(self, name: str = "job") -> list[TrialRow]:
        """Runs it; its tuned trials."""
        self.tuner.fit(job_name=name)
        return self.trials(name)

    def trials(self, name: str = "job") -> list[TrialRow]:
        """Those of the record, without the un-tuned run."""
        with Store(self.store) as store:
            return [row for row in store.trials(name) if row.number >= 0]

    @property
    def printed(self) -> str:
        """The job's output."""
        return self._printed.getvalue()

    @property
    def starts(self) -> list[str]:
        """A line for each start of the program."""
        return self._starts.read_text().splitlines() if self._starts.exists() else []
