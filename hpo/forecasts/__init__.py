"""Forecasts of a job's time and cost, from earlier jobs or from a measured probe."""

from typing import TYPE_CHECKING

from trainers.lazy import load_when_used

if TYPE_CHECKING:
    from hpo.forecasts.busy import LOOK_SECONDS as LOOK_SECONDS, Look as Look
    from hpo.forecasts.dry_run import rehearse as rehearse
    from hpo.forecasts.forecast import (
        PROBE as PROBE,
        Forecast as Forecast,
        Outlook as Outlook,
        forecast_error as forecast_error,
    )
    from hpo.forecasts.from_history import forecast_from as forecast_from
    from hpo.forecasts.gang_size import chosen_workers as chosen_workers, left_to_probe as left_to_probe
    from hpo.forecasts.probe import (
        Probing as Probing,
        joins as joins,
        probes as probes,
        threads_for as threads_for,
    )

load_when_used(__name__)
