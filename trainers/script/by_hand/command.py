"""The command line that trains a configuration by hand: what a gang starts, as one writes it in a shell."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from trainers.channels import Channel
from trainers.script.arguments import Arguments, Given, given_of
from trainers.script.by_hand import together
from trainers.script.by_hand.channels import LaidOut, laid_out
from trainers.script.by_hand.words import PORT_VARIABLE, RUN, RUN_VARIABLE, assigned, needs_env, port_of, quoted
from trainers.script.environment import TYPED, Folders, environment_of, files_of
from trainers.script.folders import folders_of, mentions_others, names_in
from trainers.script.launchers import RANK_WRAPPER, LauncherOptions, Place, Start, common, start_of
from trainers.script.placeholders import Fillings
from trainers.script.program_options import ProgramOptions

_HOST = "127.0.0.1"
_VARIABLES = re.compile(rb"\b(?:SM|WARMBAND)_[A-Z][A-Z0-9_]*|\bwarmband\b")
"""Finds the variables and the module of Warmband that a program's source names."""
_CONFIG = {"SM_INPUT_DIR", "SM_INPUT_CONFIG_DIR"}
"""Variables of the folder with files about the trial."""
_MODULE = str(RANK_WRAPPER.parent)


class HasProgram(Protocol):
    """The settings of a `ScriptTrainer` that determine how its program starts."""

    entry_point: str
    source_dir: str
    working_dir: str
    launcher: str
    processes_per_worker: int
    environment: dict[str, str]
    passed: Arguments

    @property
    def declared(self) -> ProgramOptions:
        """The options that its source declares."""

    @property
    def launcher_options(self) -> LauncherOptions:
        """Return the settings of its launcher."""

    @property
    def worker_resources(self) -> dict[str, float]:
        """See `Trainer.worker_resources`."""

    def workers_for(self, hyperparameters: Mapping[str, Any]) -> int:
        """See `Trainer.workers_for`."""


def command_line(
    trainer: HasProgram, hyperparameters: Mapping[str, Any], channels: Mapping[str, Any] | None = None
) -> str:
    """Return the command of a program with a configuration, for a shell on one machine.

    It runs in the program's working directory, makes a new folder for checkpoints, model and output, and has the
    variables that the source names. Several workers have a command each, which `together` runs: each is a host of its
    own, as in a trial, and its ports are free ones of the moment. A comment before the command names each folder that
    the user has to give, as a trial reads a channel that is not on this machine, or is made for its gang.

    Args:
        trainer: of the program.
        hyperparameters: the whole configuration, as a trial has it.
        channels: as `fit` takes them, for `{data:CHANNEL}` and SM_CHANNEL_NAME.

    Raises:
        ConfigurationError: a value cannot be given, or a placeholder has none.
    """
    workers = max(1, trainer.workers_for(hyperparameters))
    laid = laid_out({name: Channel.of(source, name=name) for name, source in (channels or {}).items()}, workers)
    program = _Program(trainer, hyperparameters, laid, workers)
    parts = [part for rank in range(workers) if (part := program.part(rank)) is not None]
    lines = [part.line for part in parts]
    whole = "\n".join([*lines, *(quoted(text) for part in parts for text in part.files.values())])
    steps = [f"cd {shlex.quote(str(Path(trainer.source_dir, trainer.working_dir)))}"]
    steps += _path(trainer)
    made = [*_made(parts, whole), *(step for folder, step in laid.made.items() if quoted(folder) in whole)]
    steps += [f"{RUN_VARIABLE}=$(mktemp -d)", f"export {RUN_VARIABLE}", *made] if RUN_VARIABLE in whole else []
    if len(lines) == 1 and PORT_VARIABLE not in whole:
        steps += lines
    else:
        each = [f"{'--server ' if part.serves else ''}{shlex.quote(part.line)}" for part in parts]
        steps.append(" \\\n  ".join([f"{_python(sys.executable)} {shlex.quote(together.__file__)}", *each]))
    return "\n".join([*(note for folder, note in laid.notes.items() if quoted(folder) in whole), " && ".join(steps)])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """A worker's part of a command.

    Args:
        line: for a shell.
        folders: that it may name.
        files: texts, by path.
        serves: whether it serves until the others have ended.
    """

    line: str
    folders: Folders
    files: dict[str, str]
    serves: bool


