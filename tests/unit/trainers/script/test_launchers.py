"""Launchers: the command line and environment of each worker."""

from __future__ import annotations

import argparse
import json
import sys

import pytest
from torch.distributed.run import get_args_parser

from tests.support.refusals import refuses, refuses_each
from trainers.errors import ConfigurationError
from trainers.script.launchers import LAUNCHERS, LauncherOptions, Place, Start, check_launcher, start_of

PROGRAM = ("/code/train.py", "--lr", "-0.5")


def place(rank: int = 0, workers: int = 2, **changes) -> Place:
    given = {
        "rank": rank,
        "world_size": workers,
        "hosts": tuple(f"10.0.0.{each}" for each in range(workers)),
        "ports": tuple((5000 + each,) for each in range(workers)),
        "cpus": 4,
        "gpus": 0,
        "processes": 1,
    }
    return Place(**given | changes)


def started(launcher: str, where: Place, program: tuple[str, ...] = PROGRAM, **options) -> Start:
    start = start_of(launcher, program, where, options=LauncherOptions(**options))
    assert start is not None
    return start


def after(command: tuple[str, ...], option: str) -> str:
    return command[command.index(option) + 1]


def test_python_sets_what_torch_distributed_reads():
    start = started("python", place(rank=1, workers=3))
    assert start.command == (sys.executable, *PROGRAM)
    assert start.environment == {
        "RANK": "1",
        "WORLD_SIZE": "3",
        "LOCAL_RANK": "0",
        "LOCAL_WORLD_SIZE": "1",
        "MASTER_ADDR": "10.0.0.0",
        "MASTER_PORT": "5000",
        "OMP_NUM_THREADS": "4",
        "PYTHONUNBUFFERED": "1",
    }


@pytest.mark.parametrize("launcher", ["python", "{program}"])
def test_one_worker_has_the_users_own_rank(launcher: str):
    alone = started(launcher, place(workers=1), environment={"RANK": "-1"}).environment
    assert "RANK" not in alone, "the user's own value is set beside it"
    assert alone["WORLD_SIZE"] == "1"
    assert started(launcher, place(rank=1, workers=3), environment={"RANK": "-1"}).environment["RANK"] == "1"


def test_what_is_no_python_file_is_run_as_it_is():
    assert started("python", place(), ("/code/train", "x")).command == ("/code/train", "x")
    assert "--no-python" in started("torchrun", place(), ("/code/train", "x")).command
    assert "--no_python" in started("accelerate", place(), ("/code/train", "x")).command


def test_torchrun_takes_its_command_line():
    command = started("torchrun --max-restarts 1", place(rank=1, processes=4)).command
    assert command[:3] == (sys.executable, "-m", "torch.distributed.run")
    arguments = get_args_parser().parse_args(command[3:])
    assert (arguments.nnodes, arguments.nproc_per_node, arguments.node_rank) == ("2", "4", 1)
    assert (arguments.master_addr, arguments.master_port, arguments.rdzv_backend) == ("10.0.0.0", 5000, "static")
    assert arguments.max_restarts == 1
    assert (arguments.training_script, *arguments.training_script_args) == PROGRAM


def test_an_ipv6_address_is_in_brackets_where_a_port_follows():
    where = place(workers=1, hosts=("fe80::1",))
    assert after(started("torchrun", where).command, "--master-addr") == "[fe80::1]"
    assert started("python", where).environment["MASTER_ADDR"] == "fe80::1"
    assert json.loads(started("tensorflow", where).environment["TF_CONFIG"])["cluster"] == {
        "worker": ["[fe80::1]:5000"]
    }


@pytest.mark.parametrize(
    ("gpus", "workers", "processes", "given", "cpu"),
    [
        (0, 1, 1, {"--cpu"}, True),
        (0, 2, 1, {"--multi_gpu"}, True),
        (0, 1, 2, {"--multi_gpu"}, True),
        (1, 1, 1, set(), False),
        (2, 2, 2, {"--multi_gpu"}, False),
    ],
)
def test_accelerate_starts_all_processes_with_gpus_and_without(gpus, workers, processes, given, cpu):
    start = started("accelerate", place(workers=workers, processes=processes, gpus=gpus))
    assert {"--cpu", "--multi_gpu"} & {*start.command} == given
    assert start.environment.get("ACCELERATE_USE_CPU") == ("true" if cpu else None)
    assert after(start.command, "--num_processes") == str(workers * processes)
    assert start.command[-len(PROGRAM) :] == PROGRAM


