"""What a tuner is made with, as the record keeps it: `attach` makes the same tuner of it again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from hpo.cost import Prices
from hpo.jobs.environment import environment
from hpo.ranges import CategoricalParameter, ContinuousParameter, IntegerParameter, ParameterRange, range_from_json
from hpo.record import JobRow, tags_of
from hpo.strategies import Plan, StrategyConfig, TuningJobCompletionCriteriaConfig
from trainers.registry import trainer_from_json

if TYPE_CHECKING:
    from hpo.tuner import HyperparameterTuner

Tuner = TypeVar("Tuner", bound="HyperparameterTuner")

_PLAIN = (
    "strategy",
    "objective_type",
    "max_jobs",
    "max_parallel_jobs",
    "max_runtime_in_seconds",
    "max_wait",
    "max_cost",
    "base_tuning_job_name",
    "early_stopping_type",
    "estimator_name",
    "objective_value",
    "storage_path",
    "num_to_keep",
    "priority",
)
"""Arguments that are JSON as they are; a record of an older Warmband may lack some."""

_KINDS: dict[str, type[ParameterRange]] = {
    "ContinuousParameterRanges": ContinuousParameter,
    "CategoricalParameterRanges": CategoricalParameter,
    "IntegerParameterRanges": IntegerParameter,
}


def spec_of(tuner: HyperparameterTuner, inputs: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """The `spec` of a job's row: what its tuner was made with, what it reads and where it runs.

    Args:
        tuner: whose job it is.
        inputs: what it reads, as `hpo.jobs.files.inputs.record_inputs` gives it.
        seed: the job's, drawn if none was given.
    """
    criteria, prices, tariff = tuner.completion_criteria_config, tuner.prices, tuner.tariff
    return {
        "estimator": tuner.estimator.to_json(),
        "objective_metric_name": tuner.objective_metric_name,
        "hyperparameter_ranges": {name: bounds.to_json() for name, bounds in tuner.ranges.items()},
        "parameter_ranges": by_kind(tuner.ranges),
        "strategy_config": tuner.strategy_config.to_json() if tuner.strategy_config else None,
        "strategy_request": tuner.strategy_config.to_input_req() if tuner.strategy_config else None,
        "completion_criteria": criteria.to_json() if criteria else None,
        "completion_request": criteria.to_input_req() if criteria else None,
        "random_seed": seed,
        "inputs": dict(inputs),
        "environment": environment(),
        "prices": prices.to_json() if prices else None,
        "tags": tuner.tags,
        "tariff": tariff.to_json() if tariff else None,
        **{field: getattr(tuner, field) for field in _PLAIN},
    }


def arguments(spec: Mapping[str, Any], *, allow_code: bool) -> dict[str, Any]:
    """The arguments of a tuner, by name, out of a job's `spec`.

    Args:
        spec: of the job's row.
        allow_code: import the user's code that it names; `hpo.jobs.named_code.check_record` asks first.
    """
    config, criteria, prices = spec["strategy_config"], spec.get("completion_criteria"), spec.get("prices")
    return {
        "estimator": trainer_from_json(spec["estimator"], allow_code=allow_code),
        "objective_metric_name": spec["objective_metric_name"],
        "hyperparameter_ranges": {
            name: range_from_json(state) for name, state in spec["hyperparameter_ranges"].items()
        },
        "strategy_config": None if config is None else StrategyConfig.from_json(config),
        "completion_criteria_config": None
        if criteria is None
        else TuningJobCompletionCriteriaConfig.from_json(criteria),
        "random_seed": spec["random_seed"],
        "tags": tags_of(spec.get("tags")) or None,
        "prices": None if prices is None else Prices.from_json(prices),
        **{field: spec[field] for field in _PLAIN if field in spec},
    }


def tuner_of(kind: type[Tuner], job: JobRow, *, allow_code: bool, **options: Any) -> Tuner:
    """A job's tuner, made again with the plan that the record has: more than its settings say where it was grown.

    Args:
        kind: the tuner's class.
        job: its row.
        allow_code: as `arguments` takes it.
        **options: what no record has: `store`, `callbacks`, `console`, `verbose`.
    """
    tuner = kind(**arguments(job.spec, allow_code=allow_code), **options)
    if job.plan:
        tuner.planned = Plan.from_json(job.plan)
    return tuner


def by_kind(ranges: Mapping[str, ParameterRange]) -> dict[str, list[dict[str, Any]]]:
    """Ranges by kind, in the API's form."""
    return {
        key: [bounds.as_tuning_range(name) for name, bounds in ranges.items() if isinstance(bounds, kind)]
        for key, kind in _KINDS.items()
    }
