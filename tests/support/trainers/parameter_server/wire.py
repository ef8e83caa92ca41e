"""Links to parameter servers over real sockets."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
import torch
from torch import nn

from tests.support.server_workers import NoPeers, wrapped
from trainers.parameter_server.distribution import ServerDistribution
from trainers.parameter_server.settings import Settings
from trainers.parameter_server.wire import Address, SocketLink
from trainers.pytorch.distribution import MicroBatch

BATCH = MicroBatch(rows=1, update_rows=1, total_rows=1, last=True)


def linked(stack: ExitStack, *addresses: Address) -> list[SocketLink]:
    """Links to servers, until the stack closes."""
    links = [SocketLink(address, 0) for address in addresses]
    for link in links:
        stack.callback(link.close)
    return links


def over(links: list[SocketLink]) -> Any:
    """A worker's distribution."""
    peers: Any = NoPeers()
    settings = Settings.of({"mode": "async", "num_servers": len(links)}, 1)
    return ServerDistribution(peers=peers, links=links, settings=settings, seed=0)


def step(distribution: Any) -> nn.Module:
    """A model that has made its first step."""
    model = wrapped(distribution, nn.Sequential(nn.Linear(300, 300), nn.Linear(300, 2)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model(torch.ones(1, 300)).sum().backward()
    distribution.update(optimizer, BATCH)
    distribution.step = lambda: distribution.update(optimizer, BATCH)
    return model


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack
