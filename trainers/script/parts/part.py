"""Starts of a program's parts: the workers agree on ports and roles, and each starts its own, or gives it an order."""

from __future__ import annotations

import os
import shutil
import socket
import sys
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from trainers.errors import TrialError
from trainers.gangs import Assignment, WorkerContext
from trainers.script.arguments import Given, given_of
from trainers.script.environment import Folders, environment_of, files_of
from trainers.script.launchers import PORTS, RANK_WRAPPER, Place, Start, mixes_ranks, start_of, wrapped
from trainers.script.output_log import OutputLog, job_of, turn_text
from trainers.script.parts.kept_process import HOST, KeptProcess
from trainers.script.parts.settings import ScriptSettings
from trainers.script.peers import Peers, free_ports
from trainers.script.placeholders import Fillings
from trainers.script.process import SHOWN_BYTES, Guard, ProgramProcess
from trainers.script.several_printers import Read, Twins, Unread

MODULE = str(Path(HOST).parent)
"""The folder of the module `warmband`, which a program may import."""
MEET_SECONDS = 600.0
"""How long workers wait for each other before and after a program: for a node that reads a checkpoint, say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A worker's part of a program that was started on all workers.

    Args:
        process: of this worker; None where another's launcher starts its processes too, or it could not be started.
        roles: of all ranks.
        problems: why a part could not be started, by rank.
        printing: by whom its metric is printed.
    """

    process: ProgramProcess | KeptProcess | None
    roles: Sequence[str]
    problems: Sequence[Exception | None]
    printing: Printing


class Printing:
    """The readers of a worker's output: of what counts, on rank 0 alone, and of what does not.

    Args:
        read: gives the readings of a line.
        objective: the metric; empty for any.
        rank: of the worker.
    """

    def __init__(self, read: Read, objective: str, rank: int) -> None:
        self.twins, self.unread = Twins(read, objective), Unread(read, objective)
        self.read: Read = self.twins if rank == 0 else self.unread


@dataclass(frozen=True, slots=True, kw_only=True)
class _Trial:
    """A trial's values on this worker."""

    hyperparameters: dict[str, Any]
    given: Given
    fillings: Fillings


@dataclass(slots=True, kw_only=True)
class _Loaded:
    """A program that is kept loaded: what this worker has of it, if it has any."""

    process: KeptProcess | None
    place: Place
    roles: Sequence[str]
    machines: str
    """As it was started with them, which its command line may have."""
    printing: Printing


