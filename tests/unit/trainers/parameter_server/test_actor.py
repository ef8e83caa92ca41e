"""Parameter servers as Ray actors."""

from __future__ import annotations

from typing import Any

from tests.support.networks import data, train_adam
from trainers import Channel
from trainers.gangs.program import WorkerContext
from trainers.pytorch.layouts import LaidOut, Layout
from trainers.pytorch.program import FunctionProgram, FunctionSettings


def test_a_gang_begins_to_start_its_servers_before_it_reads_its_rows_and_joins_them_after() -> None:
    """Their processes take seconds to start, in which its own workers are busy anyway."""
    done: list[str] = []

    class Noted(LaidOut):
        def open(self, context: WorkerContext) -> None:
            done.append("open")

        def join(self, peers: Any, device: Any) -> None:
            done.append("join")

    class Rows:
        name = "train"
        source = Channel.of(data(8), name=name).source
        replicated = False

        def pieces(self, rank: int, world_size: int) -> Any:
            done.append("rows")
            return Channel.of(data(8), name=self.name).place(0).pieces(rank, world_size)

    rows: Any = Rows()
    settings = FunctionSettings(function=train_adam, use_gpu=False, report_timeout_s=60.0)
    program = FunctionProgram({"train": rows}, settings, Noted(Layout(), 60.0))
    program.open(
        WorkerContext(rank=0, world_size=1, node_ip="127.0.0.1", cpus=1, broadcast=lambda value: value, in_hand=True)
    )
    program.close()
    assert done == ["open", "rows", "join"]
