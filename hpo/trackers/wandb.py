"""Weights & Biases: a run for the job and one for each trial, in one group, through its own client."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from hpo.observers import JobEnd, JobStart, TrialInfo
from hpo.record import encode
from hpo.trackers.tracker import CLOSE_SECONDS, Finished, Log, Reported, Tracker, job_numbers, job_words, trial_numbers
from trainers.errors import ConfigurationError
from trainers.home import home

MODES = ("online", "offline")


class WeightsAndBiases(Tracker):
    """Logs to Weights & Biases: a group for the job, with a run for each trial and one for the job itself.

    Args:
        project: its name there.
        entity: the user or team; None is the account's own.
        mode: "online"; "offline" keeps files that `wandb sync` sends later; None is what the package is set to, by
            WANDB_MODE say, and online otherwise. Online needs `wandb login` before, or WANDB_API_KEY.
        folder: where files go, in a folder `wandb` of it; None is `WARMBAND_HOME`.

    Raises:
        ConfigurationError: wandb is not installed, or `mode` is another.
    """

    name = "Weights & Biases"
    package = "wandb"

    def __init__(
        self,
        project: str,
        entity: str | None = None,
        mode: Literal["online", "offline"] | None = None,
        folder: str | os.PathLike[str] | None = None,
    ) -> None:
        super().__init__()
        if mode is not None and mode not in MODES:
            raise ConfigurationError(f"mode of Weights & Biases is {mode!r}; give one of {', '.join(MODES)}, or None")
        self.project, self.entity, self.mode = project, entity, mode
        self.folder = os.path.abspath(home() if folder is None else folder)

    def __repr__(self) -> str:
        return f"WeightsAndBiases({self.project!r}, entity={self.entity!r}, mode={self.mode!r})"

    def open(self, job: JobStart) -> Log:
        """See `Tracker`."""
        import wandb

        mode: Any = self.mode or wandb.setup().settings.mode
        if mode == "online" and not wandb.login(prompt=False, verify=False):
            raise PermissionError("no API key is set: run `wandb login`, set WANDB_API_KEY, or take the mode offline")
        os.makedirs(self.folder, exist_ok=True)
        return _Group(self, mode, job)


class _Group:
    """A job's runs."""

    def __init__(self, tracker: WeightsAndBiases, mode: Any, job: JobStart) -> None:
        self._tracker, self._mode, self._job = tracker, mode, job
        self._runs: dict[str, Any] = {}
        self._parent = self._begun(
            job.name,
            "job",
            {
                **job.hyperparameters,
                "warmband": {
                    "metric": job.metric,
                    "objective_type": job.objective_type,
                    "seed": job.seed,
                    "ranges": job.ranges,
                },
            },
        )

    def reports(self, trial: TrialInfo, reports: Sequence[Reported]) -> None:
        run = self._run(trial)
        for each in reports:
            run.log(dict(each.report.metrics), step=each.report.step)

    def trial_end(self, trial: TrialInfo, finished: Finished) -> None:
        end = finished.end
        words = {"status": end.status, "failure": end.failure, "checkpoint": end.checkpoint}
        run = self._run(trial)
        del self._runs[trial.id]
        _finish(run, "trial", trial_numbers(end), words, failed=end.status in ("Failed", "Diverged"))

    def job_end(self, job: JobEnd) -> None:
        for run in self._runs.values():
            _finish(run, "trial", {}, {"status": "Stopped"}, failed=True)
        _finish(self._parent, "job", job_numbers(job), job_words(job), failed=job.status == "Failed")

    def _run(self, trial: TrialInfo) -> Any:
        if trial.id not in self._runs:
            values = {**self._job.hyperparameters, **trial.hyperparameters}
            values["warmband"] = {"number": trial.number, "bracket": trial.bracket}
            self._runs[trial.id] = self._begun(trial.id, "trial", values)
        return self._runs[trial.id]

    def _begun(self, name: str, kind: str, config: Mapping[str, Any]) -> Any:
        import wandb

        # Nothing of the machine, the program and its output: they are the job's, and each run would wait for them.
        settings = wandb.Settings(
            console="off",
            disable_code=True,
            disable_git=True,
            finish_timeout=CLOSE_SECONDS,
            init_timeout=15,  # The process ends no sooner.
            save_code=False,
            silent=True,
            x_disable_machine_info=True,
            x_disable_meta=True,
            x_disable_stats=True,
            x_save_requirements=False,
        )
        return wandb.init(
            project=self._tracker.project,
            entity=self._tracker.entity,
            group=self._job.name,
            job_type=kind,
            name=name,
            config=encode(config),
            dir=self._tracker.folder,
            mode=self._mode,
            reinit="create_new",
            settings=settings,
        )


def _finish(run: Any, kind: str, numbers: Mapping[str, float], words: Mapping[str, str], *, failed: bool) -> None:
    run.summary.update({f"{kind}/{name}": value for name, value in {**numbers, **words}.items() if value != ""})
    run.finish(exit_code=int(failed))
