"""Which server holds what: each parameter once, none without, none with much more than its share."""

from __future__ import annotations

from itertools import product

from hypothesis import given, settings, strategies as st

from tests.support.refusals import refuses
from trainers.errors import ConfigurationError
from trainers.parameter_server.sharding import spread


def loads(sizes: list[int], homes: tuple[int, ...], servers: int) -> list[int]:
    return [sum(size for size, home in zip(sizes, homes, strict=True) if home == server) for server in range(servers)]


@settings(deadline=None)
@given(st.lists(st.integers(0, 1000), min_size=1, max_size=40), st.integers(1, 8))
def test_each_has_a_home_and_no_server_is_without_or_overloaded(sizes: list[int], servers: int) -> None:
    if servers > len(sizes):
        with refuses(
            ConfigurationError, field=("parameter servers", "num_servers"), value=servers, remedy=str(len(sizes))
        ):
            spread(sizes, servers)
        return
    homes = spread(sizes, servers)
    assert len(homes) == len(sizes)
    assert set(homes) == set(range(servers))
    # Any list scheduling's bound; that of the largest first is tighter, and tested below.
    assert max(loads(sizes, homes, servers)) * servers <= sum(sizes) + (servers - 1) * max(sizes)


@settings(deadline=None)
@given(st.lists(st.integers(0, 50), min_size=3, max_size=7), st.integers(2, 3))
def test_the_fullest_server_holds_at_most_four_thirds_of_what_it_has_to(sizes: list[int], servers: int) -> None:
    least = min(max(loads(sizes, homes, servers)) for homes in product(range(servers), repeat=len(sizes)))
    assert 3 * servers * max(loads(sizes, spread(sizes, servers), servers)) <= (4 * servers - 1) * least


def test_the_image_models_layers_on_two_servers() -> None:
    sizes = [784 * 128, 128, 128 * 64, 64, 64 * 10, 10]
    assert spread(sizes, 2) == (0, 1, 1, 1, 1, 1)
    assert spread(sizes, 1) == (0,) * 6
