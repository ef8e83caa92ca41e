"""The command line that trains a configuration by hand: what a gang starts, as one writes it in a shell."""

from __future__ import annotations

import re
import shlex
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from trainers.script.arguments import Arguments, Given, given_of
from trainers.script.environment import TYPED, Folders, environment_of, files_of
from trainers.script.folders import names_in
from trainers.script.launchers import LauncherOptions, Place, Start, start_of
from trainers.script.placeholders import Fillings
from trainers.script.program_options import ProgramOptions

_HOST, _PORT = "127.0.0.1", 29500
_VARIABLES = re.compile(rb"\b(?:SM|WARMBAND)_[A-Z][A-Z0-9_]*|\bwarmband\b")
"""What a program's source names of what Warmband gives it."""
_RUN = "/WARMBAND-RUN"
"""Stands for the folder that a run makes for itself, until the command is written."""
_MODULE = str(Path(__file__).parent / "module")
_OWN_PROCESSES = ("torchrun", "accelerate", "mpirun")
"""Launchers that start the processes of all workers from one command, on one machine."""


class HasProgram(Protocol):
    """What of a `ScriptTrainer` says how its program is started."""

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
        """What its launcher has to know beside the program."""

    @property
    def worker_resources(self) -> dict[str, float]:
        """See `Trainer.worker_resources`."""

    def workers_for(self, hyperparameters: Mapping[str, Any]) -> int:
        """See `Trainer.workers_for`."""


def command_line(
    trainer: HasProgram, hyperparameters: Mapping[str, Any], channels: Mapping[str, str] | None = None
) -> str:
    """Return the command line of a program with a configuration, for a shell on one machine.

    It runs in the program's working directory, makes a new folder for checkpoints, model and output, and has the
    variables that the source names. Of several workers that are started one by one, each has a line.

    Args:
        trainer: of the program.
        hyperparameters: the whole configuration, as a trial has it.
        channels: folders of channels, for `{data:CHANNEL}` and SM_CHANNEL_NAME.

    Raises:
        ConfigurationError: a value cannot be given, or a placeholder has none.
    """
    channels = channels or {}
    folders = Folders.under(_RUN, trainer.source_dir)
    named = {"checkpoints": folders.checkpoint, "model": folders.model, "output": folders.output_data}
    fillings = Fillings(folders=named, hyperparameters=hyperparameters, channels=channels)
    values = fillings.filled()
    given = given_of(values, trainer.passed, trainer.declared, folders.config)
    entry = str(Path(trainer.source_dir, trainer.entry_point)) if trainer.working_dir else trainer.entry_point
    starts = _starts(trainer, (entry, *given.words), trainer.workers_for(hyperparameters), fillings)
    variables = _variables(trainer, values, channels, folders, given)
    files = dict(given.files)
    if "WARMBAND_HYPERPARAMETERS" in variables:
        files[TYPED] = files_of(values, channels=channels, place=_alone())[TYPED]
    lines = [_line(start, variables) for start in starts]
    steps = [f"cd {shlex.quote(str(Path(trainer.source_dir, trainer.working_dir)))}"]
    steps += _folders(lines, folders, files)
    if len(lines) == 1:
        return " && ".join([*steps, *lines])
    return "\n".join([f"{' && '.join(steps)} && (", *(f"{line} &" for line in lines), "wait", ")"])


def _folders(lines: Sequence[str], folders: Folders, files: Mapping[str, str]) -> list[str]:
    """Return the commands that make the folders and files that the lines name."""
    whole = " ".join(lines)
    each = {folders.checkpoint, folders.model, folders.output, folders.output_data}
    used = sorted(folder for folder in each if _quoted(folder) in whole)
    if files:
        used.append(folders.config)
    if not used:
        return []
    made = ["run=$(mktemp -d)", f"mkdir -p {' '.join(map(_quoted, used))}"]
    return made + [f"printf %s {_quoted(text)} > {_quoted(f'{folders.config}/{name}')}" for name, text in files.items()]


def _starts(trainer: HasProgram, program: tuple[str, ...], workers: int, fillings: Fillings) -> list[Start]:
    """Return what the workers of a gang start, on one machine."""
    together = 1
    if trainer.launcher.split(maxsplit=1)[0] in _OWN_PROCESSES or "{processes}" in trainer.launcher:
        workers, together = 1, max(1, workers)
    workers = max(1, workers)
    resources = trainer.worker_resources
    starts = [
        start_of(
            trainer.launcher,
            program,
            Place(
                rank=rank,
                world_size=workers,
                hosts=(_HOST,) * workers,
                ports=tuple((_PORT + each,) for each in range(workers)),
                cpus=int(resources.get("CPU", 1)) * together,
                gpus=int(resources.get("GPU", 0)) * together,
                processes=trainer.processes_per_worker * together,
            ),
            options=replace(trainer.launcher_options, fillings=fillings),
        )
        for rank in range(workers)
    ]
    found = [start for start in starts if start is not None]
    common = ("OMP_NUM_THREADS", "PYTHONUNBUFFERED")
    if len(found) == 1:  # One process needs nobody to meet.
        alone = {name: value for name, value in found[0].environment.items() if name in common}
        return [Start(command=found[0].command, environment=alone)]
    return found


def _alone() -> Place:
    return Place(rank=0, world_size=1, hosts=(_HOST,), ports=((_PORT,),), cpus=1, gpus=0)


def _variables(
    trainer: HasProgram, values: Mapping[str, Any], channels: Mapping[str, str], folders: Folders, given: Given
) -> dict[str, str]:
    """Return the variables that a program's source names, its trainer's own, and those of its arguments."""
    named = {*names_in(Path(trainer.source_dir), _VARIABLES), *trainer.declared.variables}
    made = environment_of(
        values,
        entry_point=trainer.entry_point,
        channels=channels,
        folders=folders,
        place=_alone(),
        arguments=given.words,
    )
    each = "SM_HP_" in named  # A program that puts their names together.
    variables = {name: value for name, value in made.items() if name in named or (each and name.startswith("SM_HP_"))}
    if "warmband" in named:
        variables["PYTHONPATH"] = _MODULE
        if trainer.declared.typed:
            variables["WARMBAND_HYPERPARAMETERS"] = made["WARMBAND_HYPERPARAMETERS"]
    return {**variables, **trainer.environment, **given.environment}


def _line(start: Start, variables: Mapping[str, str]) -> str:
    buffered = [] if "PYTHONUNBUFFERED" in start.command else ["PYTHONUNBUFFERED"]  # mpirun hands it on.
    own = {name: value for name, value in start.environment.items() if name not in buffered}
    assigned = [f"{name}={_quoted(value)}" for name, value in {**own, **variables}.items()]
    # A name such as batch-size is none that a shell assigns to.
    env = [] if all(name.isidentifier() for name in variables) else ["env"]
    return " ".join([*env, *assigned, *(_quoted(_python(word)) for word in start.command)])


def _quoted(word: str) -> str:
    """Return a word as a shell takes it, with the run's own folder in the place of `_RUN`."""
    if _RUN not in word:
        return shlex.quote(word)
    return '"$run"'.join(shlex.quote(part) if part else "" for part in word.split(_RUN))


def _python(word: str) -> str:
    """Return a command's word; this Python by its name, where the shell finds it by that."""
    name = Path(word).name
    return name if word == sys.executable and shutil.which(name) == word else word
