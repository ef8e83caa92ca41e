"""Job files: read into the tuner they describe, and what `--set` changes; data: test_data, mistakes: test_mistakes."""

from __future__ import annotations

import inspect
import sys
from functools import partial
from pathlib import Path
from typing import Any, get_args

import pytest
from ray.train import ScalingConfig

from hpo import (
    CategoricalParameter,
    ContinuousParameter,
    HyperbandStrategyConfig,
    HyperparameterTuner,
    IntegerParameter,
    NormalParameter,
    StrategyConfig,
)
from hpo.job_file.models import JobSpec, Tuning
from hpo.job_file.range_models import ContinuousRange
from hpo.job_file.reading import read_job
from hpo.ranges.numeric_range import SCALING_TYPES
from hpo.strategies.registry import STRATEGIES
from tests.support.boosting import RANGES, STATIC
from tests.support.job_files import change
from tests.support.refusals import refuses, refuses_each
from trainers import ConfigurationError, XGBoostTrainer

BANK = Path(__file__).resolve().parents[4] / "experiments" / "bank-marketing.yaml"


# ---- what it describes


def test_the_job_of_the_blog_is_the_tuner_of_the_blog() -> None:
    blog = HyperparameterTuner(
        XGBoostTrainer(scaling=ScalingConfig(num_workers=3), hyperparameters=STATIC),
        "validation:auc",
        RANGES,
        strategy="Hyperband",
        max_jobs=30,
        max_parallel_jobs=4,
        strategy_config=StrategyConfig(HyperbandStrategyConfig(max_resource=30, min_resource=1)),
        random_seed=1729,
    )
    spec = read_job(BANK)
    assert spec.data.dataset == "bank-marketing"
    tuner = HyperparameterTuner(**spec.arguments())
    assert tuner.settings.to_json({}, 1729) == blog.settings.to_json({}, 1729)
    assert tuner.random_seed == 1729
    assert tuner.objective_metric_name == "validation:auc"
    assert tuner.plan() == blog.plan()
    assert tuner.plan().resource == 231


def test_xgboost_may_train_in_external_memory(path: Path) -> None:
    assert read_job(path).trainer.trainer().options == {}
    change(path, "trainer.external_memory", True)
    assert read_job(path).trainer.trainer().options == {"external_memory": True}


def train(context: object) -> None:
    """A training function, for its name."""


TORCH = {
    "type": "torch",
    "train_loop": f"{__name__}:train",
    "num_workers": 2,
    "hyperparameters": {"epochs": 9, "per_worker_batch_size": 32},
    "metrics": ["validation:auc"],
    "report_timeout_s": 60.0,
}
LEARNING = {"lr": {"type": "continuous", "min": 0.001, "max": 1}}


@pytest.mark.parametrize(
    ("kind", "more", "trainer"),
    [
        ("torch", {"precision": "bf16", "compile": True}, "TorchTrainer"),
        ("parameter_server", {}, "ParameterServerTrainer"),
    ],
)
def test_trainers_of_functions(path: Path, kind: str, more: dict[str, Any], trainer: str) -> None:
    change(path, "trainer", {**TORCH, **more, "type": kind})
    change(path, "tuning.ranges", {**LEARNING, "num_workers": {"type": "integer", "min": 1, "max": 4}})
    made = HyperparameterTuner(**read_job(path, allow_code=True).arguments()).estimator
    kept = made.to_json()
    assert (kept["trainer"], kept["scaling"]["num_workers"]) == (trainer, 2)
    assert kept["hyperparameters"] == TORCH["hyperparameters"]
    assert kept["options"] == {
        "train_loop_per_worker": f"{__name__}:train",
        "metrics": ["validation:auc"],
        "report_timeout_s": 60.0,
        **more,
    }


@pytest.mark.parametrize(
    ("trainer", "names"),
    [
        ({"train_loop": "train"}, ("trainer.train_loop", "'train'", "mnist:train")),
        ({"precision": "fp8"}, ("trainer.precision", "'fp8'", "fp32", "bf16", "fp16")),
        ({"type": "parameter_server", "compile": True}, "trainer.compile"),
        ({"report_timeout_s": 0}, ("trainer.report_timeout_s", "0")),
        ({"metrics": "validation:auc"}, ("trainer.metrics", "'validation:auc'", "list")),
    ],
)
def test_what_trainers_of_functions_refuse(path: Path, trainer: dict[str, Any], names: str | tuple[str, ...]) -> None:
    change(path, "trainer", {**TORCH, **trainer})
    with refuses(ConfigurationError, field=names):
        read_job(path)


