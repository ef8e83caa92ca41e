"""The beginning of a job: channels opened, its row written, first lines printed; or a forecast alone."""

from __future__ import annotations

import math
import secrets
import textwrap
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from rich.console import Console

from hpo.autotune import Autotuned
from hpo.forecasts import LOOK_SECONDS, PROBE, Forecast, Look, forecast_from, joins, probes, rehearse, threads_for
from hpo.jobs import driver
from hpo.jobs.build import NAME_LENGTH, new_name, opened, outlook_for, search_for, warnings
from hpo.jobs.checks import check_job_name, check_name_free
from hpo.jobs.continuity import CONTENTS, contents_of
from hpo.jobs.files import FOLDER_ID, Files, check_free, claim, copy_inputs, record_inputs
from hpo.jobs.launch import RECORD, owner, ray_job
from hpo.jobs.resuming import how_to_resume
from hpo.jobs.run import Ended
from hpo.jobs.settings import JobSettings
from hpo.jobs.stop_signals import Interrupts
from hpo.observers import Callback, show_plan, show_training_plan
from hpo.record import EARLIER_BEST, JobRow, Store
from hpo.strategies import EARLIER, Prepared, earlier_best, earlier_results, observations_of
from hpo.text import printer, roles_text, strategy_name
from trainers import storage
from trainers.channels import Channel
from trainers.errors import ConnectError
from trainers.home import home
from trainers.plain import plain_scalar

if TYPE_CHECKING:
    from hpo.suggestions import Observation


FIRST_LINE = "Checking the job and opening its data ..."
"""Printed before the data are opened, which may take long."""


@dataclass(frozen=True, kw_only=True)
class NewJob:
    """A job that can begin: nothing of it is in the record yet.

    Args:
        settings: the job's.
        row: of the record.
        strategy: ready to begin.
        channels: what it reads.
        forecast: what earlier jobs say that it takes.
        store: database URL of the record; None is the default one.
        apart: another process runs it.
    """

    settings: JobSettings
    row: JobRow
    strategy: Prepared
    channels: Mapping[str, Channel]
    forecast: Forecast | None
    store: str | None
    apart: bool

    @classmethod
    def of(
        cls,
        settings: JobSettings,
        inputs: Mapping[str, Any] | None,
        name: str | None,
        store: str | None,
        longest_name: int = NAME_LENGTH,
        *,
        apart: bool,
    ) -> NewJob:
        """Checks all that can be checked before anything starts.

        Args:
            settings: the job's.
            inputs: channels by name, as `fit` takes them.
            name: the job's; None makes one.
            store: as above.
            longest_name: the most characters that a name may have.
            apart: another process runs it, which needs copies of rows in memory.

        Raises:
            ConfigurationError, DataError: what is wrong.
        """
        name = new_name(settings) if name is None else plain_scalar(name)
        check_job_name(name, longest_name)
        with Store(store) as record:
            check_name_free(name, (job.name for job in record.jobs()), record.url)
        channels = opened(settings, inputs)
        seed = secrets.randbelow(2**31) if settings.random_seed is None else settings.random_seed
        search = search_for(settings, name, seed)
        storage.check_writable(search.storage_path)
        check_free(search.storage_path, name)
        if apart and (logs := f"{home()}/jobs/{name}") != search.storage_path:
            check_free(logs, name)  # The log of its driver goes there.
        now = time.time()
        with Store(store) as record:
            most = {} if apart else {"most_bytes": math.inf}
            spec = settings.to_json(record_inputs(channels, search.storage_path, **most), seed)
            forecast = forecast_from(record, spec, outlook_for(settings, search))
        # Another process, which resumes the job, may have another home.
        spec["storage_path"] = storage.absolute(settings.options["storage_path"] or f"{home()}/jobs")
        if (warm_start := settings.warm_start_config) is not None:
            with Store(store) as record:
                spec[EARLIER] = earlier_results(warm_start, spec, record)
                spec[EARLIER_BEST] = earlier_best(warm_start, record)
        spec[FOLDER_ID] = secrets.token_hex(16)
        spec[CONTENTS] = contents_of(spec)
        row = JobRow(name=name, created_at=now, spec=spec, plan=settings.plan().to_json(), owner=owner())
        return cls(
            settings=settings,
            row=row,
            strategy=driver.made_ready(settings, row),
            channels=channels,
            forecast=forecast,
            store=store,
            apart=apart,
        )

    @property
    def resume(self) -> str:
        """How to resume the job once it is stopped; empty where that is not possible."""
        return how_to_resume(self.row.name, self.row.spec, self.store, training=self.settings.is_training)

    def write(self) -> str:
        """Puts the job into the record; for another process, copies of rows in memory into the job's folder, too.

        Returns:
            Where the record is.

        Raises:
            ConfigurationError, DataError: the folder or the copies cannot be written. The job's name is free again.
        """
        with Store(self.store) as record:
            record.create_job(self.row)
            copied = any((about.get("open") or {}).get("copy") for about in self.row.spec["inputs"].values())
            if self.apart and copied:  # Else the driver makes the folder, maybe on another machine.
                try:
                    claim(storage.join(self.row.spec["storage_path"], self.row.name), self.row, begun=False)
                    copy_inputs(self.row.spec["inputs"], self.channels)
                except BaseException:
                    record.delete_job(self.row.name, Files.of(self.row).remove, why="it could not be started")
                    raise
            return record.url

    def announce(self, record: str, console: Console) -> None:
        """Says what the job is.

        Args:
            record: where it is recorded.
            console: where that is printed.
        """
        say, settings = printer(console), self.settings
        if ray_job():
            say(f"{RECORD}{record}")  # Whoever submitted the job waits for this line.
        if settings.is_training:
            say(f"Training job {self.row.name}: {settings.estimator}")
        else:
            say(
                f"Tuning job {self.row.name}: {strategy_name(self.row.spec)}, {settings.max_jobs} trials, "
                f"{settings.max_parallel_jobs} at once"
            )
        if isinstance(settings.autotune, Autotuned):
            say(f"Autotune chose\n{textwrap.indent(str(settings.autotune), '  ')}")
        if "train" in self.channels and (text := roles_text(self.channels["train"].describe())):
            say(f"Data: {text}")
        plan = settings.plan()
        console.print(show_training_plan(plan, settings.estimator.unit) if settings.is_training else show_plan(plan))
        if self.forecast is not None:
            say(self.forecast.text)
        for warning in warnings(settings):
            say(f"warning: {warning}")

    def run(self, interrupts: Interrupts, callbacks: Sequence[Callback], console: Console, *, verbose: bool) -> Ended:
        """Run the job in this process, as `driver.run` does; one that finds no cluster is removed from the record.

        Raises:
            ConnectError: the cluster does not answer. The job's name is free again.
            WarmbandError, KeyboardInterrupt: as `driver.run` does.
        """
        try:
            return driver.run(
                self.settings,
                self.row,
                self.strategy,
                self.channels,
                self.forecast,
                interrupts,
                store=self.store,
                callbacks=callbacks,
                console=console,
                verbose=verbose,
                copied=False,
            )
        except ConnectError:
            name = self.row.name
            with Store(self.store) as record:
                if not record.trials(name):
                    record.delete_job(name, Files.of(record.job(name)).remove, why="its cluster did not answer")
                    printer(console)(
                        f"{name} is removed from the record: nothing of it had begun, and its name is free"
                    )
            raise


