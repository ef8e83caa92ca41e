"""`ScriptTrainer`: a trial is a program of the user's, started by a launcher on the workers of a gang."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Self

from ray.train import ScalingConfig

from trainers.channels import WHOLE, Channel, PlacedChannel
from trainers.checking import check_whole, did_you_mean, is_number
from trainers.checkpoint import UNKNOWN
from trainers.cluster import Cluster
from trainers.errors import ConfigurationError
from trainers.gangs import WORKERS, Gangs, Program, resources_per_worker
from trainers.script.arguments import Arguments, check_arguments, check_names
from trainers.script.by_hand import command_line
from trainers.script.folders import mentions, mentions_others, no_entry_point, packed
from trainers.script.launchers import PLACES, LauncherOptions, check_launcher, uses_trial
from trainers.script.lengths import LENGTHS, ProgramLength, program_length
from trainers.script.metric_files import check_globs
from trainers.script.metric_lines import MetricDefinitions
from trainers.script.output_log import logs_folder
from trainers.script.placeholders import check_placeholders
from trainers.script.program_options import ProgramOptions, options_of
from trainers.script.steps import StepCounter
from trainers.trainer import Trainer

REPORT_SECONDS = 1800.0
"""How long a program may take to a report if nothing else is said."""
RUNTIME_ENV = ("env_vars", "image_uri", "pip", "working_dir")
"""What a `runtime_env` may have: what makes sense for the workers of one trainer."""
GRACE_SECONDS = 30.0
"""How long it may take to end after SIGTERM; SageMaker gives two minutes, of which most is its own."""
_CHECKPOINT = re.compile(rb"(?i)checkpoint")


class ScriptTrainer(Trainer):
    r"""Starts a program for each trial, on every worker; what it prints, or reports, are the trial's metrics.

    Hyperparameters arrive as `--name value`, or as `arguments` say, and with channels and folders in SageMaker's
    environment variables.

    Args:
        entry_point: the program, a file in `source_dir`: a `.py` file, or another one that can be executed.
        source_dir: the folder that it runs in a copy of; None is the working directory.
        launcher: "python", "torchrun", "accelerate", "mpirun", "tensorflow", perhaps with options of its own, such as
            "accelerate --mixed_precision bf16"; or a command line with `{program}` in it.
        scaling: see `Trainer`; each worker starts the launcher once.
        hyperparameters: see `Trainer`; `{checkpoints}`, `{model}`, `{output}`, `{hp:NAME}` and `{data:CHANNEL}` in them
            stand for the trial's folders, for other hyperparameters and for the folders of channels.
        arguments: how they reach the program: "--name value", "--name=value", "name=value", "environment" or "file", or
            a dict with `style`, `booleans`, `lists`, `positional` and `file`; None: as its source declares them.
        working_dir: where the program runs: a folder in the copy of `source_dir`, which None is, or an absolute path.
        metric_definitions: `[{"Name": "validation:accuracy", "Regex": "acc=(\S+)"}]`, of what rank 0 prints; a match
            of the objective is one unit, or the named group `step` says which. None where it reports otherwise.
        metric_files: globs of files that the program writes metrics to, from its working directory on, such as
            ["logs/**/metrics.csv"]: TensorBoard's event files, CSV, JSON lines or JSON documents.
        step: the program's step counter, such as `{"first": 0, "every": 10}`: the step of the first unit and the steps
            of a unit, whole or not; `key` names the JSON key or column that has it, `step` if it is left out. None:
            steps are 0, 1, 2 and so on, or 1, 2, 3.
        processes_per_worker: processes of the program on each worker, one for each GPU, say.
        parameter_servers: for "tensorflow", how many of the workers are parameter servers; rank 0 is then the chief.
        environment: variables beside SageMaker's.
        length: the name of the hyperparameter that sets the program's length, such as "max_iters", or the number of
            reports of a trial; None is the first of `LENGTHS` that a configuration has.
        keep_loaded: whether the program stays loaded on its gang, and is run in the same processes for one trial after
            the other; see docs/guides/your-own-program.md for what that takes.
        runtime_env: Ray's environment for the workers, such as `{"pip": ["lightning"]}`; it is made when a gang starts,
            once on each node.
        report_timeout_s: seconds that it may take to a report, and behind its last unit to its end.
        grace_period_s: seconds from SIGTERM to SIGKILL, where it is paused or ended.

    Raises:
        ConfigurationError: a value is wrong.
    """

    resource_names: tuple[str, ...] = LENGTHS
    fixed_names: tuple[str, ...] = (WORKERS,)
    needs_train: ClassVar[bool] = False
    takes_folders: bool = True
    takes_distributions: tuple[str, ...] = (WHOLE,)
    deals: str = "gives all files of rows to each worker, or deals those of a Folder"
    unit: str = "report"
    code_options: ClassVar[tuple[str, ...]] = ("entry_point",)

    def __init__(
        self,
        entry_point: str | os.PathLike[str],
        *,
        source_dir: str | os.PathLike[str] | None = None,
        launcher: str = "python",
        scaling: ScalingConfig | None = None,
        hyperparameters: Mapping[str, Any] | None = None,
        arguments: str | Mapping[str, Any] | None = None,
        working_dir: str | os.PathLike[str] | None = None,
        metric_definitions: Sequence[Mapping[str, str]] | None = None,
        metric_files: Sequence[str] | None = None,
        step: Mapping[str, Any] | None = None,
        processes_per_worker: int = 1,
        parameter_servers: int = 0,
        environment: Mapping[str, str] | None = None,
        length: str | int | None = None,
        keep_loaded: bool = False,
        runtime_env: Mapping[str, Any] | None = None,
        report_timeout_s: float = REPORT_SECONDS,
        grace_period_s: float = GRACE_SECONDS,
    ) -> None:
        if not isinstance(entry_point, str | os.PathLike) or not os.fspath(entry_point):
            raise ConfigurationError(f"entry_point is {entry_point!r}; give the path of a program in source_dir")
        self.entry_point = os.fspath(entry_point)
        self.source_dir = str(Path(os.path.expanduser(source_dir or ".")).absolute())
        self.launcher = launcher
        self.passed = Arguments.of(arguments)
        self.working_dir = _checked_working_dir(working_dir)
        self.metric_definitions = [dict(each) for each in metric_definitions or ()]
        self.metric_files = [*check_globs(metric_files)]
        self._steps = StepCounter.of(step)
        self.step = None if step is None else dict(step)
        self.processes_per_worker, self.parameter_servers = processes_per_worker, parameter_servers
        self.environment = _checked_environment(environment)
        self.length = length
        self._length = program_length(length, self._steps)
        self.resource_names = self._length.names
        self.keep_loaded = keep_loaded
        self.runtime_env = _checked_runtime_env(runtime_env)
        for name, seconds in (("report_timeout_s", report_timeout_s), ("grace_period_s", grace_period_s)):
            if not is_number(seconds) or seconds <= 0:
                raise ConfigurationError(f"{name} is {seconds!r}; give a number of seconds above 0")
        self.report_timeout_s, self.grace_period_s = float(report_timeout_s), float(grace_period_s)
        check_whole("parameter_servers", parameter_servers, 0)
        self._definitions = MetricDefinitions(self.metric_definitions)
        super().__init__(scaling=scaling, hyperparameters=hyperparameters)
        if keep_loaded:
            self._check_kept()
        check_launcher(launcher, self.launcher_options, workers=self.workers, processes=processes_per_worker)

    def _check_kept(self) -> None:
        """Refuses to keep what cannot be run twice in one process."""
        if not self.entry_point.endswith(".py"):
            raise ConfigurationError(
                f"keep_loaded is {self.keep_loaded!r}, and entry_point {self.entry_point!r} is no Python file; leave "
                "it out"
            )
        if placeholder := uses_trial(self.launcher):
            raise ConfigurationError(
                f"keep_loaded is {self.keep_loaded!r}, and launcher {self.launcher!r} starts once, with {placeholder} "
                "of the first trial alone; leave it out, or give it as a hyperparameter"
            )
        if self.launcher == "tensorflow":
            raise ConfigurationError(
                f"keep_loaded is {self.keep_loaded!r}, and TensorFlow makes the cluster of launcher 'tensorflow' once "
                "in a process; leave it out"
            )

    @property
    def launcher_options(self) -> LauncherOptions:
        """What its launcher has to know beside the program."""
        return LauncherOptions(
            parameter_servers=self.parameter_servers, environment=self.environment, as_root=os.geteuid() == 0
        )

    @property
    def options(self) -> dict[str, Any]:
        """See `Trainer.options`."""
        values = {
            "launcher": self.launcher,
            "arguments": self.passed.to_json(),
            "working_dir": self.working_dir or None,
            "metric_definitions": self.metric_definitions,
            "metric_files": self.metric_files,
            "step": self.step,
            "processes_per_worker": self.processes_per_worker,
            "parameter_servers": self.parameter_servers,
            "environment": self.environment,
            "length": self.length,
            "keep_loaded": self.keep_loaded,
            "runtime_env": self.runtime_env,
            "report_timeout_s": self.report_timeout_s,
            "grace_period_s": self.grace_period_s,
        }
        usual: dict[str, Any] = {
            "launcher": "python",
            "arguments": None,
            "working_dir": None,
            "metric_definitions": [],
            "metric_files": [],
            "step": None,
            "processes_per_worker": 1,
            "parameter_servers": 0,
            "environment": {},
            "length": None,
            "keep_loaded": False,
            "runtime_env": {},
            "report_timeout_s": REPORT_SECONDS,
            "grace_period_s": GRACE_SECONDS,
        }
        changed = {name: value for name, value in values.items() if value != usual[name]}
        return {"entry_point": self.entry_point, "source_dir": self.source_dir, **changed}

    def with_definitions(self, definitions: Sequence[Mapping[str, str]]) -> Self:
        """The same trainer with these metric definitions in place of its own."""
        arguments = {**self.arguments, "metric_definitions": definitions}
        return type(self)(scaling=self.scaling, hyperparameters=self.hyperparameters, **arguments)

    def check(self, hyperparameters: Mapping[str, Any]) -> None:
        """See `Trainer.check`: what cannot be written as an argument, and placeholders that do not exist."""
        for name, value in hyperparameters.items():
            check_placeholders(f"hyperparameter {name!r}", value)
        program = self.entry_point if Path(self.source_dir, self.entry_point).is_file() else ""
        check_arguments(hyperparameters, self.passed, self.declared, program)

    def check_names(self, names: Collection[str]) -> None:
        """See `Trainer.check_names`: in arguments and in placeholders."""
        check_names(names, self.passed)
        for name, value in self.hyperparameters.items():
            check_placeholders(f"hyperparameter {name!r}", value, names=names)
        if uses_trial(self.launcher):
            check_placeholders("launcher", self.launcher, names=names, also=PLACES)

    @property
    def declared(self) -> ProgramOptions:
        """The options that the program's source declares; none where the source is not here."""
        return options_of(Path(self.source_dir), self.entry_point)

    @property
    def lengths(self) -> tuple[ProgramLength, ...]:
        """See `Trainer.lengths`."""
        return (self._length,)

    def retraining(self, hyperparameters: Mapping[str, Any], units: int) -> tuple[dict[str, Any], dict[str, Any]]:
        """See `Trainer.retraining`: with all that the program received, and a length where nothing says one."""
        return dict(hyperparameters), {"length": units} if self._length.of(hyperparameters) is None else {}

    def command_line(self, hyperparameters: Mapping[str, Any], channels: Mapping[str, Any] | None = None) -> str:
        """See `Trainer.command_line`: the program's own."""
        return command_line(self, hyperparameters, channels)

    def first_matches(self, lines: Iterable[str]) -> dict[str, str]:
        """Return the first line of output that gives each metric of the definitions, by metric.

        Raises:
            ConfigurationError: an expression took a part of a number.
        """
        found: dict[str, str] = {}
        for line in lines:
            for reading in self._definitions.read(line):
                for name in reading.metrics:
                    found.setdefault(name, line.strip())
            if len(found) == len(self.metric_definitions):
                break
        return found

    def metrics(self, channels: Iterable[str]) -> list[str] | None:
        """See `Trainer.metrics`; a program without definitions, or with files, says itself what it reports."""
        return None if self.metric_files else [each["Name"] for each in self.metric_definitions] or None

    def check_files(self) -> None:
        """Refuse a source folder, a program and a working directory that are not there.

        Raises:
            ConfigurationError: naming the one that is missing.
        """
        source = Path(self.source_dir)
        if not source.is_dir():
            raise ConfigurationError(
                f"source_dir is {self.source_dir!r}, which is no folder; give the program's folder"
            )
        if not (source / self.entry_point).is_file():
            raise no_entry_point(source, self.entry_point)
        place = source / self.working_dir
        if self.working_dir and not place.is_dir():
            raise ConfigurationError(
                f"working_dir is {self.working_dir!r}, and {str(place)!r} is no folder; give one in "
                "source_dir, or an absolute path that every node has"
            )

    def checked(
        self, channels: Mapping[str, Channel], metric: str | None = None, *, workers: int | None = None
    ) -> dict[str, Channel]:
        """See `Trainer.checked`; the program and its folders have to be there, and channels that placeholders name.

        Raises:
            ConfigurationError, DataError: one of them is not, or rows are not what they have to be.
        """
        self.check_files()
        for name, value in self.hyperparameters.items():
            check_placeholders(f"hyperparameter {name!r}", value, channels=list(channels))
        if uses_trial(self.launcher):
            check_placeholders("launcher", self.launcher, channels=list(channels), also=PLACES)
        return super().checked(channels, metric, workers=workers)

    @property
    def patience(self) -> float:
        """See `Trainer.patience`; rank 0 ends a program that does not report, a little earlier."""
        return self.report_timeout_s + 2 * self.grace_period_s + 60.0

    def probe_obstacle(self) -> str:
        """See `Trainer.probe_obstacle`."""
        return super().probe_obstacle() or "it runs a program of yours"

    def pause_obstacle(self, *, stops_only: bool = False) -> str:
        """See `Trainer.pause_obstacle`: as far as the words of its source folder tell.

        A program that is only stopped runs on behind its rungs, unless it is kept loaded, and ends its turn there.
        """
        if (stops_only and not self.keep_loaded) or mentions(Path(self.source_dir), _CHECKPOINT):
            return ""
        return (
            f"neither {self.entry_point} nor a file beside it mentions a checkpoint, and a program that writes none to "
            "SM_CHECKPOINT_DIR begins again after each pause; let it write one with every report"
        )

    def copies_obstacle(self) -> str:
        """See `Trainer.copies_obstacle`: as far as the words of its source folder tell, without another launcher."""
        if self.workers == 1 or self.launcher != "python" or mentions_others(Path(self.source_dir)):
            return ""
        return (
            f"neither {self.entry_point} nor a file beside it mentions other workers, as by RANK, WORLD_SIZE or "
            f"torch.distributed: each of its {self.workers} workers may train the whole model by itself, and all of "
            "them write to one SM_CHECKPOINT_DIR; give num_workers 1, or a program that trains in parallel"
        )

    def program(self, channels: dict[str, PlacedChannel]) -> Program:
        """See `Trainer.program`; the source folder is read now.

        Raises:
            ConfigurationError: there is no such program, or its folder is too large.
        """
        from trainers.script.parts import ScriptSettings
        from trainers.script.program import ScriptProgram

        source = Path(self.source_dir)
        return ScriptProgram(
            channels,
            ScriptSettings(
                entry_point=self.entry_point,
                source=packed(source, self.entry_point),
                launcher=self.launcher,
                options=self.launcher_options,
                definitions=self._definitions,
                metric_files=tuple(self.metric_files),
                environment=self.environment,
                processes=self.processes_per_worker,
                steps=self._steps,
                gpus=int(resources_per_worker(self.scaling).get("GPU", 0)),
                length=self._length,
                arguments=self.passed,
                declared=self.declared,
                working_dir=self.working_dir,
                keep_loaded=self.keep_loaded,
                logs=logs_folder(),
                report_timeout_s=self.report_timeout_s,
                grace_period_s=self.grace_period_s,
            ),
        )

    def start_gangs(
        self,
        name: str,
        channels: Mapping[str, Channel],
        on: Cluster,
        notify: Callable[[str], None],
        priority: int = 1,
        patient: bool = False,
    ) -> Gangs:
        """See `Trainer.start_gangs`."""
        on = replace(on, runtime_env=self.runtime_env)
        return super().start_gangs(name, channels, on, notify, priority, patient)

    def load_model(self, checkpoint: str) -> Path:
        """The folder of what the program wrote to `SM_MODEL_DIR`, below `WARMBAND_HOME`.

        Raises:
            CheckpointError: it is cut short, changed or missing, or the program wrote nothing there.
        """
        from trainers.script.kept_models import model_folder

        return model_folder(checkpoint, self._manifest if checkpoint == self.checkpoint else UNKNOWN)

    def packed_model(self) -> bytes:
        """The trained model as a tar.gz archive of what the program wrote to `SM_MODEL_DIR`, if anything."""
        from trainers.script.kept_models import packed_model

        if not self.checkpoint:
            raise ConfigurationError(self._missing or "this trainer has no model; fit() returns one")
        return packed_model(self.checkpoint, self._manifest)


