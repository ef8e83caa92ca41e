"""A job's workers and layout, where its settings leave them to a probe."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hpo.autotune import Autotuned
from hpo.forecasts import chosen_workers, left_to_probe
from hpo.jobs.settings import JobSettings
from trainers.channels import open_channels


def sized(settings: JobSettings, inputs: Any, say: Callable[[str], None]) -> JobSettings:
    """The settings with workers and a layout that a probe chooses, which trains here and now, where they say "auto".

    Args:
        settings: the job's.
        inputs: what it reads.
        say: is told that it trains.

    Raises:
        ConfigurationError, DataError, ResourcesError, GangError, TrialError: nothing could be measured.
    """
    estimator, ranges = settings.estimator, settings.ranges
    if not (left := left_to_probe(estimator, ranges)):
        return settings
    channels = estimator.checked(
        open_channels(inputs, train=estimator.needs_train), settings.objective_metric_name or None
    )
    missing = {name: bounds.at(0.5) for name, bounds in ranges.items() if name not in estimator.hyperparameters}
    made, choices = chosen_workers(estimator, left, missing, channels, settings.max_parallel_jobs, say)
    before = settings.autotune.choices if isinstance(settings.autotune, Autotuned) else ()
    return settings.changed(estimator=made, autotune=Autotuned(choices=(*before, *choices)))
