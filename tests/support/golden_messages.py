"""The error messages that users see most often, word for word: the one place where tests pin a message's wording.

`python -m tests.support.golden_messages tests/unit/golden_messages.json` writes them anew after a message was reworded.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hpo import (
    CategoricalParameter,
    ContinuousParameter,
    HyperbandStrategyConfig,
    HyperparameterTuner,
    IntegerParameter,
)
from hpo.job_file.reading import read_job
from hpo.record.store import JobRow, Store
from tests.support.bad_input import GOOD, RANGES, make, rows
from tests.support.job_files import JOB
from trainers import ScriptTrainer, TorchTrainer, WarmbandError, XGBoostTrainer

MOST = 60
"""How many messages the file may hold: all other tests look for names (tests/support/refusals.py)."""


def _fit(train: Any, validation: Any = GOOD) -> Callable[[], object]:
    return lambda: make().fit({"train": train, "validation": validation})


def _file(text: str | bytes) -> Callable[[], object]:
    def fit() -> None:
        Path("rows.csv").write_bytes(text if isinstance(text, bytes) else text.encode())
        make().fit({"train": GOOD, "validation": "rows.csv"})

    return fit


def _job_file(old: str, new: str) -> Callable[[], object]:
    def read() -> None:
        assert old in JOB
        Path("job.yaml").write_text(JOB.replace(old, new, 1))
        read_job(Path("job.yaml"))

    return read


def _taken_name() -> None:
    with Store() as store:
        store.create_job(JobRow(name="taken", created_at=1.0, spec={}))
    make().fit({"train": GOOD, "validation": GOOD}, job_name="taken")


CASES: dict[str, Callable[[], object]] = {
    "range: ends in the wrong order": lambda: ContinuousParameter(5, 2),
    "range: logarithm of 0": lambda: ContinuousParameter(0, 1, "Logarithmic"),
    "range: unknown scaling": lambda: ContinuousParameter(1, 2, "Log"),
    "range: no value": lambda: CategoricalParameter([]),
    "ranges: none": lambda: make(ranges={}),
    "ranges: a list": lambda: make(ranges=[ContinuousParameter(0, 1)]),
    "ranges: a plain number": lambda: make(ranges={"eta": 0.3}),
    "ranges: a name with a slash": lambda: make(ranges={"a/b": IntegerParameter(1, 2)}),
    "ranges: a misspelt hyperparameter": lambda: make(ranges={"max_dept": IntegerParameter(1, 5)}),
    "ranges: outside what XGBoost takes": lambda: make(ranges={"subsample": ContinuousParameter(0.5, 1.5)}),
    "ranges: a fraction for a whole number": lambda: make(ranges={"max_depth": ContinuousParameter(1, 10)}),
    "ranges: fixed and tuned at once": lambda: make(
        static={"eta": 0.3}, ranges={"learning_rate": ContinuousParameter(0.1, 1)}
    ),
    "ranges: the length of a trial as a fraction": lambda: make(ranges={"num_round": ContinuousParameter(1, 10)}),
    "tuner: no trainer": lambda: HyperparameterTuner("xgboost", "validation:auc", RANGES),
    "tuner: a metric without a channel": lambda: make(objective_metric_name="auc"),
    "tuner: an unknown strategy": lambda: make(strategy="Hyperbnd"),
    "tuner: an unknown objective type": lambda: make(objective_type="Max"),
    "tuner: early stopping with Hyperband": lambda: make(early_stopping_type="Auto"),
    "tuner: no jobs": lambda: make(max_jobs=0),
    "tuner: no parallel jobs": lambda: make(max_parallel_jobs=None),
    "tuner: a large seed": lambda: make(random_seed=2**63),
    "tuner: a storage path that is no string": lambda: make(storage_path=5),
    "tuner: a storage path with a password": lambda: make(storage_path="s3://key:secret@bucket/jobs"),
    "tuner: a wrong name": lambda: make(base_tuning_job_name="my job!"),
    "tuner: an option that it has not": lambda: make(max_job=3),
    "hyperband: limits in the wrong order": lambda: HyperbandStrategyConfig(3, 9),
    "hyperband: no resource": lambda: HyperbandStrategyConfig(9, 0),
    "xgboost: a misspelt hyperparameter": lambda: make(static={"etaa": 0.1}),
    "xgboost: exact trees on several workers": lambda: make(3, {"tree_method": "exact"}),
    "xgboost: no objective": lambda: XGBoostTrainer(hyperparameters={"objective": "binary:logit"}),
    "torch: no function": lambda: TorchTrainer("train.py"),
    "script: no program": lambda: ScriptTrainer(""),
    "channels: a misspelt train": lambda: make().fit({"trian": GOOD}),
    "channels: no validation": lambda: make().fit({"train": GOOD}),
    "channels: a misspelt validation": lambda: make().fit({"train": GOOD, "validaton": GOOD}),
    "data: no such file": _fit("no.csv"),
    "data: no target": _fit(GOOD.rename(columns={"label": "a1"}), GOOD),
    "data: another column": _fit(GOOD, rows(columns="zabc")),
    "data: labels of one class": _fit(rows([0.0] * 8)),
    "data: a label outside the objective's": _fit(rows([0.0, 2.0])),
    "data: a label that is missing": _fit(rows([0.0, float("nan")])),
    "data: an empty file": _file(""),
    "data: only a header": _file("label,z,a,b\n"),
    "data: a short line": _file("label,z,a,b\n1,2,3,4\n0,2,3\n"),
    "data: text in a column": _file("label,z,a,b\n1,2,3,yes\n"),
    "data: another encoding": _file("label,z,a,b\n1,2,3,\xe9\n".encode("latin-1")),
    "data: fewer rows than workers": lambda: make(9).fit({"train": GOOD, "validation": GOOD}),
    "job: a name that no job can have": lambda: make().fit({"train": GOOD, "validation": GOOD}, job_name="my job"),
    "job: a name that is taken": _taken_name,
    "job: none of that name": lambda: HyperparameterTuner.attach("churn"),
    "job file: none": lambda: read_job(Path("nowhere.yaml")),
    "job file: an unknown key": _job_file("max_jobs", "max_job"),
    "job file: a word for a number": _job_file("max_jobs: ", "max_jobs: many # "),
}
"""Calls that are refused, by what is wrong."""


GROUPS = tuple(dict.fromkeys(name.partition(":")[0] for name in CASES))
"""The topics of the cases: the first word of their names."""


def messages(group: str = "") -> dict[str, str]:
    """Return the message of each case, with FOLDER for the empty folder that it ran in, record included.

    Args:
        group: one of `GROUPS`, or all of them if empty.

    Raises:
        AssertionError: a case is not refused.
    """
    return {name: _message(name, call) for name, call in CASES.items() if not group or name.startswith(f"{group}:")}


def _message(name: str, call: Callable[[], object]) -> str:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("WARMBAND_HOME", folder)
        patch.delenv("WARMBAND_STORE", raising=False)
        try:
            call()
        except (WarmbandError, TypeError) as error:
            return str(error).replace(os.path.realpath(folder), "FOLDER").replace(folder, "FOLDER")
    raise AssertionError(f"{name}: nothing was refused")


def main(path: Path) -> None:
    """Write the messages into a JSON file."""
    path.write_text(json.dumps(messages(), indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
