"""The parameter-server trainer in one process: simulated workers, held against one worker and against AllReduce."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.support.networks import (
    assignment,
    close,
    servers,
    state,
    train_adam,
    train_exactly,
)


def test_a_server_beside_each_worker_deals_the_parameters_out(tmp_path):
    words = {"num_workers": 3, "per_worker_batch_size": 4}
    one, each = servers(
        train_exactly,
        assignment(tmp_path, name="one", **words),
        assignment(tmp_path, name="each", server_placement="each", **words),
    )
    close(state(one)["model"], state(each)["model"], 0.0)
    (alone, dealt) = (of.details["parameter_server"] for of in (one, each))
    assert (alone["server_placement"], dealt["server_placement"]) == ("one", "each")
    assert (len(alone["servers"]), len(dealt["servers"])) == (1, 3)
    assert alone["servers"][0] == sum(dealt["servers"])


WAYS = [
    {"mode": "async", "delay_ms": 2.0},
    {"mode": "bounded", "staleness_bound": 1, "delay_ms": [0, 0, 0, 8.0], "num_servers": 2},
    {"mode": "sync", "backup_workers": 1, "delay_ms": 1.0},
    {"mode": "sync"},
    {"mode": "async", "server_placement": "each", "delay_ms": 1.0},
    {"mode": "ring", "delay_ms": [0, 0, 0, 8.0], "link_bytes_per_second": 1e5},
    {"mode": "async", "link_bytes_per_second": 1e5, "num_servers": 2},
]


@pytest.mark.parametrize("way", WAYS, ids=lambda way: f"{way['mode']}-{len(way)}")
def test_a_simulation_comes_out_the_same_paused_or_not(tmp_path, way):
    words = {"num_workers": 4, "per_worker_batch_size": 4, **way}
    straight, again, first, second = servers(
        train_adam,
        assignment(tmp_path, stop=3, name="straight", **words),
        assignment(tmp_path, stop=3, name="again", **words),
        assignment(tmp_path, stop=1, name="paused", **words),
        assignment(tmp_path, start=1, stop=3, name="paused", **words),
        rows=101,
    )
    for other in (again, second):
        close(state(straight)["model"], state(other)["model"], 0.0)
        assert str(state(straight)["optimizer"]) == str(state(other)["optimizer"])
    found = [segment.details["parameter_server"] for segment in (straight, first, second)]
    assert found[0]["pushes"] == found[1]["pushes"] + found[2]["pushes"]
    assert ("delay" in found[0]) == ("delay_ms" in way)


def test_a_simulated_gang_that_is_halted_goes_on_to_the_same_bits(tmp_path):
    words = {"mode": "sync", "num_workers": 3, "num_servers": 2, "per_worker_batch_size": 4}
    [straight] = servers(train_adam, assignment(tmp_path, stop=4, name="straight", **words))
    [halted] = servers(train_adam, assignment(tmp_path, stop=4, halt_at=2, **words))
    assert halted.reached == 2
    later = replace(assignment(tmp_path, stop=4, **words), start=2, checkpoint=halted.checkpoint)
    [segment] = servers(train_adam, later)
    assert halted.reports + segment.reports == straight.reports
    close(state(straight)["model"], state(segment)["model"], 0.0)
