"""What requests ask for: tuners and trainings with the settings that they name in the service's terms."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hpo.estimators import put_together
from hpo.ranges import CategoricalParameter, ContinuousParameter, IntegerParameter, ParameterRange
from hpo.serve.aws.creating.estimators import Definition, channels_of, trainer_of
from hpo.serve.aws.creating.settings import HYPERPARAMETERS, PREFIX, check_fields
from hpo.serve.aws.creating.tables import Tables
from hpo.serve.aws.errors import invalid
from hpo.strategies import (
    HyperbandStrategyConfig,
    StrategyConfig,
    TuningJobCompletionCriteriaConfig,
    WarmStartConfig,
)
from hpo.training import TrainingJob
from hpo.tuner import HyperparameterTuner
from trainers.errors import ConfigurationError

Inputs = dict[str, Any] | None


def training_of(request: Mapping[str, Any], tables: Tables, store: str | None) -> tuple[TrainingJob, Inputs]:
    """The training of CreateTrainingJob, and its channels.

    Raises:
        ServiceError: it asks for what is not here, naming the field.
        WarmbandError: a value is wrong.
    """
    check_fields(request)
    trainer = trainer_of(request, request.get("HyperParameters", {}), "", tables)
    made = TrainingJob(
        trainer,
        tags=request.get("Tags"),
        store=store,
        console=False,
        **_training_times(request),
        **_kept(request),
    )
    return made, channels_of(request, trainer)


def tuning_of(request: Mapping[str, Any], tables: Tables, store: str | None) -> tuple[HyperparameterTuner, Inputs]:
    """The tuner of CreateHyperParameterTuningJob, and its channels.

    Raises:
        ServiceError: it asks for what is not here, naming the field.
        WarmbandError: a value is wrong.
    """
    check_fields(request)
    config = request["HyperParameterTuningJobConfig"]
    several = request.get("TrainingJobDefinitions")
    definitions: list[Definition] = list(several or [request.get("TrainingJobDefinition") or {}])
    if not definitions[0]:
        raise invalid("TrainingJobDefinition is missing; give it, or TrainingJobDefinitions")
    wanted = [each.get("TuningObjective") or config.get("HyperParameterTuningJobObjective") for each in definitions]
    if not all(wanted):
        raise invalid("HyperParameterTuningJobObjective is missing; give Type and MetricName")
    if len({each["Type"] for each in wanted}) > 1:
        raise invalid("TuningObjective.Type differs between TrainingJobDefinitions, which are compared; give one")
    for member in ("InputDataConfig", "OutputDataConfig"):
        if any(each.get(member) != definitions[0].get(member) for each in definitions):
            raise invalid(
                f"{member} differs between TrainingJobDefinitions, which train on the same channels; give one"
            )
    metrics = [each["MetricName"] for each in wanted]
    trainers = [
        trainer_of(each, each.get("StaticHyperParameters", {}), metric, tables)
        for each, metric in zip(definitions, metrics, strict=True)
    ]
    ranges = [_ranges(each.get("HyperParameterRanges") or config.get("ParameterRanges") or {}) for each in definitions]
    estimator, metric, tuned = trainers[0], metrics[0], ranges[0]
    if len(definitions) > 1:
        names = [each.get("DefinitionName", "") for each in definitions]
        estimator, metric, tuned = put_together(
            dict(zip(names, trainers, strict=True)),
            dict(zip(names, metrics, strict=True)),
            dict(zip(names, ranges, strict=True)),
        )
    made = HyperparameterTuner(
        estimator,
        metric,
        tuned or None,
        objective_type=wanted[0]["Type"],
        tags=request.get("Tags"),
        store=store,
        console=False,
        **_search(config, request),
        **_tuning_times(definitions, config["ResourceLimits"]),
        **_kept(definitions[0]),
    )
    return made, channels_of(definitions[0], trainers[0])


def _search(config: Mapping[str, Any], request: Mapping[str, Any]) -> dict[str, Any]:
    """How is searched, and what ends it."""
    limits = config["ResourceLimits"]
    found: dict[str, Any] = {
        "strategy": config["Strategy"],
        "max_jobs": limits.get("MaxNumberOfTrainingJobs"),
        "max_parallel_jobs": limits["MaxParallelTrainingJobs"],
        "early_stopping_type": config.get("TrainingJobEarlyStoppingType", "Off"),
        "random_seed": config.get("RandomSeed"),
        "autotune": request.get("Autotune", {}).get("Mode") == "Enabled",
    }
    if hyperband := config.get("StrategyConfig", {}).get("HyperbandStrategyConfig"):
        found["strategy_config"] = StrategyConfig(
            HyperbandStrategyConfig(
                max_resource=hyperband.get("MaxResource"), min_resource=hyperband.get("MinResource")
            )
        )
    if criteria := config.get("TuningJobCompletionCriteria"):
        convergence = criteria.get("ConvergenceDetected", {}).get("CompleteOnConvergence")
        found["completion_criteria_config"] = TuningJobCompletionCriteriaConfig(
            max_number_of_training_jobs_not_improving=criteria.get("BestObjectiveNotImproving", {}).get(
                "MaxNumberOfTrainingJobsNotImproving"
            ),
            complete_on_convergence=None if convergence is None else convergence == "Enabled",
            target_objective_metric_value=criteria.get("TargetObjectiveMetricValue"),
        )
    if warm := request.get("WarmStartConfig"):
        parents = [each.get("HyperParameterTuningJobName", "") for each in warm["ParentHyperParameterTuningJobs"]]
        if not all(parents):
            raise invalid("ParentHyperParameterTuningJobs has one without HyperParameterTuningJobName; give it")
        found["warm_start_config"] = WarmStartConfig(warm["WarmStartType"], parents)
    return found


def _ranges(given: Mapping[str, Any]) -> dict[str, ParameterRange]:
    if given.get("AutoParameters"):
        raise invalid("ParameterRanges.AutoParameters are not here; give ranges, or Autotune with Mode Enabled")
    found: dict[str, ParameterRange] = {}
    numbers: tuple[tuple[str, Callable[..., ParameterRange], Callable[[str], Any]], ...] = (
        ("IntegerParameterRanges", IntegerParameter, _whole),
        ("ContinuousParameterRanges", ContinuousParameter, float),
    )
    for field, kind, number in numbers:
        for each in given.get(field, ()):
            try:
                least, most = number(each["MinValue"]), number(each["MaxValue"])
            except ValueError:
                raise invalid(f"{field} {each['Name']!r}: MinValue and MaxValue are no numbers") from None
            try:
                found[each["Name"]] = kind(least, most, each.get("ScalingType", "Auto"))
            except ConfigurationError as error:
                raise ConfigurationError(f"{field} {each['Name']!r}: {error}") from error
    for each in given.get("CategoricalParameterRanges", ()):
        found[each["Name"]] = CategoricalParameter([_unquoted(value) for value in each["Values"]])
    if own := [name for name in found if name.startswith(PREFIX) or name in HYPERPARAMETERS]:
        raise invalid(
            f"ParameterRanges has {own[0]!r}, and names that begin with {PREFIX} are the SDK's own, the same for all "
            "trainings; give its value in StaticHyperParameters, or rename it"
        )
    return found


def _whole(text: str) -> int:
    return int(float(text)) if float(text).is_integer() else int(text)


def _unquoted(text: str) -> Any:
    """A value of a category: the SDK writes those for programs as JSON text."""
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] == '"' else text


def _training_times(request: Mapping[str, Any]) -> dict[str, Any]:
    """Limits of a training's time, in seconds."""
    stopping = request.get("StoppingCondition", {})
    found = {"max_runtime_in_seconds": stopping.get("MaxRuntimeInSeconds")}
    if request.get("EnableManagedSpotTraining"):
        found["max_wait"] = stopping.get("MaxWaitTimeInSeconds")
    return found


def _tuning_times(definitions: Sequence[Definition], limits: Mapping[str, Any]) -> dict[str, Any]:
    """Limits of a tuning job's time, and of each of its trainings', in seconds.

    Raises:
        ServiceError: definitions have different ones.
    """
    of_each = [_training_times(each) for each in definitions]
    if any(times != of_each[0] for times in of_each):
        raise invalid("StoppingCondition and EnableManagedSpotTraining differ between TrainingJobDefinitions; give one")
    found = {
        "max_runtime_in_seconds": limits.get("MaxRuntimeInSeconds"),
        "max_trial_runtime": of_each[0]["max_runtime_in_seconds"],
    }
    if longest := of_each[0].get("max_wait"):
        # So long all of them may wait for machines, one after the other.
        found |= {"max_trial_wait": longest, "max_wait": longest * (limits.get("MaxNumberOfTrainingJobs") or 1000)}
    return found


def _kept(definition: Mapping[str, Any]) -> dict[str, Any]:
    """Where checkpoints and models go."""
    output = definition.get("OutputDataConfig", {}).get("S3OutputPath")
    return {"storage_path": output.rstrip("/")} if output else {}