def check_job(
    settings: JobSettings,
    inputs: Mapping[str, Any] | None,
    name: str | None,
    store: str | None,
    callbacks: Sequence[Callback],
    console: Console,
    longest_name: int = NAME_LENGTH,
    *,
    wait: bool,
) -> None:
    """Check a job and its data as a start does, and print its plan. Record and start nothing.

    Args:
        settings: the job's.
        inputs: as `fit` takes them.
        name: the job's; None makes one.
        store: database URL of the record; None is the default one.
        callbacks: as `fit` takes them.
        console: where the plan is printed.
        longest_name: the most characters that a name may have.
        wait: as `fit` takes it.

    Raises:
        ConfigurationError, DataError: the job or its data are wrong.
    """
    if not wait:
        driver.apart(settings, callbacks)
    NewJob.of(settings, inputs, name, store, longest_name, apart=not wait).announce("", console)
    printer(console)("Nothing was started: this was a dry run.")


def earlier_of(settings: JobSettings, store: str | None) -> list[Observation]:
    """The results of a job's parents, for a simulation of it, which reads no data; none where it has no parents.

    Args:
        settings: the job's.
        store: database URL of the record; None is the default one.

    Raises:
        ConfigurationError: the parents are not there, or are of another search.
    """
    if settings.warm_start_config is None:
        return []
    spec = settings.to_json({}, settings.random_seed or 0)
    with Store(store) as record:
        return observations_of(earlier_results(settings.warm_start_config, spec, record, trains=False))


def forecast_of(
    settings: JobSettings, inputs: Mapping[str, Any] | None, store: str | None, console: Console, *, verbose: bool
) -> Forecast:
    """A job's forecast, from earlier jobs of the record or from a probe; nothing is recorded.

    Args:
        settings: the job's.
        inputs: as `fit` takes them.
        store: database URL of the record; None is the default one.
        console: where it is said that a probe trains.
        verbose: show Ray's own logs too.

    Raises:
        ConfigurationError, DataError, ResourcesError, GangError: as `fit` does.
        TrialError: the static hyperparameters cannot be trained, so that nothing could be measured.
    """
    trainer = settings.estimator
    look = Look(joined=not trainer.in_hand and joins())
    channels = opened(settings, inputs)
    search = search_for(settings, f"forecast-{secrets.token_hex(4)}", settings.random_seed or 0)
    with Store(store) as record:
        spec = settings.to_json(record_inputs(channels, search.storage_path), search.seed)
        earlier = forecast_from(record, spec, outlook_for(settings, search))
        url = record.url
    if earlier is not None:
        time.sleep(LOOK_SECONDS)  # What was done until here may have been over at once.
        now = look.until_now(threads_for(trainer))
        return earlier.doubted(f"The machine is busy now: {now.used}, so it may take much longer." if now else "")
    say = printer(console)
    say(f"Training a few units: {url} has no earlier job of this trainer, its workers and data")
    probing = replace(search, probes=search.probes or probes(trainer))  # A training does without, as it runs.
    pace, busy = rehearse(probing, trainer, channels, notify=say, verbose=verbose)
    return outlook_for(settings, search).forecast(pace, source=PROBE).doubted(busy.text if busy else "")
