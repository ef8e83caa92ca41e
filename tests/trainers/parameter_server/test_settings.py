"""What hyperparameters of parameter servers may be."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

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
    assert Settings.of({"delay_ms": np.array([0, 7.5])}, 2).delayed


def test_a_link_has_no_limit_unless_one_is_given() -> None:
    assert Settings.of({"link_bytes_per_second": None}, 2).link_bytes_per_second is None
    assert Settings.of({"link_bytes_per_second": np.int64(10)}, 2).link_bytes_per_second == 10.0


def test_what_another_mode_uses_need_not_suit_the_number_of_workers() -> None:
    assert Settings.of({"mode": "async", "backup_workers": 5, "staleness_bound": 1}, 2).backup_workers == 5


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"mode": "asynch"}, "'mode' is 'asynch'; give one of sync, async, bounded, ring; did you mean 'async'"),
        ({"mode": ["sync"]}, "'mode' is"),
        ({"server_placement": "every"}, "'server_placement' is 'every'; give one of one, each"),
        ({"server_placement": 1}, "'server_placement' is 1; give one of one, each"),
        ({"server_placement": "each", "num_servers": 0}, "'num_servers' is 0"),
        ({"num_servers": 0}, "'num_servers' is 0; give a whole number, 1 or more"),
        ({"num_servers": True}, "'num_servers' is True"),
        ({"num_servers": 2.0}, "'num_servers' is 2.0"),
        ({"mode": "bounded", "staleness_bound": -1}, "'staleness_bound' is -1; give a whole number, 0 or more"),
        ({"mode": "async", "staleness_bound": "many"}, "'staleness_bound' is 'many'"),
        ({"backup_workers": 4}, "'backup_workers' is 4 of 4 workers, and leaves none to train; give 0 to 3"),
        ({"delay_ms": -1}, "'delay_ms' is -1; give milliseconds, 0 or more"),
        ({"delay_ms": math.nan}, "'delay_ms' is nan"),
        ({"delay_ms": [0, math.inf, 0, 0]}, "'delay_ms' is .*inf"),
        ({"delay_ms": "5"}, "'delay_ms' is '5'"),
        ({"link_bytes_per_second": 0}, "'link_bytes_per_second' is 0; give bytes a second, more than 0"),
        ({"link_bytes_per_second": -1.0}, "'link_bytes_per_second' is -1.0"),
        ({"link_bytes_per_second": math.nan}, "'link_bytes_per_second' is nan"),
        ({"link_bytes_per_second": math.inf}, "'link_bytes_per_second' is inf; .*leave it out"),
        ({"link_bytes_per_second": "1e6"}, "'link_bytes_per_second' is '1e6'"),
        ({"link_bytes_per_second": True}, "'link_bytes_per_second' is True"),
        ({"delay_ms": [1, 2]}, "a list of 2, for 4 workers; give one number for all, or a list with one for each"),
    ],
)
def test_a_wrong_value_is_named_with_its_remedy(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        Settings.of(given, 4)
