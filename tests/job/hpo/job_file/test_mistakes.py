"""What is wrong in a job file is refused by its line and key, with what to give."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hpo.job_file.reading import read_job
from tests.support.job_files import JOB, change
from tests.support.refusals import missing_names
from trainers import ConfigurationError

STRATEGIES = ("Bayesian", "Hyperband", "Random", "Grid", "ASHA")
TRAINERS = ("xgboost", "torch", "parameter_server", "script", "ray_train", "custom", "several")
RANGES = ("continuous", "integer", "normal", "categorical")
TRAIN = "data.channels.train"
ETA = "tuning.ranges.eta"
WRONG_VALUES: list[tuple[str, Any, tuple[object, ...]]] = [
    ("tuning.max_jobs", "many", ("tuning.max_jobs", "'many'", "whole", 1)),
    ("tuning.max_jobs", "10", ("tuning.max_jobs", "'10'", "whole", 1)),
    ("tuning.max_jobs", 2.5, ("tuning.max_jobs", 2.5, "whole", 1)),
    ("tuning.max_jobs", 0, ("tuning.max_jobs", 0, "whole", 1)),
    ("tuning.max_jobs", True, ("tuning.max_jobs", "true", "whole", 1)),
    ("tuning.max_parallel_jobs", None, ("tuning.max_parallel_jobs", "null", "whole", 1)),
    ("tuning.max_jobs", 10**9, ("tuning", "max_jobs", 10**9, 100000)),
    ("tuning.max_runtime_in_seconds", -1, ("tuning.max_runtime_in_seconds", -1, "whole", 1)),
    ("tuning.objective_type", "Max", ("tuning.objective_type", "'Max'", "'Maximize'", "Minimize")),
    ("tuning.strategy", "hyperbnd", ("tuning.strategy", "'hyperbnd'", *STRATEGIES, "'Hyperband'")),
    ("tuning.objective_metric_name", 5, ("tuning.objective_metric_name", 5, "text", "validation:auc", "'5'")),
    ("tuning.ranges", {}, ("tuning.ranges", "hyperparameters", "autotune")),
    ("tuning.ranges", {"a/b": {"type": "integer", "min": 1, "max": 2}}, ("tuning", "ranges", "'a/b'", "'/'")),
    (
        "tuning.hyperband",
        {"max_resource": 3, "min_resource": 9},
        ("tuning.hyperband", "max_resource", 3, "min_resource", 9),
    ),
    (
        "tuning.hyperband",
        {"max_resource": 3, "reduction_factor": 1},
        ("tuning.hyperband.reduction_factor", 1, "whole", 2),
    ),
    ("tuning.hyperband", {}, ("tuning.hyperband.max_resource", "whole", 1, "units")),
    ("trainer.num_workers", True, ("trainer.num_workers", "true", "whole", 0)),
    ("trainer.num_workers", -1, ("trainer.num_workers", -1, "whole", 0)),
    ("trainer.type", "xgbost", ("trainer.type", "'xgbost'", *TRAINERS, "'xgboost'")),
    ("trainer.hyperparameters", [1], ("trainer.hyperparameters", [1], "names", "values")),
    ("trainer.use_gpu", "yes", ("trainer.use_gpu", "'yes'", "true", "false")),
    ("trainer.resources_per_worker", {"CPU": -1}, ("trainer.resources_per_worker.CPU", -1, 0)),
    ("trainer.accelerator_type", 100, ("trainer.accelerator_type", 100, "text")),
    ("trainer.label_selector", [{"zone": "a"}], ("trainer.label_selector", "[{zone: 'a'}]", "names", "values")),
    ("trainer.label_selector", {"zone": 3}, ("trainer.label_selector.zone", 3, "text")),
    ("trainer", None, ("trainer", "null", "keys", "type")),
    ("data", {}, ("data", "dataset", "channels")),
    ("data", {"dataset": "bank"}, ("dataset", "'bank'", "bank-marketing", "bank-marketing-synthetic")),
    ("data", {"channels": {"test": {"path": "x.csv"}}}, ("data", "channels", "test", "train")),
    (TRAIN, {}, (TRAIN, "path", "rows", "folder", "files")),
    (f"{TRAIN}.folder", "x", (TRAIN, "path", "rows", "folder", "files")),
    (TRAIN, {"folder": 3}, (f"{TRAIN}.folder", 3, "path", "URI")),
    (TRAIN, {"folder": "images", "target": "y"}, (TRAIN, "target", "rows")),
    (
        TRAIN,
        {"path": "train.csv", "distribution": "Sharded"},
        (f"{TRAIN}.distribution", "'Sharded'", "FullyReplicated", "'ShardedByS3Key'"),
    ),
    (TRAIN, {"folder": "images"}, (f"{TRAIN}.folder", "'images'", "xgboost", "rows", "path")),
    (TRAIN, {"images": "x", "text": "y"}, (TRAIN, "PyTorch", "images", "text", "columns", "named")),
    (TRAIN, {"images": "x", "only": ["a"]}, (TRAIN, "only", "images")),
    (TRAIN, {"text": "x", "target": "y"}, (TRAIN, "target", "text")),
    (f"{TRAIN}.size", 8, (TRAIN, "size", "images")),
    (TRAIN, {"images": "x", "size": 0}, (f"{TRAIN}.size", 0)),
    (TRAIN, {"named": "rows"}, (f"{TRAIN}.named", "'rows'", "module", "function")),
    (TRAIN, {"columns": "rows.parquet"}, (f"{TRAIN}.columns", "torch", "parameter_server", "xgboost")),
    (f"{TRAIN}.path", [1, 2], (f"{TRAIN}.path", [1, 2], "list")),
    (f"{TRAIN}.delimiter", ";;", (f"{TRAIN}.delimiter", "';;'", "character", "';'")),
    (ETA, 3, (ETA, 3, "{type: continuous, min: 0, max: 1}")),
    (f"{ETA}.type", "integr", (f"{ETA}.type", "'integr'", *RANGES, "'integer'")),
    (ETA, {"min": 0}, (f"{ETA}.type", *RANGES)),
    (f"{ETA}.min", "low", (f"{ETA}.min", "'low'", "number")),
    (f"{ETA}.min", float("nan"), (f"{ETA}.min", ".nan", "finite")),
    (f"{ETA}.min", 0, (ETA, "min", 0.0, "'Logarithmic'", "'Linear'")),
    (f"{ETA}.scaling", "log", (f"{ETA}.scaling", "'log'", "Auto", "Linear", "Logarithmic", "ReverseLogarithmic")),
    ("tuning.ranges.max_depth.min", 0.5, ("tuning.ranges.max_depth.min", 0.5, "whole")),
    (f"{ETA}.step", 0, (ETA, "step", 0.0)),
    (f"{ETA}.when", 3, (f"{ETA}.when", 3, "{optimizer: [sgd]}")),
    (f"{ETA}.when", {"updater": []}, (ETA, "when['updater']", [], "value")),
    (f"{ETA}.when", {"updatr": ["x"]}, ("eta", "when", "'updatr'", "'updater'")),
    (f"{ETA}.when", {"eta": [1]}, ("eta", "when", {"eta": [1]}, "categorical", "integer", "step")),
    (ETA, {"type": "normal", "mean": 0}, (f"{ETA}.standard_deviation", "number")),
    ("tuning.ranges.updater.values", 3, ("tuning.ranges.updater.values", 3, "list")),
    ("tuning.ranges.updater.values", [], ("tuning.ranges.updater", "values", [], "value")),
    ("name", "-x", ("name", "'-x'", 32, "letters", "digits", "hyphens")),
    ("name", 12, ("name", 12, 32, "letters", "digits", "hyphens", "'12'")),
]


def test_a_wrong_value_is_named_by_its_line_and_key_with_what_to_give(path: Path) -> None:
    faults = []
    for keys, value, names in WRONG_VALUES:
        path.write_text(JOB)
        change(path, keys, value)
        try:
            read_job(path)
        except ConfigurationError as refusal:
            if fault := fault_in(str(refusal), path, keys, names):
                faults.append(f"{keys}: {value!r}: {fault}: {refusal}")
        else:
            faults.append(f"{keys}: {value!r}: no error")
    assert not faults, "\n".join(faults)


def fault_in(said: str, path: Path, keys: str, names: tuple[object, ...]) -> str:
    """What is wrong with the error of one wrong value: its file, its only line, the place or the names in it."""
    first, *lines = said.splitlines()
    found = re.search(r"\bline (\d+)\b", lines[0]) if len(lines) == 1 else None
    if str(path) not in first or found is None:
        return "the file, and one line with a place, are expected"
    number, told = int(found[1]), lines[0].replace(found[0], "", 1)
    if absent := missing_names(told, *names):
        return f"{absent} missing"
    written, key = path.read_text().splitlines(), keys.split(".")[-1]
    if number not in range(line_of(path, keys.split(".")[0]), len(written) + 1):
        return f"line {number} is not of the group"
    whole = re.search(rf"(?<![\w.]){re.escape(keys)}(?!\w|\.\w)", told)
    if whole and not written[number - 1].strip().startswith(f"{key}:"):
        return f"line {number} is not that of the key"
    return ""


def line_of(path: Path, key: str) -> int:
    """The line where a key of the top level stands."""
    return 1 + next(n for n, text in enumerate(path.read_text().splitlines()) if text.startswith(f"{key}:"))
