"""A job's probe alone: the first gang, a few units on it, and no trial."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ray.tune.schedulers import FIFOScheduler
from ray.tune.search import Searcher

from hpo.cost import Entry, Limits, ManyWorkers, Probed
from hpo.forecasts.busy import Busy, Look
from hpo.forecasts.probe import joins, threads_for
from hpo.record import AdditionRow
from hpo.search import PROBE, Controller, JobState, Search, TrialRun
from hpo.strategies import Cut
from trainers import steady
from trainers.channels import Channel
from trainers.checkpoint import passing_folder
from trainers.errors import TrialError
from trainers.gangs import Report
from trainers.trainer import Trainer

if TYPE_CHECKING:
    from hpo.search import Record


@steady.measuring()
def rehearse(
    search: Search,
    estimator: Trainer,
    channels: Mapping[str, Channel],
    *,
    notify: Callable[[str], None],
    verbose: bool = False,
) -> tuple[ManyWorkers, Busy | None]:
    """Starts one gang, or none in hand, trains the search's probes on it and gives it back.

    Args:
        search: whose probes, without its limits; its checkpoints' folder is removed afterwards.
        estimator: whose static hyperparameters are trained.
        channels: what it reads.
        notify: is told what the user should know.
        verbose: show Ray's own logs and what workers print.

    Returns:
        The gang's pace, and what other processes used meanwhile if that was too much.

    Raises:
        ResourcesError, GangError: no gang fits, or starts.
        TrialError: the probe could not be trained.
    """
    measured: list[tuple[ManyWorkers, Busy | None]] = []
    look = Look(joined=not estimator.in_hand and joins())
    workers = estimator.workers_for(estimator.hyperparameters)

    def probed(measurement: Probed) -> None:
        # Here, as a cluster that is ended takes along what its processes have used.
        measured.append((ManyWorkers.of(measurement, workers), look.until_now(threads_for(estimator))))

    record: Record = _Unrecorded()
    with passing_folder(search.storage_path, PROBE):
        began = steady.now()
        with estimator.gangs(
            search.name, channels, workers=workers, storage_path=search.storage_path, notify=notify, verbose=verbose
        ) as gangs:
            controller = Controller(
                replace(search, max_jobs=1, max_parallel_jobs=1, untuned=False, limits=Limits()),
                searcher=_NoTrials(),
                scheduler=FIFOScheduler(),
                decode=dict,
                gangs=gangs,
                record=record,
                on_probe=probed,
                began=began,
            )
            controller.run()
    if not measured:
        raise TrialError(
            "a few units of the static hyperparameters could not be trained, so nothing can be forecast: "
            f"{controller.probe_failure or controller.stopped}"
        )
    return measured[0]


class _NoTrials(Searcher):
    """Has nothing to suggest."""

    def suggest(self, trial_id: str) -> Any:
        """See Ray Tune's."""
        return Searcher.FINISHED

    def on_trial_complete(self, trial_id: str, result: dict[str, Any] | None = None, error: bool = False) -> None:
        """See Ray Tune's."""


class _Unrecorded:
    """Keeps nothing; see `Record`."""

    stop_requested = False
    additions: Sequence[AdditionRow] = ()
    stops: Mapping[str, str] = {}

    def trial(self, run: TrialRun) -> None:
        """Nothing."""

    def reports(self, run: TrialRun, reports: Sequence[Report]) -> None:
        """Nothing."""

    def rung(self, cut: Cut) -> None:
        """Nothing."""

    def leave_out(self, last: int) -> None:
        """Nothing."""

    def progress(self, state: JobState) -> None:
        """Nothing."""

    def ledger(self, entries: Sequence[Entry]) -> None:
        """Nothing."""
