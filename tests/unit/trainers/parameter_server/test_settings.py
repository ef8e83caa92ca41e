"""What hyperparameters of parameter servers may be."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

from tests.support.refusals import refuses_each
from trainers.errors import ConfigurationError
from trainers.parameter_server.settings import Settings


def test_without_any_it_is_synchronous_on_one_server() -> None:
    settings = Settings.of({"lr": 0.1, "mode": None}, 3)
    assert settings == Settings(workers=3, mode="sync", num_servers=1, delay_ms=(0.0, 0.0, 0.0))
    assert settings.workers_an_update == 3
    assert not settings.delayed


def test_how_many_workers_an_update_averages() -> None:
    assert Settings.of({"backup_workers": 1}, 4).workers_an_update == 3
    assert Settings.of({"mode": "async", "backup_workers": 1}, 4).workers_an_update == 1
    assert Settings.of({"mode": "bounded"}, 4).workers_an_update == 1


def test_a_server_beside_each_worker_makes_as_many_as_there_are() -> None:
    assert Settings.of({"server_placement": "each"}, 3).num_servers == 3
    assert Settings.of({"server_placement": "each", "num_servers": 2}, 3).num_servers == 3
    assert Settings.of({"server_placement": "one", "num_servers": 2}, 3).num_servers == 2


def test_delays_are_one_for_all_or_one_for_each() -> None:
    assert Settings.of({"delay_ms": 2}, 2).delay_ms == (2.0, 2.0)
    assert Settings.of({"delay_ms": [0, 7.5]}, 2).delay_ms == (0.0, 7.5)
    assert Settings.of({"delay_ms": [0, 7.5]}, 2).delayed


def test_a_link_has_no_limit_unless_one_is_given() -> None:
    assert Settings.of({"link_bytes_per_second": None}, 2).link_bytes_per_second is None
    assert Settings.of({"link_bytes_per_second": 10}, 2).link_bytes_per_second == 10.0


def test_what_another_mode_uses_need_not_suit_the_number_of_workers() -> None:
    assert Settings.of({"mode": "async", "backup_workers": 5, "staleness_bound": 1}, 2).backup_workers == 5


def test_a_wrong_value_is_named_with_its_remedy() -> None:
    infinite = [0, math.inf, 0, 0]
    cases: list[tuple[dict[str, Any], tuple[object, ...]]] = [
        ({"mode": "asynch"}, ("mode", "asynch", "sync", "async", "bounded", "ring")),
        ({"mode": ["sync"]}, ("mode", ["sync"], "async", "bounded", "ring")),
        ({"server_placement": "every"}, ("server_placement", "every", "one", "each")),
        ({"server_placement": 1}, ("server_placement", 1, "one", "each")),
        ({"server_placement": "each", "num_servers": 0}, ("num_servers", 0, 1)),
        ({"num_servers": 0}, ("num_servers", 0, 1)),
        ({"num_servers": True}, ("num_servers", True, 1)),
        ({"num_servers": 2.0}, ("num_servers", 2.0, 1)),
        ({"mode": "bounded", "staleness_bound": -1}, ("staleness_bound", -1, 0)),
        ({"mode": "async", "staleness_bound": "many"}, ("staleness_bound", "many", 0)),
        ({"backup_workers": 4}, ("backup_workers", 4, "workers", 0, 3)),
        ({"delay_ms": -1}, ("delay_ms", -1, 0)),
        ({"delay_ms": math.nan}, ("delay_ms", math.nan, 0)),
        ({"delay_ms": infinite}, ("delay_ms", infinite, 0)),
        ({"delay_ms": "5"}, ("delay_ms", "'5'", 0)),
        ({"link_bytes_per_second": 0}, ("link_bytes_per_second", 0)),
        ({"link_bytes_per_second": -1.0}, ("link_bytes_per_second", -1.0, 0)),
        ({"link_bytes_per_second": math.nan}, ("link_bytes_per_second", math.nan, 0)),
        ({"link_bytes_per_second": math.inf}, ("link_bytes_per_second", math.inf, 0)),
        ({"link_bytes_per_second": "1e6"}, ("link_bytes_per_second", "'1e6'", 0)),
        ({"link_bytes_per_second": True}, ("link_bytes_per_second", True, 0)),
        ({"delay_ms": [1, 2]}, ("delay_ms", [1, 2], 2, 4, "workers")),
    ]
    refuses_each([(partial(Settings.of, given, 4), names) for given, names in cases], ConfigurationError)
