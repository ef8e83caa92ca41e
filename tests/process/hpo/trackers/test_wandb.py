"""What the files of Weights & Biases hold of a job, read by the package's own messages, and what offline means."""

from __future__ import annotations

import json
import math
import struct
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from wandb.proto.wandb_internal_pb2 import Record

from hpo.search.trial import status_of
from hpo.trackers import WeightsAndBiases
from tests.support.followed import DIVERGING, FAILING, ODD, STATIC, best_configuration, follow, follow_repeats
from tests.support.hpo.trackers.wandb import alone  # noqa: F401  # Of every test.
from tests.support.simulated import METRIC

HEADER, BLOCK = 7, 32_768


@dataclass
class Found:
    """One run as its file has it."""

    group: str = ""
    project: str = ""
    kind: str = ""
    config: dict[str, Any] = field(default_factory=dict)
    history: dict[int, dict[str, float]] = field(default_factory=dict)
    summary: dict[str, Any] = field(default_factory=dict)
    exit_code: int | None = None


def records(file: Path) -> Iterator[Record]:
    """The records of a .wandb file: a log of LevelDB's, behind a header."""
    data = file.read_bytes()
    assert data[:4] == b":W&B"
    at, parts = HEADER, b""
    while at + HEADER <= len(data):
        if BLOCK - at % BLOCK < HEADER:
            at += BLOCK - at % BLOCK
            continue
        length, kind = struct.unpack("<HB", data[at + 4 : at + HEADER])
        at += HEADER
        parts += data[at : at + length]
        at += length
        if kind in (1, 4):  # Whole, or the last part of one.
            yield Record.FromString(parts)
            parts = b""


def key(item: Any) -> str:
    return item.key or ".".join(item.nested_key)


def read(folder: Path) -> dict[str, Found]:
    """Every run of a folder, by name."""
    runs: dict[str, Found] = defaultdict(Found)
    for file in folder.glob("wandb/offline-run-*/run-*.wandb"):
        found = Found()
        for record in records(file):
            kind = record.WhichOneof("record_type")
            if kind == "run":
                runs[record.run.display_name] = found
                found.group, found.project, found.kind = record.run.run_group, record.run.project, record.run.job_type
                found.config |= {key(item): json.loads(item.value_json) for item in record.run.config.update}
            elif kind == "history":
                values = {key(item): json.loads(item.value_json) for item in record.history.item}
                assert values["_step"] not in found.history, "each step once"
                found.history[values["_step"]] = values
            elif kind == "summary":
                found.summary |= {key(item): json.loads(item.value_json) for item in record.summary.update}
            elif kind == "exit":
                found.exit_code = record.exit.exit_code
    return dict(runs)


def read_whole(folder: Path, runs: int) -> dict[str, Found]:
    """The same once all of them have ended: the process that writes the files is a moment behind."""
    deadline = time.monotonic() + 60
    while len(found := read(folder)) < runs or any(run.exit_code is None for run in found.values()):
        assert time.monotonic() < deadline, f"only {sorted(found)} ended in a minute"
        time.sleep(0.1)
    return found


def test_offline_files_hold_the_job_and_its_trials(tmp_path: Path) -> None:
    controller, reported, said = follow(WeightsAndBiases("churn", mode="offline", folder=tmp_path))
    assert not said
    runs = read_whole(tmp_path, len(controller.runs) + 1)
    assert runs.keys() == {"job", *controller.runs}
    assert {run.group for run in runs.values()} == {"job"}
    assert {run.project for run in runs.values()} == {"churn"}
    parent = runs.pop("job")
    best = controller.best()
    assert best is not None
    assert (parent.kind, parent.exit_code) == ("job", 0)
    assert parent.summary["job/best"] == best.value
    assert parent.summary["job/best_trial"] == best.id
    assert parent.summary["job/worker_seconds"] == pytest.approx(controller.ledger.total)
    assert parent.config["warmband"]["ranges"]["eta"]["max_value"] == 1.0
    for name, run in controller.runs.items():
        found, failed = runs[name], name in (FAILING, DIVERGING)
        assert (found.kind, found.exit_code) == ("trial", int(failed))
        assert {**STATIC, **run.hyperparameters}.items() <= found.config.items()
        steps = {each.step: each.metrics for each in reported.get(name, [])}
        assert found.history.keys() == steps.keys()
        for step, metrics in steps.items():
            for metric in (METRIC, ODD, "huge"):
                assert repr(float(found.history[step][metric])) == repr(metrics[metric])
        assert found.summary["trial/status"] == status_of(run)
        assert found.summary.get("trial/objective") == (None if failed else run.value)
    assert math.isnan(float(runs[DIVERGING].history[1][METRIC]))


def test_the_best_of_a_job_with_repeats_is_the_mean_of_its_trials(tmp_path: Path) -> None:
    controller, said = follow_repeats(WeightsAndBiases("churn", mode="offline", folder=tmp_path))
    assert not said
    runs = read_whole(tmp_path, len(controller.runs) + 1)
    parent = runs.pop("job")
    assert runs.keys() == controller.runs.keys()
    objectives = {
        name: run.summary["trial/objective"] for name, run in runs.items() if "trial/objective" in run.summary
    }
    expected = best_configuration(objectives)
    assert {name: parent.summary[f"job/{name}"] for name in expected} == pytest.approx(expected)
    assert objectives[parent.summary["job/best_trial"]] == parent.summary["job/best_trial_value"]
