"""The beginning of a program that learns a number, where its value is, and what it has to be after so many units."""

from __future__ import annotations

from typing import Any

import pytest

from hpo.record.tables import TrialRow

HEAD = """
import argparse, json, os, sys, time
p = argparse.ArgumentParser()
p.add_argument("--eta", type=float, default=0.1); p.add_argument("--epochs", type=int, default=9)
p.add_argument("--num-epochs", type=int, default=4); p.add_argument("--max_steps", type=int, default=400)
a, _ = p.parse_known_args()
weight = 0.0
"""


def definition(regex: str) -> dict[str, Any]:
    return {"metric_definitions": [{"Name": "accuracy", "Regex": regex}]}


def true_value(trial: TrialRow, units: int) -> Any:
    return pytest.approx(1 - (1 - trial.hyperparameters["eta"]) ** units, abs=1e-4)
