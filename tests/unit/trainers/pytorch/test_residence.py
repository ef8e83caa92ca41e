"""Where a worker's rows lie: one budget for all channels of a GPU, given out in a stated order.

PyTorch's device "meta" stands for the GPU: rows that were put there are seen to be.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tests.support.refusals import refuses
from trainers import Channel, DataError
from trainers.channels import PlacedChannel
from trainers.pytorch.data import residence
from trainers.pytorch.data.loading import Shard
from trainers.pytorch.data.residence import Room, held, shard_of

META, ROW = torch.device("meta"), 4 * 4 + 4
"""Bytes of a row of four features and a label."""


def channel(name: str, rows: int) -> PlacedChannel:
    table = np.random.default_rng(1).normal(size=(rows, 5)).astype("float32")
    return Channel.of(table, name=name).place(0)


def resident(channels: dict[str, int], nbytes: int) -> dict[str, bool]:
    """Of channels with so many rows: which lie on the device, in the order of what was returned."""
    shards = held({name: channel(name, rows) for name, rows in channels.items()}, [0], 1, Room(META, nbytes))
    found = {}
    for name, shard in shards.items():
        assert isinstance(shard, Shard)
        assert shard.features.device == shard.labels.device
        assert len(shard) == channels[name]
        found[name] = shard.features.device == META
    return found


def test_all_channels_share_one_budget() -> None:
    """Each would have fit alone; together they would have taken more than what is theirs."""
    channels = {"train": 50, "validation": 30, "test": 30}
    assert resident(channels, 110 * ROW) == {"train": True, "validation": True, "test": True}
    assert resident(channels, 109 * ROW) == {"train": True, "validation": True, "test": False}
    assert resident(channels, 50 * ROW) == {"train": True, "validation": False, "test": False}
    assert resident(channels, 0) == {"train": False, "validation": False, "test": False}


def test_what_is_trained_on_comes_first_and_what_still_fits_is_not_left_out() -> None:
    channels = {"validation": 30, "train": 50, "test": 20}
    assert resident(channels, 70 * ROW) == {"validation": False, "train": True, "test": True}
    assert list(resident(channels, 70 * ROW)) == ["validation", "train", "test"]


def test_the_budget_is_half_of_what_is_free_when_the_gang_opens(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (asked.append(device), (1001, 5000))[1])
    room = Room.of(torch.device("cuda", 1))
    assert (room.device, room._left) == (torch.device("cuda", 1), 500)
    assert asked == [torch.device("cuda", 1)]


def test_on_a_cpu_rows_stay_where_they_are() -> None:
    table = np.zeros((3, 5), dtype="float32")
    shard = shard_of("train", Channel.of(table, name="train").place(0).pieces(0, 1)[0]())
    assert Room.of(torch.device("cpu")).put(shard) is shard


def test_rows_that_do_not_fit_are_not_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not into pinned memory either: a channel that is too large for a GPU would be in the host's memory twice."""
    monkeypatch.setattr(residence, "RESIDENT", 0.0)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (10**9, 10**9))
    shard = Shard(features=torch.zeros(4, 2), labels=torch.zeros(4))
    assert Room.of(torch.device("cuda", 0)).put(shard) is shard


def test_rows_of_no_numbers_are_refused_by_name() -> None:
    table = np.zeros((3, 5), dtype="float32")
    table[1, 2] = np.nan
    with refuses(DataError, field=("channel", "validation"), value=1, remedy="NaN"):
        held({"validation": Channel.of(table, name="validation").place(0)}, [0], 1, Room.of(torch.device("cpu")))


def test_rows_for_another_layout_get_what_the_first_have_left_and_give_it_back() -> None:
    room = Room(META, 80 * ROW)
    train = {"train": channel("train", 50)}
    assert held(train, [0], 1, room)["train"].features.device == META
    for rows, device in ((30, META), (31, torch.device("cpu")), (30, META)):
        dealt = held({"train": channel("train", rows)}, [0], 1, room.rest())["train"]
        assert isinstance(dealt, Shard)
        assert dealt.features.device == device


@pytest.mark.parametrize(("workers", "parts"), [(2, 1), (4, 1), (4, 2), (6, 3)])
@pytest.mark.parametrize("rows", [12, 13, 17])
def test_workers_that_share_a_model_have_the_rows_of_a_smaller_gang_s_worker(
    workers: int, parts: int, rows: int
) -> None:
    """In their order too, so that a layout's losses are those of as many replicas as it has data-parallel parts."""
    table = np.arange(2 * rows, dtype=np.float32).reshape(rows, 2)
    placed, room = {"train": Channel.of(table, name="train").place(0)}, Room(torch.device("cpu"), None)
    for part in range(parts):
        shared = held(placed, range(part, workers, parts), workers, room)["train"]
        alone = held(placed, [part], parts, room)["train"]
        assert isinstance(shared, Shard)
        assert isinstance(alone, Shard)
        assert shared.features.tolist() == alone.features.tolist()
        assert shared.labels.tolist() == alone.labels.tolist()
