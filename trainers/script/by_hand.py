"""A trial's whole command line, as text that runs the program by hand in a shell."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from trainers.script.arguments import Arguments, given_of
from trainers.script.environment import TYPED, Folders, environment_of, files_of
from trainers.script.launchers import LauncherOptions, Place, Start, start_of
from trainers.script.placeholders import Fillings
from trainers.script.program_options import ProgramOptions

RUN = "by-hand"
"""The folder of what such a run leaves, below its working directory."""
_MODULE = str(Path(__file__).parent / "module")
_PORT = 29500


@dataclass(frozen=True, slots=True, kw_only=True)
class ByHand:
    """A program and how a trainer starts it.

    Args:
        source_dir: its source folder.
        entry_point: the program's file in it.
        working_dir: where it runs; see `ScriptTrainer`.
        launcher: starts it.
        options: of the launcher.
        arguments: how hyperparameters are written.
        declared: options that its source declares.
        processes: of the program, on all workers together.
        gpus: of the machine.
        channels: the folder of each channel, as far as there is one.
    """

    source_dir: str
    entry_point: str
    working_dir: str = ""
    launcher: str = "python"
    options: LauncherOptions = field(default_factory=LauncherOptions)
    arguments: Arguments = field(default_factory=Arguments)
    declared: ProgramOptions = field(default_factory=ProgramOptions)
    processes: int = 1
    gpus: int = 0
    channels: Mapping[str, str] = field(default_factory=dict)

    def text(self, hyperparameters: Mapping[str, Any]) -> str:
        """One line for a shell: it changes to the source folder, makes what the program needs, and runs it.

        Args:
            hyperparameters: of a trial, all of them.

        Raises:
            ConfigurationError: a value cannot be given, or a placeholder has none.
        """
        folders = Folders.under(RUN, ".")
        fillings = self._fillings(folders, hyperparameters)
        values = fillings.filled()
        given = given_of(values, self.arguments, self.declared, folders.config)
        entry = str(Path(self.source_dir, self.entry_point)) if self.working_dir else self.entry_point
        start = self._start((entry, *given.words), fillings)
        words = ["python" if word == sys.executable else word for word in start.command]
        line = shlex.join(words)
        variables = {**self._read(values, folders), **self.options.environment, **given.environment}
        files = {**given.files}
        if "WARMBAND_HYPERPARAMETERS" in variables:
            files[TYPED] = files_of(values, channels={}, place=_place(1, self.gpus))[TYPED]
        steps = [f"cd {shlex.quote(str(Path(self.source_dir, self.working_dir)))}"]
        used = [
            each for each in (folders.checkpoint, folders.model, folders.output_data) if _uses(line, variables, each)
        ]
        if made := [*used, *([folders.config] if files else [])]:
            steps.append(f"mkdir -p {shlex.join(made)}")
        steps += [
            f"printf %s {shlex.quote(text)} > {shlex.quote(f'{folders.config}/{name}')}" for name, text in files.items()
        ]
        assigned = [f"{name}={shlex.quote(value)}" for name, value in variables.items()]
        return " && ".join([*steps, " ".join([*(["env"] if assigned else []), *assigned, line])])

    def _fillings(self, folders: Folders, hyperparameters: Mapping[str, Any]) -> Fillings:
        named = {"checkpoints": folders.checkpoint, "model": folders.model, "output": folders.output_data}
        return Fillings(folders=named, hyperparameters=hyperparameters, channels=self.channels)

    def _start(self, program: tuple[str, ...], fillings: Fillings) -> Start:
        """All processes of the program on one machine; of a program that does not meet others, one."""
        options = replace(self.options, fillings=fillings)
        launcher, processes = self.launcher, self.processes
        name = launcher.partition(" ")[0]
        if name == "python" and self.declared.meets_others:
            launcher = "torchrun"
        elif name in ("python", "tensorflow"):
            processes = 1
        place = _place(processes, self.gpus)
        if name not in ("python", "tensorflow", "torchrun", "accelerate", "mpirun"):
            place = replace(place, processes=1)
        start = start_of(launcher, program, place, options=options)
        assert start is not None, "the first worker starts every launcher"
        return start

    def _read(self, values: Mapping[str, Any], folders: Folders) -> dict[str, str]:
        """Variables that the program's own text mentions, by SageMaker's names and Warmband's."""
        try:
            text = Path(self.source_dir, self.entry_point).read_text(encoding="utf-8", errors="replace")
        except OSError:
            text = ""
        names = {*self.declared.variables, *re.findall(r"\bSM_[A-Z0-9_]+\b", text)}
        made = environment_of(
            values,
            entry_point=self.entry_point,
            channels=self.channels,
            folders=folders,
            place=_place(1, self.gpus),
            arguments=(),
        )
        found = {name: made[name] for name in sorted(names) if name.startswith("SM_") and name in made}
        if self.declared.typed and "warmband" in text.lower():
            found["PYTHONPATH"] = _MODULE
            found["WARMBAND_HYPERPARAMETERS"] = made["WARMBAND_HYPERPARAMETERS"]
        return found


def _place(processes: int, gpus: int) -> Place:
    return Place(
        rank=0, world_size=1, hosts=("127.0.0.1",), ports=((_PORT,),), cpus=1, gpus=gpus, processes=max(1, processes)
    )


def _uses(line: str, variables: Mapping[str, str], folder: str) -> bool:
    return folder in line or any(folder == value for value in variables.values())