def _checked_working_dir(working_dir: str | os.PathLike[str] | None) -> str:
    if not isinstance(working_dir, str | os.PathLike | None) or working_dir == "":
        raise ConfigurationError(f"working_dir is {working_dir!r}; give a folder in source_dir, or an absolute path")
    return os.path.expanduser(os.fspath(working_dir or ""))


def _checked_environment(environment: Mapping[str, str] | None) -> dict[str, str]:
    for name, value in (environment or {}).items():
        if not isinstance(name, str) or not name or "=" in name or not isinstance(value, str):
            raise ConfigurationError(
                f"environment has {name!r}: {value!r}; give names and values as text, such as {{'NCCL_DEBUG': 'INFO'}}"
            )
    return dict(environment or {})


def _checked_runtime_env(runtime_env: Mapping[str, Any] | None) -> dict[str, Any]:
    from ray.runtime_env import RuntimeEnv

    given = dict(runtime_env or {})
    if unknown := [name for name in given if name not in RUNTIME_ENV]:
        raise ConfigurationError(
            f"runtime_env has {unknown[0]!r}; give {', '.join(RUNTIME_ENV)}{did_you_mean(unknown[0], RUNTIME_ENV)}"
        )
    try:
        RuntimeEnv(**given)
        json.dumps(given)
    except (ValueError, TypeError) as error:
        raise ConfigurationError(f"runtime_env is {given!r}, which Ray does not take: {error}") from error
    return given
