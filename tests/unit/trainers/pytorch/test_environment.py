"""Variables that a worker's process has while it has a process group."""

from __future__ import annotations

import os
import socket

import pytest

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
