"""The command line that trains a configuration by hand: what a gang starts, as one writes it in a shell."""

from __future__ import annotations

import re
import shlex
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from trainers.script.environment import Folders, arguments_of, environment_of
from trainers.script.folders import names_in
from trainers.script.launchers import LauncherOptions, Place, Start, start_of

_HOST, _PORT = "127.0.0.1", 29500
_VARIABLES = re.compile(rb"\b(?:SM|WARMBAND)_[A-Z][A-Z0-9_]*|\bwarmband\b")
"""What a program's source names of what Warmband gives it."""
_ROOT = "/opt/ml"
"""The folder of the paths that a new folder takes the place of."""
_MODULE = str(Path(__file__).parent / "module")
_OWN_PROCESSES = ("torchrun", "accelerate", "mpirun")
"""Launchers that start the processes of all workers from one command, on one machine."""


class HasProgram(Protocol):
    """What of a `ScriptTrainer` says how its program is started."""

    entry_point: str
    source_dir: str
    launcher: str
    processes_per_worker: int
    environment: dict[str, str]

    @property
    def launcher_options(self) -> LauncherOptions:
        """What its launcher has to know beside the program."""

    @property
    def worker_resources(self) -> dict[str, float]:
        """See `Trainer.worker_resources`."""

    def workers_for(self, hyperparameters: Mapping[str, Any]) -> int:
        """See `Trainer.workers_for`."""


def command_line(trainer: HasProgram, hyperparameters: Mapping[str, Any]) -> str:
    """Return the command line of a program with a configuration, for a shell on one machine.

    It runs in the source folder, begins with an empty folder for checkpoints, and has the variables that the source
    names. Of several workers that are started one by one, each has a line.

    Args:
        trainer: of the program.
        hyperparameters: the whole configuration, as the program receives it.
    """
    program = (trainer.entry_point, *arguments_of(hyperparameters))
    starts = _starts(trainer, program, trainer.workers_for(hyperparameters))
    given = [f"{name}={value}" for name, value in _variables(trainer, hyperparameters).items()]
    folder = shlex.quote(trainer.source_dir)
    if len(starts) == 1:
        return f"cd {folder} && {_line(starts[0], given)}"
    shared = [f"export {' '.join(given)}"] if given else []
    return "\n".join([f"cd {folder} && (", *shared, *(f"{_line(start)} &" for start in starts), "wait", ")"])


def _starts(trainer: HasProgram, program: Sequence[str], workers: int) -> list[Start]:
    """What the workers of a gang start, on one machine."""
    together = 1
    if trainer.launcher.split(maxsplit=1)[0] in _OWN_PROCESSES or "{processes}" in trainer.launcher:
        workers, together = 1, workers
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
            options=trainer.launcher_options,
        )
        for rank in range(workers)
    ]
    found = [start for start in starts if start is not None]
    common = ("OMP_NUM_THREADS", "PYTHONUNBUFFERED")
    if len(found) == 1:  # One process needs nobody to meet.
        alone = {name: value for name, value in found[0].environment.items() if name in common}
        return [Start(command=found[0].command, environment=alone)]
    return found


def _variables(trainer: HasProgram, hyperparameters: Mapping[str, Any]) -> dict[str, str]:
    """The variables that a program's source names, and its trainer's own, as a shell writes their values."""
    named = names_in(Path(trainer.source_dir), _VARIABLES)
    place = Place(rank=0, world_size=1, hosts=(_HOST,), ports=((_PORT,),), cpus=1, gpus=0)
    made = environment_of(
        hyperparameters,
        entry_point=trainer.entry_point,
        channels={},
        folders=Folders.under(_ROOT, trainer.source_dir),
        place=place,
    )
    each = "SM_HP_" in named  # A program that puts their names together.
    variables = {
        name: _shown(name, value)
        for name, value in made.items()
        if name in named or (each and name.startswith("SM_HP_"))
    }
    if "warmband" in named:
        variables["PYTHONPATH"] = shlex.quote(_MODULE)
    return {**variables, **{name: shlex.quote(value) for name, value in trainer.environment.items()}}


def _shown(name: str, value: str) -> str:
    if not value.startswith(_ROOT):
        return shlex.quote(value)
    return "$(mktemp)" if name == "WARMBAND_REPORTS" else "$(mktemp -d)"


def _line(start: Start, given: Sequence[str] = ()) -> str:
    buffered = [] if "PYTHONUNBUFFERED" in start.command else ["PYTHONUNBUFFERED"]  # mpirun hands it on.
    own = [f"{name}={shlex.quote(value)}" for name, value in start.environment.items() if name not in buffered]
    return " ".join([*own, *given, shlex.join(_python(word) for word in start.command)])


def _python(word: str) -> str:
    """A command's word; this Python by its name, where the shell finds it by that."""
    name = Path(word).name
    return name if word == sys.executable and shutil.which(name) == word else word
