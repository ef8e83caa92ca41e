"""Variables that a worker's process has while it has a process group."""

from __future__ import annotations

import os
from pathlib import Path

from tests.support.allreduce import only, program
from tests.support.networks import assignment

TOLD = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "NODE_RANK", "MASTER_ADDR", "MASTER_PORT")


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