def test_mpirun_is_started_by_the_first_worker_alone():
    where = {"hosts": ("10.0.0.7", "10.0.0.7"), "processes": 2}
    command = started("mpirun --mca btl tcp", place(**where), environment={"SM_HP_LR": "1"}).command
    assert after(command, "-np") == "4"
    assert after(command, "--host") == "localhost:4"
    assert [command[at + 1] for at, word in enumerate(command) if word == "-x"] == [
        "OMP_NUM_THREADS",
        "PYTHONUNBUFFERED",
        "SM_HP_LR",
    ]
    assert command[-7:] == ("--mca", "btl", "tcp", sys.executable, *PROGRAM)
    assert "--allow-run-as-root" not in command
    assert "--allow-run-as-root" in started("mpirun", place(**where), as_root=True).command
    assert start_of("mpirun", PROGRAM, place(rank=1, **where), options=LauncherOptions()) is None


@pytest.mark.parametrize("rank", [0, 1])
def test_mpirun_on_two_nodes_is_refused_by_every_worker(rank):
    field = ("mpirun", "2", "10.0.0.0", "10.0.0.1")
    with refuses(ConfigurationError, field=field, remedy=("STRICT_PACK", "torchrun")):
        start_of("mpirun", PROGRAM, place(rank=rank), options=LauncherOptions())


def config(rank: int, workers: int, servers: int) -> tuple[dict, dict, str]:
    start = started("tensorflow", place(rank, workers), parameter_servers=servers)
    found = json.loads(start.environment["TF_CONFIG"])
    return found["cluster"], found["task"], start.role


def test_tensorflow_s_workers_are_alike():
    cluster, task, role = config(1, 2, 0)
    assert cluster == {"worker": ["10.0.0.0:5000", "10.0.0.1:5001"]}
    assert (task, role) == ({"type": "worker", "index": 1}, "worker")


def test_tensorflow_s_last_workers_serve_parameters():
    found = [config(rank, 5, 2) for rank in range(5)]
    assert all(cluster == found[0][0] for cluster, _, _ in found)
    assert found[0][0] == {
        "chief": ["10.0.0.0:5000"],
        "worker": ["10.0.0.1:5001", "10.0.0.2:5002"],
        "ps": ["10.0.0.3:5003", "10.0.0.4:5004"],
    }
    assert [(task["type"], task["index"]) for _, task, _ in found] == [
        ("chief", 0),
        ("worker", 0),
        ("worker", 1),
        ("ps", 0),
        ("ps", 1),
    ]
    assert [role for _, _, role in found] == ["chief", "server", "server", "server", "server"]
    assert config(0, 2, 1)[0].keys() == {"chief", "ps"}


def test_a_command_line_is_filled():
    line = "run --n {world_size} --at {host}:{port} --to={master} -h {hosts} {rank} {cpus} {gpus} {processes} {program}"
    assert started(line, place(rank=1)).command == (
        *("run", "--n", "2", "--at", "10.0.0.1:5000", "--to=10.0.0.0", "-h", "10.0.0.0,10.0.0.1", "1", "4", "0", "1"),
        *(sys.executable, *PROGRAM),
    )


def test_a_command_line_may_name_every_worker_with_its_port():
    where = place(hosts=("10.0.0.1", "fe80::1"))
    assert started("run {machines} {program}", where).command[1] == "10.0.0.1:5000,[fe80::1]:5001"


def test_a_command_line_has_its_program_as_words_as_a_script_and_for_a_shell():
    program = ("/my code/train.py", "--name", "a 'b'")
    assert started("deepspeed {script}", place(), program).command == ("deepspeed", *program)
    shell = started("sh -c 'exec {program} > log'", place(), program).command
    assert shell[:2] == ("sh", "-c")
    assert shell[2] == f"exec {sys.executable} '/my code/train.py' --name 'a '\"'\"'b'\"'\"'' > log"


