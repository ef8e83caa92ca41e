"""Launchers by their names: python, torchrun, accelerate, mpirun and tensorflow."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence

from trainers.errors import ConfigurationError
from trainers.script.launchers.place import (
    Launcher,
    LauncherOptions,
    Place,
    Start,
    common,
    in_address,
    is_python,
    meeting,
    runnable,
)


def _python(program: Sequence[str], place: Place, options: LauncherOptions) -> Start:
    """One process a worker, with the variables by which torch.distributed and others find each other."""
    words = runnable(program)
    if is_python(program):
        words = (words[0], *options.arguments, *words[1:])
    return Start(command=words, environment=meeting(place))


def _torchrun(program: Sequence[str], place: Place, options: LauncherOptions) -> Start:
    """A static rendezvous, also of one worker: nothing is agreed on that the gang does not know already."""
    command = (
        *(sys.executable, "-m", "torch.distributed.run"),
        *("--nnodes", str(place.world_size), "--nproc-per-node", str(place.processes)),
        *("--node-rank", str(place.rank)),
        *("--master-addr", in_address(place.master), "--master-port", str(place.master_port)),
        *options.arguments,
        *(() if is_python(program) else ("--no-python",)),
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
        *("--main_process_ip", in_address(place.master), "--main_process_port", str(place.master_port)),
        *("--mixed_precision", "no", "--dynamo_backend", "no"),
        *devices,
        *options.arguments,
        *(() if is_python(program) else ("--no_python",)),
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
    names = sorted({*options.environment, *common(place)})
    command = (
        *("mpirun", "-np", str(processes)),
        *(("--allow-run-as-root",) if options.as_root else ()),
        *("--host", f"localhost:{processes}", "--map-by", ":OVERSUBSCRIBE"),
        # mpirun counts cores from 0, and so would that of every gang on the node.
        *(("--bind-to", "none") if "--bind-to" not in options.arguments else ()),
        *(word for name in names for word in ("-x", name)),
        *options.arguments,
    )
    return Start(command=(*command, *runnable(program)), environment={})


def _tensorflow(program: Sequence[str], place: Place, options: LauncherOptions) -> Start:
    """`TF_CONFIG`: workers alike, or with parameter servers a chief, workers and, of the last ranks, the servers."""
    workers = place.world_size - options.parameter_servers

    def role(rank: int) -> str:
        if not options.parameter_servers:
            return "worker"
        return "chief" if rank == 0 else "worker" if rank < workers else "ps"

    cluster: dict[str, list[str]] = {}
    for rank, (host, ports) in enumerate(zip(place.hosts, place.ports, strict=True)):
        cluster.setdefault(role(rank), []).append(f"{in_address(host)}:{ports[0]}")
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

ONE_PROCESS = ("python", "tensorflow")

OURS = {
    "python": "-c -m",
    "tensorflow": "-c -m",
    "torchrun": "-m --module --no-python --nnodes --nproc-per-node --node-rank --master-addr --master-port "
    "--standalone --rdzv-backend --rdzv-endpoint --rdzv-id",
    "accelerate": "-m --module --no-python --num-machines --num-processes --machine-rank --main-process-ip "
    "--main-process-port --cpu --multi-gpu --same-network",
    "mpirun": "-n -np --np -c -H -host --host -hostfile --hostfile -machinefile --machinefile",
}
"""Options of each launcher that say what the gang is, or what is started."""
