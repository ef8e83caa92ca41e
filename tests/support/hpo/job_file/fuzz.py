"""A complete job file, and random changes of it."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Sequence
from typing import Any

from hypothesis import HealthCheck, settings, strategies as st

from hpo import HyperparameterTuner
from hpo.job_file.reading import read_job
from hpo.strategies.hyperband import Plan
from tests.support.properties import examples
from trainers.errors import WarmbandError

JOB = {
    "name": "small",
    "data": {"channels": {"train": {"path": "train.csv", "target": "y"}, "validation": {"path": ["a.csv", "b.csv"]}}},
    "trainer": {
        "type": "xgboost",
        "num_workers": 2,
        "use_gpu": False,
        "resources_per_worker": {"CPU": 1},
        "accelerator_type": None,
        "label_selector": {"zone": "in(a, b)"},
        "hyperparameters": {"eval_metric": "auc", "num_round": 9},
    },
    "tuning": {
        "objective_metric_name": "validation:auc",
        "objective_type": "Maximize",
        "objective_value": "last",
        "strategy": "Hyperband",
        "hyperband": {"max_resource": 9, "min_resource": 1, "reduction_factor": 3},
        "max_jobs": 4,
        "max_parallel_jobs": 1,
        "max_runtime_in_seconds": 60,
        "random_seed": 1,
        "ranges": {
            "eta": {"type": "continuous", "min": 0.001, "max": 1, "scaling": "Logarithmic"},
            "max_depth": {"type": "integer", "min": 1, "max": 10},
            "updater": {"type": "categorical", "values": ["gbtree", 1, 1.5, True, None]},
        },
    },
    "storage_path": "/somewhere",
    "store": None,
}

# What must not reach a user: the words of the libraries underneath.
JARGON = re.compile(
    r"pydantic|Traceback|union_tag|discriminator|tagged|Input should|validation error|constructor", re.I
)


def paths(value: Any, under: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the path of every value of the job."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [found for key, item in items for found in ((*under, key), *paths(item, (*under, key)))]


PATHS = paths(JOB)


def outcome(text: str | bytes, overrides: Sequence[str] = ()) -> Plan | WarmbandError:
    """The plan that a job file is for, or the error that it ends in; anything else raised fails the test."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(text.encode(errors="replace") if isinstance(text, str) else text)
        file.flush()
        try:
            return HyperparameterTuner(**read_job(file.name, overrides).arguments()).plan()
        except WarmbandError as error:
            return error


def check_words(error: WarmbandError) -> None:
    assert not JARGON.search(str(error)), error


FUZZ = settings(max_examples=examples(150), deadline=None, suppress_health_check=[HealthCheck.too_slow])


SETS = st.builds("{}={}".format, st.sampled_from([".".join(map(str, path)) for path in PATHS]), st.text(max_size=9))