def test_braces_that_are_no_placeholders_stay():
    line = """run '{"a": {"b": 1}}' '{{rank}}' {program}"""
    assert started(line, place()).command[1:3] == ('{"a": {"b": 1}}', "{rank}")


@pytest.mark.parametrize("launcher", [*LAUNCHERS, "run {program}"])
def test_every_launcher_shares_the_cores_and_keeps_the_user_s_own(launcher):
    where = place(workers=1, cpus=8, processes=1)
    assert started(launcher, where).environment["OMP_NUM_THREADS"] == "8"
    assert "OMP_NUM_THREADS" not in started(launcher, where, environment={"OMP_NUM_THREADS": "3"}).environment


@pytest.mark.parametrize(("cpus", "processes", "threads"), [(8, 3, "2"), (2, 4, "1"), (0, 1, "1")])
def test_each_process_has_a_core(cpus, processes, threads):
    assert started("torchrun", place(cpus=cpus, processes=processes)).environment["OMP_NUM_THREADS"] == threads


def test_an_unknown_launcher_is_refused():
    cases = [
        ("torchrunn", ("'torchrunn'", *LAUNCHERS, "'torchrun'")),
        ("deepspeed train.py", ("deepspeed train.py", "{program}")),
        (None, (None, "{program}")),
        ("run {program} {worldsize}", ("{worldsize}", "{world_size}", "'world_size'")),
        ("run '{program}", ("run '{program}", "quotation")),
        ("mpirun --mca 'btl", ("mpirun --mca 'btl", "quotation")),
        ("accelerate launch", ("'accelerate launch'", "'launch'", "{script}")),
        ("torchrun --nnodes 2", ("'--nnodes'", "{script}")),
        ("torchrun --max-restarts 1 --nproc_per_node=4", ("'--nproc_per_node=4'", "{script}")),
        ("torchrun --nproc 4", ("'--nproc'", "{script}")),
        ("accelerate --multi_gpu", ("'--multi_gpu'", "{script}")),
        ("python -X dev -m train", ("'-m'", "{script}")),
        ("mpirun -np 4", ("'-np'", "{script}")),
    ]
    refuses_each(
        [(lambda given=given: check_launcher(given), ("launcher", *names)) for given, names in cases],
        ConfigurationError,
    )


def test_a_shape_that_a_launcher_cannot_start_is_refused():
    def checked(launcher, servers=0, **shape):
        return lambda: check_launcher(launcher, LauncherOptions(parameter_servers=servers), **shape)

    servers, processes = "parameter_servers", "processes_per_worker"
    refuses_each(
        [
            (checked("torchrun", 1), (servers, 1, "launcher", "torchrun", "tensorflow")),
            (checked("tensorflow", -1), (servers, -1, 0)),
            (checked("tensorflow", 2, workers=2), (servers, 2, 1, "num_workers=3")),
            (checked("tensorflow", processes=2), (processes, 2, "launcher", "tensorflow", "torchrun")),
            (checked("python", processes=0), (processes, 0, 1)),
            (checked("tensorflow -u", processes=2), (processes, 2, "launcher", "tensorflow -u", "torchrun")),
        ],
        ConfigurationError,
    )


def test_a_launcher_s_arguments_stand_behind_ours():
    command = started("accelerate --mixed_precision bf16", place()).command
    parser = argparse.ArgumentParser()
    parser.add_argument("--mixed_precision")
    assert parser.parse_known_args(command)[0].mixed_precision == "bf16"


def test_python_s_options_stand_before_the_program_and_a_binding_of_mpirun_s_takes_the_place_of_ours():
    assert started("python -X dev", place()).command == (sys.executable, "-X", "dev", *PROGRAM)
    assert started("tensorflow -u", place()).command == (sys.executable, "-u", *PROGRAM)
    where = {"hosts": ("10.0.0.7", "10.0.0.7")}
    assert after(started("mpirun", place(**where)).command, "--bind-to") == "none"
    bound = started("mpirun --bind-to core --report-bindings", place(**where)).command
    assert bound.count("--bind-to") == 1
    assert bound[-len(PROGRAM) - 4 : -len(PROGRAM) - 1] == ("--bind-to", "core", "--report-bindings")
