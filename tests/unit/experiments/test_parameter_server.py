"""What the parameter server's benchmark makes of its measurements; that both sides make the same updates."""

from __future__ import annotations

import json
from dataclasses import replace
from io import StringIO
from pathlib import Path

import numpy as np
import torch
from ray.train import ScalingConfig
from rich.console import Console

from experiments.baselines.training_loops import layers
from experiments.parameter_server import (
    LEARNING,
    TRAIN,
    WIDTHS,
    Echo,
    Measured,
    PlainServer,
    _loss,
    copies,
    page_tables,
    result,
    show,
    targets,
)
from experiments.workloads.repeated_trial import RepeatedTrial
from trainers import ParameterServerTrainer
from trainers.channels import open_channels

MEASURED = Measured(
    bytes=437_544,
    rates={
        1: {"1 server": [900.0, 600.0, 800.0], "2 servers": [500.0] * 3, "plain Ray actor": [300.0, 100.0, 200.0]},
        4: {"1 server": [800.0] * 3, "2 servers": [600.0] * 3, "plain Ray actor": [200.0] * 3},
    },
    copies=[20_000.0],
    calls=[250.0],
)


def test_servers_are_compared_with_the_plain_actor_turn_by_turn() -> None:
    one, four = targets(MEASURED)
    assert (one.measured, four.measured) == (4, 4)
    assert one.kept
    assert four.kept
    slower = replace(MEASURED, rates={**MEASURED.rates, 4: {**MEASURED.rates[4], "plain Ray actor": [267.0] * 3}})
    assert [target.kept for target in targets(slower)] == [True, False]


def test_the_result_is_json_and_the_table_shows_the_machines_limits() -> None:
    made = json.loads(json.dumps(result(MEASURED)))
    assert made["rates"]["4"]["1 server"] == [800.0] * 3
    assert [target["kept"] for target in made["targets"]] == [True, True]
    console = Console(file=StringIO(), width=200)
    console.print(show(MEASURED))
    printed = console.file.getvalue()  # type: ignore[attr-defined]
    for part in ("an empty Ray call", "a copy in memory", "20,000", "4 workers, 2 servers", "3.00"):
        assert part in printed


def test_the_pages_table_is_made_of_the_result() -> None:
    rows = page_tables(json.loads(json.dumps(result(MEASURED))))["updates"].splitlines()
    assert rows[2] == "| 1 worker, 1 server | 800 | 600 | 900 | 700 | 4.00 |"
    assert rows[4] == "| 1 worker, plain Ray actor | 200 | 100 | 300 | 175 | |"
    assert rows[-1] == "| if it took but a copy in memory | 20,000 | 20,000 | 20,000 | 17,502 | |"


def test_the_plain_actor_and_the_servers_make_plain_updates(tmp_path: Path) -> None:
    trainer = ParameterServerTrainer(TRAIN, scaling=ScalingConfig(num_workers=0))
    given = {"mode": "async", "updates": 3}
    with trainer.gangs("here", open_channels({"train": np.ones((4, 2), np.float32)})) as gangs:
        gang = RepeatedTrial(gangs, given, 1, str(tmp_path), seed=5)
        gang.start()
        turn = gang.train()
    assert turn.segment.reports[0].metrics["updates:per_second"] > 0
    assert turn.segment.details["parameter_server"]["updates"] == 4  # One before the clock is started.
    through_servers = trainer.load_model(turn.segment.checkpoint)["model"]

    torch.manual_seed(5)
    server = PlainServer()
    torch.manual_seed(5)
    model = layers(WIDTHS)
    optimizer = torch.optim.SGD(model.parameters(), lr=LEARNING["lr"], momentum=LEARNING["momentum"])
    for _ in range(4):
        optimizer.zero_grad()
        _loss(model).backward()
        values = server.apply([parameter.grad.numpy() for parameter in model.parameters()])
        optimizer.step()
    for value, (name, parameter) in zip(values, model.named_parameters(), strict=True):
        torch.testing.assert_close(torch.from_numpy(value), parameter.detach(), atol=0, rtol=0)
        torch.testing.assert_close(through_servers[name], parameter.detach(), atol=0, rtol=0)


def test_the_machines_limits_are_measured() -> None:
    assert copies(1000, 10) > copies(10_000_000, 3) > 0
    assert Echo().call(b"12") == b"12"
