"""A job's workers, where its settings leave them to a probe."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hpo.autotune import Autotuned
from hpo.forecasts import chosen_workers, leaves_workers
from hpo.jobs.settings import JobSettings
from trainers.channels import open_channels


def sized(settings: JobSettings, inputs: Any, say: Callable[[str], None]) -> JobSettings:
    """The settings with a number of workers, chosen by a probe that trains here and now where they say "auto".

    Args:
        settings: the job's.
        inputs: what it reads.
        say: is told that it trains.

    Raises:
        ConfigurationError, DataError, ResourcesError, GangError, TrialError: nothing could be measured.
    """
    estimator = settings.estimator
    if not leaves_workers(estimator, settings.ranges):
        return settings
    channels = estimator.checked(open_channels(inputs, train=estimator.needs_train), settings.objective_metric_name)
    sized_estimator, choice = chosen_workers(estimator, channels, settings.max_parallel_jobs, say)
    before = settings.autotune.choices if isinstance(settings.autotune, Autotuned) else ()
    return settings.changed(estimator=sized_estimator, autotune=Autotuned(choices=(*before, choice)))
