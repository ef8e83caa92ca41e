"""The command line and environment by which each worker of a gang starts its part of a program."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import replace

from trainers.checking import check_whole, did_you_mean
from trainers.errors import ConfigurationError
from trainers.script.launchers.command_line import by_template, check_template, is_template, words
from trainers.script.launchers.named import LAUNCHERS, ONE_PROCESS, OURS
from trainers.script.launchers.place import RANK_WRAPPER, LauncherOptions, Place, Start, common, is_python


def start_of(launcher: str, program: Sequence[str], place: Place, *, options: LauncherOptions) -> Start | None:
    """What a worker starts for its part of a program.

    Beside the launcher's own variables, `OMP_NUM_THREADS` shares the worker's cores among its processes, and
    `PYTHONUNBUFFERED` lets metrics come when they are printed; the user's own values stay. With one worker, the user's
    own values of the launcher's variables stay, too.

    Args:
        launcher: a name of `LAUNCHERS`, perhaps with options behind it, or a command line with placeholders.
        program: the path of the entry point, and its arguments.
        place: of the worker.
        options: of the launcher.

    Returns:
        What to start; None where this worker starts nothing, since another's launcher starts its processes too.

    Raises:
        ConfigurationError: the launcher is unknown, or cannot start the program in this place.
    """
    check_launcher(launcher, options, workers=place.world_size, processes=place.processes)
    name, arguments = _named(launcher)
    options = replace(options, arguments=arguments)
    start = LAUNCHERS[name] if name else by_template(launcher)
    if not is_python(program) and "/" not in program[0]:
        program = (f"./{program[0]}", *program[1:])  # A name without a folder would be looked for in PATH.
    found = start(program, place, options)
    if found is None:
        return None
    usual, own = common(place), found.environment
    if place.world_size == 1:  # Nobody else relies on its rank.
        usual, own = {**usual, **own}, {}
    kept = {name: value for name, value in usual.items() if name not in options.environment}
    return Start(command=found.command, environment={**kept, **own}, role=found.role)


def mixes_ranks(launcher: str, place: Place) -> bool:
    """Return whether a launcher may start several processes on the first worker, whose outputs are one stream then.

    Args:
        launcher: see `start_of`; of a command line nobody knows.
        place: of the worker.
    """
    name, _ = _named(launcher)
    if place.rank or name in ONE_PROCESS:
        return False
    return not name or place.processes * (place.world_size if name == "mpirun" else 1) > 1


def wrapped(program: Sequence[str]) -> tuple[str, ...]:
    """Return the words that run a program by the wrapper beside it, which leads the output of other ranks aside."""
    wrapper = os.path.join(os.path.dirname(program[0]), RANK_WRAPPER.name)
    return (wrapper, *program) if is_python(program) else (sys.executable, wrapper, *program)


def check_launcher(
    launcher: object, options: LauncherOptions | None = None, *, workers: int | None = None, processes: int = 1
) -> None:
    """Refuses a launcher that is unknown, or cannot start a gang of this shape.

    Args:
        launcher: a name of `LAUNCHERS`, perhaps with options behind it, or a command line with placeholders.
        options: of the launcher.
        workers: of the gang, if known.
        processes: program processes of each worker.

    Raises:
        ConfigurationError: naming it and what to give.
    """
    name, arguments = _named(launcher) if isinstance(launcher, str) else ("", ())
    if not isinstance(launcher, str) or not (name or is_template(launcher)):
        raise ConfigurationError(
            f"launcher is {launcher!r}; give one of {', '.join(sorted(LAUNCHERS))}, perhaps with options of its own "
            f"behind it, or a command line that contains {{program}}{did_you_mean(launcher, LAUNCHERS)}"
        )
    if name:
        _check_arguments(launcher, name, arguments)
    else:
        check_template(launcher)
    check_whole("processes_per_worker", processes, 1, required=True)
    if processes > 1 and name in ONE_PROCESS:
        raise ConfigurationError(
            f"processes_per_worker is {processes}, and launcher {launcher!r} starts one process a worker; leave it "
            "out, or give launcher='torchrun'"
        )
    _check_servers(name or launcher, options or LauncherOptions(), workers)


def _named(launcher: str) -> tuple[str, tuple[str, ...]]:
    """The name and the options of a launcher that is one of `LAUNCHERS`; no name of a command line."""
    name, _, rest = launcher.strip().partition(" ")
    if name not in LAUNCHERS or is_template(launcher):
        return "", ()
    return name, tuple(words(rest, launcher))


def _check_arguments(launcher: str, name: str, arguments: Sequence[str]) -> None:
    """Refuses options that Warmband gives itself, also where they are shortened, and what is none."""
    for at, word in enumerate(arguments):
        option = word.partition("=")[0].replace("_", "-")
        # A parser of options takes "--nnode" for "--nnodes".
        ours = any(own == option or (option[:2] == "--" and own.startswith(option)) for own in OURS[name].split())
        if ours or (at == 0 and not word.startswith("-")):
            said = "the gang's own to say" if ours else f"no option of {name}"
            raise ConfigurationError(
                f"launcher is {launcher!r}, and {word!r} is {said}; leave it out, or give a line with {{script}}"
            )


def _check_servers(launcher: str, options: LauncherOptions, workers: int | None) -> None:
    servers = options.parameter_servers
    check_whole("parameter_servers", servers, 0, required=True)
    if servers and launcher != "tensorflow":
        raise ConfigurationError(
            f"parameter_servers is {servers}, which launcher {launcher!r} has none of; leave it out, or give "
            "launcher='tensorflow'"
        )
    if servers and workers is not None and workers <= servers:
        raise ConfigurationError(
            f"parameter_servers is {servers} with {workers} {'worker' if workers == 1 else 'workers'} in all, and one "
            f"of them is the chief; give {workers - 1} or fewer, or num_workers={servers + 1} or more"
        )
