"""Variables that a worker's process has while it has a process group."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from tests.support.allreduce import only, program
from tests.support.networks import assignment
from trainers.gangs.program import WorkerContext
from trainers.pytorch.gradients.environment import Environment, free_port, network, variables

TOLD = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "NODE_RANK", "MASTER_ADDR", "MASTER_PORT")
NETWORK = ("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME")


def test_torchruns_variables_are_the_workers_place() -> None:
    context = WorkerContext(
        rank=5,
        world_size=6,
        node_ip="10.0.0.2",
        cpus=1,
        broadcast=lambda value: value,
        local_rank=1,
        local_world_size=2,
        node_rank=2,
    )
    told = variables(context, "10.0.0.1", 4321)
    assert tuple(told) == TOLD
    assert list(told.values()) == ["5", "6", "1", "2", "2", "10.0.0.1", "4321"]


def test_both_backends_are_told_the_interface_unless_the_user_has_named_one(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in NETWORK:
        monkeypatch.delenv(name, raising=False)
    assert network("127.0.0.1") == {"GLOO_SOCKET_IFNAME": "lo", "NCCL_SOCKET_IFNAME": "=lo"}
    monkeypatch.setenv("NCCL_SOCKET_IFNAME", "ib0")
    assert network("127.0.0.1") == {"GLOO_SOCKET_IFNAME": "lo"}
    assert network("192.0.2.1") == {}  # Nobody's.


def test_what_was_set_before_comes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "of the user's")
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    environment = Environment({"RANK": "0", "WORLD_SIZE": "1"})
    assert (os.environ["RANK"], os.environ["WORLD_SIZE"]) == ("0", "1")
    for _ in range(2):
        environment.restore()
        assert os.environ["RANK"] == "of the user's"
        assert "WORLD_SIZE" not in os.environ
        monkeypatch.setenv("RANK", "of the user's")


def test_a_free_port_is_free() -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", free_port("127.0.0.1")))


def train(context) -> None:
    """Notes what it is told, and that a group of the user's own finds its peers by it."""
    import torch
    import torch.distributed as dist

    before = {name: os.environ.get(name, "") for name in TOLD}
    dist.destroy_process_group()
    dist.init_process_group("gloo", init_method="env://")
    total = torch.ones(1)
    dist.all_reduce(total)
    Path(context.hyperparameters["notes"], f"{context.rank}").write_text("\n".join([*before.values(), f"{total}"]))
    for _ in context.epochs():
        context.report({"train:loss": 0.0}, checkpoint={})


def check_restored() -> None:
    assert not [name for name in TOLD if name in os.environ]


@pytest.mark.process
def test_workers_have_them_and_a_process_gets_its_own_back(gang, tmp_path: Path) -> None:
    """On one host, where torchrun would start them."""
    only(gang.run(program(train), assignment(tmp_path, stop=1, notes=str(tmp_path))))
    told = [(tmp_path / f"{rank}").read_text().splitlines() for rank in range(3)]
    for rank, (own, world, local, local_world, node, address, port, total) in enumerate(told):
        assert (own, world, local, local_world, node) == (str(rank), "3", str(rank), "3", "0")
        assert address == "127.0.0.1"
        assert port == told[0][6]
        assert total == "tensor([3.])"
    gang.run(program(train), before=check_restored)
