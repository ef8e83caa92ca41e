"""Searchers and schedulers of a job file: a class by its import path, and its arguments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field

from hpo.job_file.known_keys import PLACE, Give, Strict
from hpo.jobs import NamedCode
from hpo.strategies import RayTuneStrategy, named_code


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