class _Program:
    """A program with a configuration, on the workers of a gang that are all on this machine.

    Args:
        trainer: of the program.
        hyperparameters: the whole configuration.
        laid: its channels.
        workers: of the gang.
    """

    def __init__(self, trainer: HasProgram, hyperparameters: Mapping[str, Any], laid: LaidOut, workers: int) -> None:
        self._trainer, self._hyperparameters, self._laid, self._workers = trainer, hyperparameters, laid, workers
        source = Path(trainer.source_dir)
        self._named = {*names_in(source, _VARIABLES), *trainer.declared.variables}
        self._named |= {name.decode() for name in _VARIABLES.findall(trainer.launcher.encode())}
        # A program that knows of no other workers needs nobody to meet.
        self._alone = workers == 1 and trainer.launcher == "python" and not mentions_others(source)

    def part(self, rank: int) -> _Part | None:
        """Return the part of a worker; None where another's launcher starts its processes too."""
        trainer, channels = self._trainer, self._laid.folders[rank]
        folders = replace(folders_of(Path(RUN), rank), code=trainer.source_dir)
        named = {"checkpoints": folders.checkpoint, "model": folders.model, "output": folders.output_data}
        fillings = Fillings(folders=named, hyperparameters=self._hyperparameters, channels=channels)
        values = fillings.filled()
        given = given_of(values, trainer.passed, trainer.declared, folders.config)
        entry = str(Path(trainer.source_dir, trainer.entry_point)) if trainer.working_dir else trainer.entry_point
        place = self._place(rank)
        options = replace(trainer.launcher_options, fillings=fillings)
        start = start_of(trainer.launcher, (entry, *given.words), place, options=options)
        if start is None:
            return None
        made = environment_of(
            values,
            entry_point=trainer.entry_point,
            channels=channels,
            folders=folders,
            place=place,
            distributions=self._laid.distributions,
            arguments=given.words,
        )
        files = files_of(values, channels=channels, place=place, distributions=self._laid.distributions)
        variables = self._variables(made, place, given)
        written = {**(files if _CONFIG & set(variables) else {}), **given.files}
        if "WARMBAND_HYPERPARAMETERS" in variables:
            written[TYPED] = files[TYPED]
        return _Part(
            line=_line(self._kept(start, place), variables),
            folders=folders,
            files={f"{folders.config}/{name}": text for name, text in written.items()},
            serves=start.role == "server",
        )

    def _place(self, rank: int) -> Place:
        resources = self._trainer.worker_resources
        return Place(
            rank=rank,
            world_size=self._workers,
            hosts=(_HOST,) * self._workers,
            ports=tuple((port_of(each),) for each in range(self._workers)),
            cpus=int(resources.get("CPU", 1)),
            gpus=int(resources.get("GPU", 0)),
            processes=self._trainer.processes_per_worker,
        )

    def _variables(self, made: Mapping[str, str], place: Place, given: Given) -> dict[str, str]:
        """Return the variables that the program's source names, its trainer's own, and those of its arguments."""
        trainer, named = self._trainer, self._named
        # A program may put names together.
        begun = tuple(name for name in ("SM_HP_", "SM_CHANNEL_") if name in named)
        variables = {name: value for name, value in made.items() if name in named or name.startswith(begun)}
        if place.gpus and self._workers > 1:
            devices = range(place.rank * place.gpus, (place.rank + 1) * place.gpus)
            variables["CUDA_VISIBLE_DEVICES"] = ",".join(map(str, devices))
        variables |= {**trainer.environment, **given.environment}
        if "warmband" in named:
            own = trainer.environment.get("PYTHONPATH", os.environ.get("PYTHONPATH", ""))
            variables["PYTHONPATH"] = os.pathsep.join(filter(None, (_MODULE, own)))
            if trainer.declared.typed:
                variables["WARMBAND_HYPERPARAMETERS"] = made["WARMBAND_HYPERPARAMETERS"]
        return variables

    def _kept(self, start: Start, place: Place) -> Start:
        """Return what is started, without variables by which it would meet others where it knows of none."""
        if not self._alone:
            return start
        usual = common(place)
        return replace(start, environment={name: value for name, value in start.environment.items() if name in usual})


def _made(parts: Sequence[_Part], whole: str) -> list[str]:
    """Return the commands that make the folders and files that the lines name."""
    folders = {str(Path(path).parent) for part in parts for path in part.files}
    for part in parts:
        own = part.folders
        each = (own.checkpoint, own.model, own.output, own.output_data, own.input, own.config)
        folders |= {folder for folder in each if quoted(folder) in whole}
        folders |= {str(Path(own.reports).parent)} if quoted(own.reports) in whole else set()
    files = {path: text for part in parts for path, text in part.files.items()}
    made = [f"mkdir -p {' '.join(map(quoted, sorted(folders)))}"] if folders else []
    return made + [f"printf %s {quoted(text)} > {quoted(path)}" for path, text in files.items()]


def _path(trainer: HasProgram) -> list[str]:
    """Return the command by which a launcher's command line, or a program, finds commands beside this Python."""
    own = os.path.dirname(sys.executable)
    by_name = "{" in trainer.launcher or not trainer.entry_point.endswith(".py")
    found = own in os.environ.get("PATH", os.defpath).split(os.pathsep)
    return [f'export PATH={shlex.quote(own)}:"$PATH"'] if by_name and not found else []


def _line(start: Start, variables: Mapping[str, str]) -> str:
    buffered = [] if "PYTHONUNBUFFERED" in start.command else ["PYTHONUNBUFFERED"]  # mpirun hands it on.
    own = {name: value for name, value in start.environment.items() if name not in buffered}
    whole = {**variables, **own}
    assignments = [assigned(name, value) for name, value in whole.items()]
    env = ["env"] if any(map(needs_env, whole)) else []
    return " ".join([*env, *assignments, *(quoted(_python(word)) for word in start.command)])


def _python(word: str) -> str:
    """Return a command's word; this Python by its name, where the shell finds it by that."""
    name = Path(word).name
    return name if word == sys.executable and shutil.which(name) == word else word