def test_units_from_which_hyperparameters_take_effect(path: Path) -> None:
    change(path, "tuning.takes_effect", {"eta": 3, "eta_after": "decay_at"})
    assert read_job(path).tuning.takes_effect == {"eta": 3, "eta_after": "decay_at"}
    change(path, "tuning.takes_effect", {"eta_after": "decay_at"})
    with refuses(ConfigurationError, field="takes_effect", value="eta_after", remedy=("eta", "max_depth")):
        read_job(path).arguments()
    change(path, "tuning.takes_effect", {"eta": 3})
    with refuses(ConfigurationError, field=("takes_effect", "'eta'"), value=3, remedy="XGBoost"):
        read_job(path).arguments()
    change(path, "tuning.takes_effect", {"eta": 2.5})
    with refuses(ConfigurationError, field="tuning.takes_effect.eta", value=2.5, remedy="whole"):
        read_job(path)


def test_a_function_that_is_not_there_is_named(path: Path) -> None:
    change(path, "trainer", {**TORCH, "train_loop": "no_such_module:train"})
    change(path, "tuning.ranges", LEARNING)
    named = "'no_such_module:train'"
    with refuses(ConfigurationError, field=("trainer", "train_loop"), value=named, remedy="module"):
        HyperparameterTuner(**read_job(path, allow_code=True).arguments())


def test_a_function_beside_the_job_file_is_found(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "beside_the_job.py").write_text("def train(context):\n    pass\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", list(sys.path))
    change(path, "trainer", {**TORCH, "train_loop": "beside_the_job:train"})
    change(path, "tuning.ranges", LEARNING)
    assert (
        HyperparameterTuner(**read_job(path, allow_code=True).arguments()).estimator.options["train_loop_per_worker"]
        == "beside_the_job:train"
    )


def test_every_key_reaches_the_tuner(path: Path) -> None:
    sets = [
        "trainer.use_gpu=true",
        "trainer.resources_per_worker={CPU: 2, GPU: 1}",
        "trainer.placement=SPREAD",
        "trainer.accelerator_type=A100",
        "trainer.label_selector={zone: 'in(a, b)', market-type: '!spot'}",
        "tuning.objective_type=Minimize",
        "tuning.objective_value=best",
        "tuning.hyperband={max_resource: 16, min_resource: 2, reduction_factor: 4, suggestions: random}",
        "tuning.max_parallel_jobs=3",
        "tuning.max_runtime_in_seconds=600",
        "tuning.random_seed=5",
        "storage_path=s3://bucket/jobs",
    ]
    tuner = HyperparameterTuner(**read_job(path, sets).arguments())
    spec = tuner.settings.to_json({}, 5)
    expected = {
        "objective_metric_name": "validation:auc",
        "objective_type": "Minimize",
        "objective_value": "best",
        "strategy": "Hyperband",
        "strategy_config": {"max_resource": 16, "min_resource": 2, "reduction_factor": 4, "suggestions": "random"},
        "max_jobs": 4,
        "max_parallel_jobs": 3,
        "max_runtime_in_seconds": 600,
        "storage_path": "s3://bucket/jobs",
    }
    assert {key: spec[key] for key in expected} == expected
    assert tuner.random_seed == 5
    assert tuner.ranges == {
        "eta": ContinuousParameter(0.001, 1, "Logarithmic"),
        "max_depth": IntegerParameter(1, 10),
        "updater": CategoricalParameter(["gbtree", "dart", 1, 1.5, True, None]),
    }
    scaling = tuner.estimator.scaling
    assert (scaling.num_workers, scaling.use_gpu) == (2, True)
    assert scaling.resources_per_worker == {"CPU": 2, "GPU": 1}
    assert scaling.placement_strategy == "SPREAD"
    assert scaling.accelerator_type == "A100"
    assert scaling.label_selector == {"zone": "in(a, b)", "market-type": "!spot"}
    assert tuner.estimator.hyperparameters == {"eval_metric": "auc", "num_round": 9}


