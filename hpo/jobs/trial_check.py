"""Check of a job by one trial: it is trained for a unit or two, stopped, and started again from its checkpoint."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hpo.jobs.build import opened, warnings
from hpo.ranges import present
from hpo.text import count
from trainers import ScriptTrainer, steady, storage
from trainers.channels import Channel
from trainers.checkpoint import UNKNOWN, passing_folder
from trainers.details import TRAINED_AGAIN, WARNINGS, WENT_ON_FROM
from trainers.errors import CheckpointError, ConfigurationError, StorageError, TrialError
from trainers.gangs import Assignment, Gangs, Segment
from trainers.home import home
from trainers.result import serve_alone
from trainers.script import TURN, logs_folder, remove_logs, trial_log
from trainers.trainer import Trainer

if TYPE_CHECKING:
    from hpo.jobs.settings import JobSettings

TRIAL = "check"
"""The trial's id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """One unit of resource that the trial reported.

    Args:
        number: of the unit, from 1.
        metrics: values by name.
        restarted: whether it was reported after the restart.
    """

    number: int
    metrics: Mapping[str, float]
    restarted: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialCheck:
    """Findings about one trial of a job.

    Args:
        hyperparameters: the configuration that was trained.
        command: the program's command line, as a shell takes it; empty for a trainer that starts no program.
        workers: of the gang; 0 if this process trains.
        length: units of a whole trial.
        units: that the trial reported.
        matched: the first line of output that gave each metric, by metric.
        restart: a sentence about how the trial went on after it was stopped; empty if it was not stopped.
        model: files of the model so far, with their sizes in bytes; None for a trainer whose model is no folder.
        unit_seconds: seconds of one unit.
        problems: sentences about what makes results wrong, or trials fail.
        warnings: sentences about what costs more than it has to.
    """

    hyperparameters: Mapping[str, Any]
    command: str
    workers: int
    length: int
    units: tuple[Unit, ...] = ()
    matched: Mapping[str, str] = field(default_factory=dict)
    restart: str = ""
    model: Mapping[str, int] | None = None
    unit_seconds: float = 0.0
    problems: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def trial_seconds(self) -> float:
        """Worker-seconds of a whole trial that is not paused."""
        return max(self.workers, 1) * self.length * self.unit_seconds

    def to_json(self) -> dict[str, Any]:
        """For programs."""
        return {**asdict(self), "trial_worker_seconds": self.trial_seconds}


def middle(settings: JobSettings) -> dict[str, Any]:
    """Return a configuration from the middle of a job's ranges, with its static hyperparameters.

    A static value of a tuned hyperparameter counts where its range holds it.
    """
    static, ranges = settings.estimator.hyperparameters, settings.ranges
    values = {
        name: static[name] if name in static and bounds.is_valid(static[name]) else bounds.at(0.5)
        for name, bounds in ranges.items()
    }
    there = present(ranges, values)
    return {**{name: value for name, value in static.items() if name not in ranges}, **{n: values[n] for n in there}}


def check_trial(
    settings: JobSettings, inputs: Mapping[str, Any] | None, *, notify: Callable[[str], None], verbose: bool = False
) -> TrialCheck:
    """Train one configuration of a job for up to two units, stop it, and start it again for one more.

    Nothing is recorded, and the files of the trial are removed afterwards; of one that failed, the log stays.

    Args:
        settings: of the job.
        inputs: channels, as `fit` takes them.
        notify: is told what the user should know meanwhile.
        verbose: show Ray's own logs and what workers print.

    Returns:
        Findings; a trial that fails is a problem among them, and no exception.

    Raises:
        ConfigurationError, DataError: as `fit` raises them before anything starts.
        ResourcesError, GangError: no gang fits, or starts.
    """
    channels = opened(settings, inputs)
    trainer, length = settings.estimator, settings.plan().max_resource
    values = middle(settings)
    name = f"check-{secrets.token_hex(4)}"
    folder = storage.join(f"{home()}/checks", name)
    found = _Found(
        trainer=trainer, hyperparameters=values, channels=channels, length=length, folder=folder, settings=settings
    )
    workers = trainer.workers_for(values)
    try:
        with (
            passing_folder(folder, TRIAL),
            steady.measuring(),
            trainer.gangs(
                name, channels, workers=workers, storage_path=folder, notify=notify, verbose=verbose
            ) as gangs,
        ):
            found.train(gangs, workers)
    finally:
        if not found.error:
            remove_logs(name, {TRIAL})
    return found.result(warnings(settings))


@dataclass(slots=True, kw_only=True)
class _Found:
    """Segments of the trial that is checked, and findings about them.

    Args:
        trainer: of the job.
        hyperparameters: that are trained.
        channels: that it reads.
        length: units of a whole trial.
        folder: of the trial's files.
        settings: of the job.
    """

    trainer: Trainer
    hyperparameters: dict[str, Any]
    channels: Mapping[str, Channel]
    length: int
    folder: str
    settings: JobSettings
    segments: list[Segment] = field(default_factory=list)
    error: str = ""
    model: dict[str, int] | None = None
    matched: dict[str, str] = field(default_factory=dict)
    starts: int = 0
    """How often the program was started; 0 where that is not known."""

    def train(self, gangs: Gangs, workers: int) -> None:
        """Train the first segment, and a second one from its checkpoint."""
        first = self._assignment(0, min(2, self.length), None)

        def then(segment: Segment) -> Assignment | None:
            self.segments.append(segment)
            reached = segment.reports[-1].step if segment.reports else 0
            self._read_log()
            # A program that was ahead of where it was stopped has those units already.
            if reached >= self.length or (len(self.segments) > 1 and self.starts != 1):
                return None
            return self._assignment(reached, reached + 1, segment)

        try:
            serve_alone(gangs, first, workers, self.trainer.patience, then)
        except TrialError as error:
            self.error = self._told(error)
        self._read_log()
        if self.segments:
            self.model = self._model_files(self.segments[-1])

    def _told(self, error: TrialError) -> str:
        """Return an error with its traceback; of a program, with its last lines and the place of all of them."""
        if not isinstance(self.trainer, ScriptTrainer):
            return "\n".join(filter(None, (str(error), error.traceback)))
        last = error.traceback.rpartition(str(error))[2].strip("\n")
        return "\n".join(filter(None, (str(error), last, error.logs and f"its output is in {error.logs}")))

    @property
    def _log(self) -> Path:
        return trial_log(logs_folder(), Path(self.folder).name, TRIAL)

    def _read_log(self) -> None:
        """Look for the program's starts, and for the lines that gave the metrics.

        A log of another machine is not here.
        """
        if isinstance(self.trainer, ScriptTrainer) and self._log.is_file():
            with self._log.open(encoding="utf-8", errors="replace") as lines:
                told = lines.readlines()
            output = [line for line in told if not TURN.match(line)]
            self.starts = len(told) - len(output)
            self.matched = self.trainer.first_matches(output)

    def result(self, warned: list[str]) -> TrialCheck:
        """Return what was found."""
        said = {kind: text for each in self.segments for kind, text in each.details.get(WARNINGS, {}).items()}
        units = tuple(
            Unit(number=report.step, metrics=report.metrics, restarted=number == len(self.segments) - 1 > 0)
            for number, segment in enumerate(self.segments)
            for report in segment.reports
        )
        first = self.segments[0] if self.segments else None
        return TrialCheck(
            hyperparameters=self.hyperparameters,
            command=self.trainer.command_line(self.hyperparameters, self.channels),
            workers=0 if self.trainer.in_hand else self.trainer.workers_for(self.hyperparameters),
            length=self.length,
            units=units,
            matched=self.matched,
            restart=self._restart(),
            model=self.model,
            unit_seconds=first.training_seconds / max(len(first.reports), 1) if first else 0.0,
            problems=tuple(filter(None, (self.error, self._begun_again()))),
            warnings=(*warned, *said.values()),
        )

    def _assignment(self, start: int, stop: int, after: Segment | None) -> Assignment:
        return Assignment(
            trial_id=TRIAL,
            hyperparameters=self.hyperparameters,
            seed=self.settings.random_seed or 0,
            start=start,
            stop=stop,
            checkpoint=after.checkpoint if after else None,
            save_to=storage.join(self.folder, TRIAL, f"{stop:06d}{self.trainer.suffix}"),
            limit=self.length,
            objective=self.settings.objective_metric_name or "",
            manifest=after.manifest if after else UNKNOWN,
        )

    def _restart(self) -> str:
        if len(self.segments) < 2:
            return ""
        *before, last = self.segments
        again = last.details.get(TRAINED_AGAIN, 0)
        if again:
            older = last.details.get(WENT_ON_FROM, 0)
            did = f"went on from an older checkpoint, of unit {older}," if older else "began again at unit 1,"
            return f"it {did} and trained {count(again, 'unit')} again"
        reached = before[-1].reports[-1].step
        if self.starts == 1:
            return "not tried: the program had trained to its end before it could be stopped"
        return f"it went on with unit {reached + 1}, from its checkpoint"

    def _begun_again(self) -> str:
        if len(self.segments) < 2 or not self.segments[-1].details.get(TRAINED_AGAIN):
            return ""
        if all(len(bracket.rungs) == 1 for bracket in self.settings.plan().brackets):
            return ""  # No trial is paused.
        return (
            "each pause costs the units that are trained again: let the program write a checkpoint to "
            "SM_CHECKPOINT_DIR with each report, and go on from the newest one, or choose a strategy that does not "
            "pause, such as Random or Bayesian"
        )

    def _model_files(self, segment: Segment) -> dict[str, int] | None:
        try:
            model = self.trainer.trained(segment.checkpoint, manifest=segment.manifest).model()
        except (CheckpointError, ConfigurationError, StorageError):
            return {}
        if not isinstance(model, Path):
            return None
        return {
            str(path.relative_to(model)): path.stat().st_size for path in sorted(model.rglob("*")) if path.is_file()
        }
