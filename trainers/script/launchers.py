"""Launchers: the command line and environment by which each worker of a gang starts its part of a program."""

from __future__ import annotations

import json
import re
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from trainers.checking import did_you_mean, is_whole
from trainers.errors import ConfigurationError

PORTS = 1
"""Free ports that each worker has to find."""

_PLACEHOLDER = re.compile(r"\{\{(?P<literal>\w+)\}\}|\{(?P<name>\w+)\}")
_PROGRAM, _SCRIPT = "program", "script"


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A worker among those of its gang.

    Args:
        rank: of the worker; also that of its host, since each worker is a host in SageMaker's words.
        world_size: workers of the gang.
        hosts: the address of each worker's node, by rank.
        ports: `PORTS` free ports of each worker, by rank.
        cpus: of this worker.
        gpus: of this worker.
        processes: program processes of each worker.
    """

    rank: int
    world_size: int
    hosts: tuple[str, ...]
    ports: tuple[tuple[int, ...], ...]
    cpus: int
    gpus: int
    processes: int = 1

    @property
    def master(self) -> str:
        """Address of rank 0's node."""
        return self.hosts[0]

    @property
    def master_port(self) -> int:
        """Rank 0's port, where the processes of a program meet."""
        return self.ports[0][0]

    @property
    def machines(self) -> str:
        """All workers as LightGBM's `machines` has them, by rank: "10.0.0.1:5000,10.0.0.2:5001"."""
        return ",".join(f"{_in_address(host)}:{ports[0]}" for host, ports in zip(self.hosts, self.ports, strict=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """What a worker starts.

    Args:
        command: argv.
        environment: beside what environment.py gives; where both name a variable, this one is right.
        role: "worker", "chief" or "server"; the last serves for ever, parameters or the steps that a chief gives it,
            and ends when the others have.
    """

    command: tuple[str, ...]
    environment: dict[str, str]
    role: str = "worker"


@dataclass(frozen=True, slots=True, kw_only=True)
class LauncherOptions:
    """What a user may say of a launcher, and what a launcher has to know of its process.

    Args:
        arguments: of the launcher itself, such as `("--mixed_precision", "bf16")` of accelerate, as `start_of` finds
            them behind its name. They stand behind those that Warmband gives, so that they win.
        parameter_servers: workers that serve parameters, of the launcher "tensorflow".
        environment: variables of the program, those of the user included.
        as_root: whether the worker runs as root, which mpirun wants to be told.
    """

    arguments: tuple[str, ...] = ()
    parameter_servers: int = 0
    environment: Mapping[str, str] = field(default_factory=dict)
    as_root: bool = False


Launcher = Callable[[Sequence[str], Place, LauncherOptions], Start | None]
"""Gives what a worker starts for a program, (entry point, *arguments); None where it starts nothing itself."""


def start_of(launcher: str, program: Sequence[str], place: Place, *, options: LauncherOptions) -> Start | None:
    """What a worker starts for its part of a program.

    Beside the launcher's own variables, `OMP_NUM_THREADS` shares the worker's cores among its processes, and
    `PYTHONUNBUFFERED` lets metrics come when they are printed; the user's own values stay.

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
    start = LAUNCHERS[name] if name else _by_template(launcher)
    if not _is_python(program) and "/" not in program[0]:
        program = (f"./{program[0]}", *program[1:])  # A name without a folder would be looked for in PATH.
    found = start(program, place, options)
    if found is None:
        return None
    common = _common(place)
    kept = {name: value for name, value in common.items() if name not in options.environment}
    return Start(command=found.command, environment={**kept, **found.environment}, role=found.role)


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
    if not isinstance(launcher, str) or not (name or _is_template(launcher)):
        raise ConfigurationError(
            f"launcher is {launcher!r}; give one of {', '.join(sorted(LAUNCHERS))}, perhaps with options of its own "
            f"behind it, or a command line that contains {{program}}{did_you_mean(launcher, LAUNCHERS)}"
        )
    if name:
        _check_arguments(launcher, name, arguments)
    else:
        _check_template(launcher)
    if not is_whole(processes, 1):
        raise ConfigurationError(f"processes_per_worker is {processes!r}; give a whole number, 1 or more")
    if processes > 1 and name in _ONE_PROCESS:
        raise ConfigurationError(
            f"processes_per_worker is {processes}, and launcher {launcher!r} starts one process a worker; leave it "
            "out, or give launcher='torchrun'"
        )
    _check_servers(name or launcher, options or LauncherOptions(), workers)


def _named(launcher: str) -> tuple[str, tuple[str, ...]]:
    """The name and the options of a launcher that is one of `LAUNCHERS`; no name of a command line."""
    name, _, rest = launcher.strip().partition(" ")
    if name not in LAUNCHERS or _is_template(launcher):
        return "", ()
    return name, tuple(_words(rest, launcher))


def _check_arguments(launcher: str, name: str, arguments: Sequence[str]) -> None:
    """Refuses options that Warmband gives itself, also where they are shortened, and what is none."""
    for at, word in enumerate(arguments):
        option = word.partition("=")[0].replace("_", "-")
        # A parser of options takes "--nnode" for "--nnodes".
        ours = any(own == option or (option[:2] == "--" and own.startswith(option)) for own in _OURS[name].split())
        if ours or (at == 0 and not word.startswith("-")):
            said = "the gang's own to say" if ours else f"no option of {name}"
            raise ConfigurationError(
                f"launcher is {launcher!r}, and {word!r} is {said}; leave it out, or give a line with {{script}}"
            )


def _check_servers(launcher: str, options: LauncherOptions, workers: int | None) -> None:
    servers = options.parameter_servers
    if not is_whole(servers, 0):
        raise ConfigurationError(f"parameter_servers is {servers!r}; give a whole number, 0 or more")
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


def _common(place: Place) -> dict[str, str]:
    return {"OMP_NUM_THREADS": str(max(1, place.cpus // place.processes)), "PYTHONUNBUFFERED": "1"}


def _is_python(program: Sequence[str]) -> bool:
    return program[0].endswith(".py")


def _runnable(program: Sequence[str]) -> tuple[str, ...]:
    """The words that run a program: a Python file by this Python, any other as it is."""
    return (sys.executable, *program) if _is_python(program) else tuple(program)


def _in_address(host: str) -> str:
    """A host as it stands before a colon and a port."""
    return f"[{host}]" if ":" in host else host


def _python(program: Sequence[str], place: Place, options: LauncherOptions) -> Start:
    """One process a worker, with the variables by which torch.distributed and others find each other."""
    environment = {
        "RANK": str(place.rank),
        "WORLD_SIZE": str(place.world_size),
        "LOCAL_RANK": "0",
        "LOCAL_WORLD_SIZE": "1",
        "MASTER_ADDR": place.master,
        "MASTER_PORT": str(place.master_port),
    }
    words = _runnable(program)
    if _is_python(program):
        words = (words[0], *options.arguments, *words[1:])
    return Start(command=words, environment=environment)


def _torchrun(program: Sequence[str], place: Place, options: LauncherOptions) -> Start:
    """A static rendezvous, also of one worker: nothing is agreed on that the gang does not know already."""
    command = (
        *(sys.executable, "-m", "torch.distributed.run"),
        *("--nnodes", str(place.world_size), "--nproc-per-node", str(place.processes)),
        *("--node-rank", str(place.rank)),
        *("--master-addr", _in_address(place.master), "--master-port", str(place.master_port)),
        *options.arguments,
        *(() if _is_python(program) else ("--no-python",)),
    )
    return Start(command=(*command, *program), environment={})


def _accelerate(program: Sequence[str], place: Place, options: LauncherOptions) -> Start:
    """Accelerate's command: `--cpu` starts one process, however many are asked for.

    `--multi_gpu` starts all, and the variable keeps them to CPUs.
    """
    several = place.world_size * place.processes > 1
    devices = ("--multi_gpu", "--same_network") if several else () if place.gpus else ("--cpu",)
    command = (
        *(sys.executable, "-m", "accelerate.commands.launch"),
        *("--num_machines", str(place.world_size), "--num_processes", str(place.world_size * place.processes)),
        *("--machine_rank", str(place.rank)),
        *("--main_process_ip", _in_address(place.master), "--main_process_port", str(place.master_port)),
        *("--mixed_precision", "no", "--dynamo_backend", "no"),
        *devices,
        *options.arguments,
        *(() if _is_python(program) else ("--no_python",)),
    )
    environment = {} if place.gpus else {"ACCELERATE_USE_CPU": "true"}
    return Start(command=(*command, *program), environment=environment)


def _mpirun(program: Sequence[str], place: Place, options: LauncherOptions) -> Start | None:
    """Open MPI's mpirun, on rank 0 alone; it starts the processes of all workers, which one node has to hold."""
    nodes = sorted(set(place.hosts))
    if len(nodes) > 1:
        raise ConfigurationError(
            f"launcher 'mpirun' starts all processes from the first worker, and the {place.world_size} workers are on "
            f"{len(nodes)} nodes, {', '.join(nodes)}; give ScalingConfig(placement_strategy='STRICT_PACK'), or "
            "launcher='torchrun'"
        )
    if place.rank:
        return None
    processes = place.world_size * place.processes
    names = sorted({*options.environment, *_common(place)})
    command = (
        *("mpirun", "-np", str(processes)),
        *(("--allow-run-as-root",) if options.as_root else ()),
        *("--host", f"localhost:{processes}", "--map-by", ":OVERSUBSCRIBE"),
        # mpirun counts cores from 0, and so would that of every gang on the node.
        *(("--bind-to", "none") if "--bind-to" not in options.arguments else ()),
        *(word for name in names for word in ("-x", name)),
        *options.arguments,
    )
    return Start(command=(*command, *_runnable(program)), environment={})


def _tensorflow(program: Sequence[str], place: Place, options: LauncherOptions) -> Start:
    """`TF_CONFIG`: workers alike, or with parameter servers a chief, workers and, of the last ranks, the servers."""
    workers = place.world_size - options.parameter_servers

    def role(rank: int) -> str:
        if not options.parameter_servers:
            return "worker"
        return "chief" if rank == 0 else "worker" if rank < workers else "ps"

    cluster: dict[str, list[str]] = {}
    for rank, (host, ports) in enumerate(zip(place.hosts, place.ports, strict=True)):
        cluster.setdefault(role(rank), []).append(f"{_in_address(host)}:{ports[0]}")
    mine = role(place.rank)
    task = {"type": mine, "index": sum(role(rank) == mine for rank in range(place.rank))}
    started = _python(program, place, options)
    return Start(
        command=started.command,
        environment={"TF_CONFIG": json.dumps({"cluster": cluster, "task": task})},
        # Where there are servers, workers are too: each is a tf.distribute.Server, of which none ends.
        role="server" if options.parameter_servers and mine != "chief" else mine,
    )


LAUNCHERS: dict[str, Launcher] = {
    "python": _python,
    "torchrun": _torchrun,
    "accelerate": _accelerate,
    "mpirun": _mpirun,
    "tensorflow": _tensorflow,
}
"""The launchers by their names."""

_ONE_PROCESS = ("python", "tensorflow")

_OURS = {
    "python": "-c -m",
    "tensorflow": "-c -m",
    "torchrun": "-m --module --no-python --nnodes --nproc-per-node --node-rank --master-addr --master-port "
    "--standalone --rdzv-backend --rdzv-endpoint --rdzv-id",
    "accelerate": "-m --module --no-python --num-machines --num-processes --machine-rank --main-process-ip "
    "--main-process-port --cpu --multi-gpu --same-network",
    "mpirun": "-n -np --np -c -H -host --host -hostfile --hostfile -machinefile --machinefile",
}
"""Options of each launcher that say what the gang is, or what is started."""


def _is_template(launcher: str) -> bool:
    return any(found["name"] in (_PROGRAM, _SCRIPT) for found in _PLACEHOLDER.finditer(launcher))


def _values(place: Place) -> dict[str, str]:
    """The placeholders of a command line, but for those of the program itself."""
    return {
        "rank": str(place.rank),
        "world_size": str(place.world_size),
        "host": place.hosts[place.rank],
        "hosts": ",".join(place.hosts),
        "machines": place.machines,
        "master": place.master,
        "port": str(place.master_port),
        "cpus": str(place.cpus),
        "gpus": str(place.gpus),
        "processes": str(place.processes),
    }


def _words(line: str, launcher: str) -> list[str]:
    try:
        return shlex.split(line)
    except ValueError as error:
        raise ConfigurationError(
            f"launcher is {launcher!r}: {error}; give a command line as a shell takes it"
        ) from None


def _check_template(template: str) -> None:
    known = {_PROGRAM, _SCRIPT, *_values(Place(rank=0, world_size=1, hosts=("",), ports=((0,),), cpus=0, gpus=0))}
    for word in _words(template, template):
        for found in _PLACEHOLDER.finditer(word):
            if found["name"] and found["name"] not in known:
                raise ConfigurationError(
                    f"launcher is {template!r}, and its placeholder {{{found['name']}}} is unknown; give "
                    f"{', '.join(f'{{{name}}}' for name in sorted(known))}, or double its braces to have it as it is"
                    f"{did_you_mean(found['name'], known)}"
                )


def _by_template(template: str) -> Launcher:
    """The launcher of a command line.

    `{program}` are the words that run the program, `{script}` the same without the Python in front of a Python file, as
    launchers want it that start Python themselves. A word of its own becomes as many words as there are; within a
    word, as in `sh -c '{program} > log'`, they are quoted for a shell.
    """

    def start(program: Sequence[str], place: Place, options: LauncherOptions) -> Start:
        whole = {_PROGRAM: _runnable(program), _SCRIPT: tuple(program)}
        values = _values(place) | {name: shlex.join(words) for name, words in whole.items()}

        def filled(found: re.Match[str]) -> str:
            return f"{{{found['literal']}}}" if found["literal"] else values[found["name"]]

        command: list[str] = []
        for word in _words(template, template):
            alone = _PLACEHOLDER.fullmatch(word)
            if alone and alone["name"] in whole:
                command += whole[alone["name"]]
            else:
                command.append(_PLACEHOLDER.sub(filled, word))
        return Start(command=tuple(command), environment=_python(program, place, options).environment)

    return start