class Parts:
    """Starts this worker's part for each assignment.

    Args:
        settings: of the program.
        context: of this worker.
        peers: of the gang.
        guard: of this worker.
        channels: the folder of each channel, on this worker.
        distributions: how their files came here; see `environment_of`.
        root: a folder that stays as long as the gang.
    """

    def __init__(
        self,
        settings: ScriptSettings,
        *,
        context: WorkerContext,
        peers: Peers,
        guard: Guard,
        channels: Mapping[str, str],
        distributions: Mapping[str, str],
        root: Path,
    ) -> None:
        self._settings, self._context, self._peers, self._guard = settings, context, peers, guard
        self._channels, self._distributions, self._root = channels, distributions, root
        self._loaded: _Loaded | None = None
        address = socket.gethostname() if context.in_hand else context.node_ip
        self.log = OutputLog(address, settings.logs, SHOWN_BYTES)
        """The log of the trial that this worker serves."""

    def begin(self, assignment: Assignment, folders: Folders, seen: int, first_step: float | None = None) -> Part:
        """Starts it; every rank has to call this.

        Args:
            assignment: that it serves.
            folders: of this worker.
            seen: the unit before the first that the program will report.
            first_step: the step of unit 1, if it is known.

        Raises:
            ConfigurationError: the launcher cannot start it here.
            GangError: another worker is gone.
        """
        if not self._settings.keep_loaded:
            return self._started(assignment, folders)
        if not self._is_loaded():
            self.close()
            part = self._started(assignment, folders)
            if any(part.problems):
                return part
        else:
            self._renew_ports()
        assert self._loaded is not None
        loaded = self._loaded
        if loaded.process is not None:
            order = self._order(assignment, folders, loaded, seen, first_step)
            self._begin_log(assignment, [self._settings.entry_point, *order["arguments"]])
            loaded.process.begin(order)
        return Part(process=loaded.process, roles=loaded.roles, problems=(), printing=loaded.printing)

    def close(self) -> None:
        """Ends what is kept loaded."""
        if self._loaded is not None and self._loaded.process is not None:
            self._loaded.process.close()
        self._loaded = None

    def _is_loaded(self) -> bool:
        """Whether all workers have their parts; they share a process group, so that none goes on without the others."""
        loaded = self._loaded
        mine = loaded is not None and (loaded.process is None or loaded.process.alive)
        return all(self._peers.gathered(mine, MEET_SECONDS, "its program"))

    def _started(self, assignment: Assignment, folders: Folders) -> Part:
        settings, peers = self._settings, self._peers
        place = self._place()
        trial = self._trial(assignment, folders)
        options = replace(settings.options, fillings=trial.fillings)
        file = os.path.join(folders.code, settings.entry_point) if settings.working_dir else settings.entry_point
        program = (HOST,) if settings.keep_loaded else (file, *trial.given.words)
        mixes, entry = mixes_ranks(settings.launcher, place), Path(folders.code, program[0])
        aside = self._root / f"aside-{uuid.uuid4().hex}" if mixes else None
        program = wrapped(program) if mixes else program
        printing = Printing(settings.definitions.read, assignment.objective, place.rank)
        start = start_of(settings.launcher, program, place, options=options)
        roles = peers.gathered(start.role if start else "none", MEET_SECONDS, "its start")
        process: ProgramProcess | KeptProcess | None = None
        problem: Exception | None = None
        try:
            if aside is not None:
                _lay_wrapper(entry)
            if start is not None and settings.keep_loaded:
                process = self._kept(start, roles, printing, aside)
            elif start is not None:
                environment = self._environment(assignment, folders, place, trial)
                self._begin_log(assignment, start.command)
                process = ProgramProcess(
                    start,
                    environment=environment,
                    folder=self._directory(folders),
                    guard=self._guard,
                    read=printing.read,
                    log=self.log,
                    aside=aside,
                    read_aside=printing.unread,
                )
        except (TrialError, OSError) as error:
            problem = error
        problems = peers.gathered(problem, MEET_SECONDS, "its start")
        if settings.keep_loaded:
            assert not isinstance(process, ProgramProcess)
            self._loaded = _Loaded(
                process=process, place=place, roles=roles, machines=place.machines, printing=printing
            )
        return Part(process=process, roles=roles, problems=problems, printing=printing)

    def _begin_log(self, assignment: Assignment, command: Sequence[str]) -> None:
        rank = self._context.rank
        said = turn_text(assignment.start, assignment.stop, rank, command)
        self.log.begin(job_of(assignment.save_to), assignment.trial_id, rank, said)

    def _kept(self, start: Start, roles: Sequence[str], printing: Printing, aside: Path | None) -> KeptProcess:
        starters = sum(role != "none" for role in roles)
        return KeptProcess(
            start,
            environment={"PATH": _path(), **self._settings.environment, "PYTHONPATH": self._modules()},
            folder=self._root,
            guard=self._guard,
            read=printing.read,
            log=self.log,
            aside=aside,
            read_aside=printing.unread,
            processes=self._settings.processes * (len(roles) // starters),
        )

    def _renew_ports(self) -> None:
        """Ports where a program listens itself: the system keeps those of the trial before for a minute."""
        assert self._loaded is not None
        ports = self._peers.gathered(free_ports(1)[0], MEET_SECONDS, "its port")
        self._loaded.place = replace(self._loaded.place, listening=tuple(ports))

    def _order(
        self, assignment: Assignment, folders: Folders, loaded: _Loaded, seen: int, first_step: float | None
    ) -> dict[str, Any]:
        steps = self._settings.steps
        code = self._loaded_code(folders)
        trial = self._trial(assignment, folders)
        return {
            "program": os.path.join(code, self._settings.entry_point),
            "arguments": list(trial.given.words),
            "environment": self._environment(assignment, folders, loaded.place, trial),
            "machines": [loaded.machines, loaded.place.machines],
            "folder": code,
            "directory": os.path.join(code, self._settings.working_dir),
            "objective": assignment.objective,
            "stop": assignment.stop,
            "seen": seen,
            "first_step": steps.first if steps.first is not None else first_step,
            "every": steps.stride,
        }

    def _loaded_code(self, folders: Folders) -> str:
        """A path of the code that stays: a loop around trials finds its own file, and what is beside it, where it was.

        What it writes has another path for each trial, which a late thread of the one before does not reach.
        """
        link = self._root / f"loaded-{self._context.rank}"
        made = link.with_suffix(".new")
        made.symlink_to(folders.code)
        os.replace(made, link)
        return str(link)

    def _place(self) -> Place:
        """Where this worker's part runs; ports are free now, on each worker's node."""
        context, settings = self._context, self._settings
        ports = self._peers.gathered(free_ports(PORTS), MEET_SECONDS, "its ports")
        hosts = self._peers.gathered(context.node_ip, MEET_SECONDS, "its address")
        return Place(
            rank=context.rank,
            world_size=context.world_size,
            hosts=tuple(hosts),
            ports=tuple(ports),
            cpus=context.cpus,
            gpus=settings.gpus,
            processes=settings.processes,
        )

    def _trial(self, assignment: Assignment, folders: Folders) -> _Trial:
        """What a trial's program is given, in which folders and channels have their paths on this worker.

        Raises:
            ConfigurationError: a placeholder has no value.
        """
        named = {"checkpoints": folders.checkpoint, "model": folders.model, "output": folders.output_data}
        fillings = Fillings(folders=named, hyperparameters=assignment.hyperparameters, channels=self._channels)
        hyperparameters = fillings.filled()
        settings = self._settings
        given = given_of(hyperparameters, settings.arguments, settings.declared, folders.config)
        return _Trial(hyperparameters=hyperparameters, given=given, fillings=fillings)

    def _directory(self, folders: Folders) -> Path:
        """Where the program runs.

        Raises:
            TrialError: it is not on this node.
        """
        directory = Path(folders.code, self._settings.working_dir)
        if not directory.is_dir():
            raise TrialError(
                f"working_dir {self._settings.working_dir!r} is no folder on {socket.gethostname()}; give one that "
                "every node has, or one in source_dir"
            )
        return directory

    def _environment(self, assignment: Assignment, folders: Folders, place: Place, trial: _Trial) -> dict[str, str]:
        """Of a trial, beside the launcher's; writes the files that it names."""
        channels, distributions = self._channels, self._distributions
        files = files_of(trial.hyperparameters, channels=channels, place=place, distributions=distributions)
        for name, text in {**files, **trial.given.files}.items():
            Path(folders.config, name).write_text(text, encoding="utf-8")
        made = environment_of(
            trial.hyperparameters,
            entry_point=self._settings.entry_point,
            channels=channels,
            folders=folders,
            place=place,
            job_name=assignment.trial_id,
            distributions=distributions,
            arguments=trial.given.words,
        )
        own = {**trial.given.environment, **self._settings.environment}
        return {**made, "PATH": _path(), **own, "PYTHONPATH": self._modules()}

    def _modules(self) -> str:
        own = self._settings.environment.get("PYTHONPATH", os.environ.get("PYTHONPATH", ""))
        return os.pathsep.join(filter(None, (MODULE, own)))


def _path() -> str:
    """Where commands are looked for: also beside this Python, as in an environment that was activated."""
    own, given = os.path.dirname(sys.executable), os.environ.get("PATH", os.defpath)
    return given if own in given.split(os.pathsep) else os.pathsep.join((own, given))


def _lay_wrapper(beside: Path) -> None:
    """Lay a copy of the wrapper beside a program, where a container sees it that sees the program."""
    wrapper = beside.with_name(RANK_WRAPPER.name)
    if not wrapper.exists():
        shutil.copyfile(RANK_WRAPPER, wrapper)