def test_the_record_is_kept_where_the_file_says(path: Path, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/elsewhere.db"
    assert HyperparameterTuner(**read_job(path, [f"store={url}"]).arguments())._store == url
    assert HyperparameterTuner(**read_job(path).arguments())._store is None


def test_what_the_file_may_name_is_what_there_is() -> None:
    strategies, _ = Tuning.model_json_schema()["properties"]["strategy"]["anyOf"]
    assert strategies == {"enum": [*STRATEGIES]}
    assert get_args(ContinuousRange.model_fields["scaling"].annotation) == SCALING_TYPES
    taken = set(inspect.signature(HyperparameterTuner).parameters)
    assert set(read_job(BANK).tuning.arguments()) <= taken


def test_ranges_of_every_kind_are_those_of_python(path: Path) -> None:
    change(path, "tuning.strategy", "Random")
    change(path, "tuning.hyperband", None)
    change(
        path,
        "tuning.ranges",
        {
            "booster": {"type": "categorical", "values": ["gbtree", "dart"]},
            "rate_drop": {"type": "continuous", "min": 0, "max": 0.5, "step": 0.1, "when": {"booster": ["dart"]}},
            "eta": {"type": "normal", "mean": -1, "standard_deviation": 0.5, "scaling": "Logarithmic", "max": 1},
            "max_depth": {"type": "integer", "min": 2, "max": 8, "step": 2, "when": {"booster": "gbtree"}},
        },
    )
    assert read_job(path).tuning.arguments()["hyperparameter_ranges"] == {
        "booster": CategoricalParameter(["gbtree", "dart"]),
        "rate_drop": ContinuousParameter(0, 0.5, step=0.1, when={"booster": ["dart"]}),
        "eta": NormalParameter(-1, 0.5, "Logarithmic", max_value=1),
        "max_depth": IntegerParameter(2, 8, step=2, when={"booster": ["gbtree"]}),
    }


# ---- overrides


@pytest.mark.parametrize(
    ("override", "keys", "value"),
    [
        ("tuning.max_jobs=10", "tuning.max_jobs", 10),
        ("trainer.hyperparameters.eta=0.25", "trainer.hyperparameters.eta", 0.25),
        ("trainer.hyperparameters.eta='0.25'", "trainer.hyperparameters.eta", "0.25"),
        ("trainer.hyperparameters.one_drop=false", "trainer.hyperparameters.one_drop", False),
        ("trainer.hyperparameters.eval_metric=[auc, error]", "trainer.hyperparameters.eval_metric", ["auc", "error"]),
        ("name=null", "name", None),
        ("name=", "name", None),
        ("tuning.hyperband.max_resource=27", "tuning.hyperband.max_resource", 27),
        ("trainer.resources_per_worker.CPU=2", "trainer.resources_per_worker", {"CPU": 2.0}),
        ("storage_path=s3://bucket/key=value", "storage_path", "s3://bucket/key=value"),
        ("tuning.ranges.eta.max=0.5", "tuning.ranges.eta.max", 0.5),
        ("tuning.ranges.eta={type: categorical, values: [1]}", "tuning.ranges.eta.values", [1]),
    ],
)
def test_set_changes_one_key(path: Path, override: str, keys: str, value: Any) -> None:
    def at_keys(spec: JobSpec) -> Any:
        found: Any = spec.model_dump()
        for key in keys.split("."):
            found = found.get(key) if found else None
        return found

    before, after = read_job(path), read_job(path, [override])
    assert at_keys(after) == value
    assert type(at_keys(after)) is type(value)
    assert at_keys(before) != value
    group = keys.split(".")[0]
    assert after.model_dump(exclude={group}) == before.model_dump(exclude={group})


def test_the_last_of_two_counts(path: Path) -> None:
    assert read_job(path, ["tuning.max_jobs=10", "tuning.max_jobs=11"]).tuning.max_jobs == 11


def test_set_says_what_is_wrong(path: Path) -> None:
    usage = ("key=value", "tuning.max_jobs=10")
    cases: list[tuple[str, tuple[object, ...]]] = [
        ("tuning.max_jobs", usage),
        ("tuning.max_jobs.x=1", ("tuning.max_jobs", 4, "group")),
        ("name.first.second=1", ("name", "'small'", "group")),
        ("tuning.max_jobs=[1, 2", ("YAML", "brackets", "quotes")),
        ("tuning.max_jobs=ten", ("tuning.max_jobs", "'ten'", "whole", 1)),
        ("tuning.max_job=10", ("tuning.max_job", "'max_jobs'")),
        ("tuning.ranges.eta.min=2", ("tuning.ranges.eta", "min", 2.0, "max", 1.0)),
        ("=1", usage),
        ("tuning..max_jobs=1", usage),
    ]

    def in_one_line(override: str) -> JobSpec:
        try:
            return read_job(path, [override])
        except ConfigurationError as refusal:
            first, *lines = str(refusal).splitlines()
            assert str(path) in first
            assert len(lines) == 1, lines
            raise

    refuses_each(
        ((partial(in_one_line, override), (place_of(path, override), *names)) for override, names in cases),
        ConfigurationError,
    )


def test_a_refused_set_does_not_repeat_a_secret(path: Path) -> None:
    with refuses(ConfigurationError, field="storage_path", value="s3://***@bucket/jobs") as refusal:
        read_job(path, ["storage_path=s3://key:hidden@bucket/jobs", "storage_pat=s3://key:hidden@bucket/jobs"])
    assert "hidden" not in str(refusal.value)


def place_of(path: Path, override: str) -> str:
    """Where a mistake of an override is said to be: it, or the line of what it made wrong with others."""
    line = 1 + next(n for n, text in enumerate(path.read_text().splitlines()) if "eta" in text)
    return f"line {line}" if override.startswith("tuning.ranges.eta") else f"--set {override}"
