"""Parts of a job file's search: searchers and schedulers by their import paths, Hyperband, criteria, warm starts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from hpo.job_file.known_keys import PLACE, Give, Positive, Strict
from hpo.jobs import NamedCode
from hpo.strategies import RayTuneStrategy, WarmStartConfig, lay_out, named_code


class Hyperband(Strict):
    """Hyperband's own configuration, in units of resource: boosting rounds, epochs."""

    max_resource: Positive = Field(
        description="units of a trial that runs to the end, instead of num_round or epochs; one unit is a boosting "
        "round, or an epoch"
    )
    min_resource: Positive = Field(1, description="units before a trial can be stopped")
    reduction_factor: Annotated[int, Field(ge=2)] = Field(3, description="one trial in so many goes on at each rung")
    suggestions: Literal["model", "random"] = Field(
        "model", description="model tries what a Gaussian process expects most of; random draws at random"
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        lay_out(1, self.min_resource, self.max_resource, self.reduction_factor)
        return self


class Completion(Strict):
    """Criteria that end a job before all its trials have run; the first that is met decides."""

    target_objective_metric_value: float | None = Field(
        None, description="the job ends when a trial reaches this value at a rung, or at its end"
    )
    max_number_of_training_jobs_not_improving: Annotated[int, Field(ge=3)] | None = Field(
        None, description="the job ends when so many trials in a row have not improved the best objective by 1%"
    )
    complete_on_convergence: bool = Field(
        False,
        description="the job ends when the best objective has stood for a while and a model of all results expects "
        "little more",
    )


class WarmStart(Strict):
    """Earlier jobs of the record."""

    type: Literal["IdenticalDataAndAlgorithm", "TransferLearning"] = Field(
        description="IdenticalDataAndAlgorithm takes their values as the job's own; TransferLearning the order of each "
        "one's values, of other data or another trainer"
    )
    parents: list[str] = Field(min_length=1, max_length=5, description="their names")

    def config(self) -> WarmStartConfig:
        """In the Python API's form."""
        return WarmStartConfig(self.type, self.parents)


class SearchPart(Strict):
    """A searcher, a scheduler or a sampler."""

    type: Annotated[str, Give("a module and a class, such as ray.tune.search.optuna:OptunaSearch")] = Field(
        pattern=PLACE,
        description="its class, as module:name; of others than Ray Tune's and Optuna's, --allow-code is asked for",
    )
    arguments: dict[str, Any] = Field(
        default_factory=dict,
        description="what the class takes, by name; a searcher or a sampler among them has type and arguments, too",
    )


def code_of(parts: Mapping[str, SearchPart | None]) -> list[NamedCode]:
    """What parts name of a user's own Python code.

    Args:
        parts: by their keys in the group tuning.
    """
    given = {key: part.model_dump() for key, part in parts.items() if part is not None}
    return [NamedCode(key=f"tuning.{key}", name=name) for key, name in named_code(given).items()]


def strategy_of_parts(searcher: SearchPart | None, scheduler: SearchPart | None) -> RayTuneStrategy | None:
    """The strategy of a searcher and a scheduler; None of neither."""
    if searcher is None and scheduler is None:
        return None
    return RayTuneStrategy(searcher=searcher and searcher.model_dump(), scheduler=scheduler and scheduler.model_dump())
