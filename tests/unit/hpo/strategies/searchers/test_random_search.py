"""Random search: the k-th configuration is the seed's and the number's, whatever happened before."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, strategies as st
from ray import tune
from ray.tune.search import ConcurrencyLimiter

from hpo.ranges import CategoricalParameter, ContinuousParameter, IntegerParameter, decode, search_space
from hpo.strategies.searchers.random_search import RandomSearch
from tests.support.refusals import refuses
from trainers.errors import ConfigurationError

RANGES = {
    "eta": ContinuousParameter(1e-4, 1),
    "momentum": ContinuousParameter(0, 0.99, "ReverseLogarithmic"),
    "depth": IntegerParameter(2, 10),
    "booster": CategoricalParameter(["gbtree", "dart", None]),
}


def search(seed: int = 7, ranges: dict | None = None) -> RandomSearch:
    return RandomSearch(search_space(ranges or RANGES), metric="auc", mode="max", seed=seed)


def first(count: int, searcher: RandomSearch) -> list[dict]:
    return [searcher.suggest(f"trial-{number}") for number in range(count)]


def test_every_draw_is_in_range():
    for suggested in first(50, search()):
        assert all(RANGES[name].is_valid(value) for name, value in decode(RANGES, suggested).items())


def test_the_draws_of_a_seed_are_these():
    """They are on record: a change of this test changes the trials of every job that is run again."""
    assert decode(RANGES, search(0).suggest("a")) == {
        "eta": pytest.approx(0.15495270429952224),
        "momentum": pytest.approx(0.9883666994975829),
        "depth": 8,
        "booster": "dart",
    }


@given(st.integers(0, 2**64), st.lists(st.sampled_from(["result", "complete", "error", "global"]), max_size=8))
def test_what_happens_in_between_changes_nothing(seed, events):
    expected = first(len(events) + 1, search(seed))
    searcher = search(seed)
    seen = [searcher.suggest("a")]
    for event in events:
        match event:
            case "result":
                searcher.on_trial_result("a", {"auc": 0.5})
            case "complete":
                searcher.on_trial_complete("a", {"auc": float("nan")})
            case "error":
                searcher.on_trial_complete("a", None, error=True)
            case "global":
                np.random.seed(0)  # noqa: NPY002
        seen.append(searcher.suggest("another"))
    assert seen == expected


def test_the_order_of_the_ranges_changes_nothing():
    turned = dict(reversed(RANGES.items()))
    assert first(5, search(ranges=turned)) == first(5, search())
    assert list(search(ranges=turned).suggest("a")) == list(turned)


def test_seeds_and_numbers_give_different_configurations():
    etas = [suggested["eta"] for seed in range(10) for suggested in first(10, search(seed))]
    assert len(set(etas)) == 100


def test_consecutive_numbers_are_independent():
    """Every configuration has a stream of its own; neighbours must not resemble each other."""
    ranges = {"x": ContinuousParameter(0, 1)}
    values = np.array([suggested["x"] for suggested in first(1000, search(3, ranges))])
    assert abs(np.corrcoef(values[:-1], values[1:])[0, 1]) < 0.1
    assert np.histogram(values, 4, (0, 1))[0] == pytest.approx([250] * 4, abs=60)


@pytest.mark.parametrize("other_seed", [7, 8])
def test_a_restored_search_goes_on(tmp_path, other_seed):
    expected = first(6, search(7))
    before = search(7)
    first(4, before)
    before.save(str(tmp_path / "state"))
    assert json.loads((tmp_path / "state").read_text()) == {"seed": 7, "suggested": 4}
    after = search(other_seed)
    after.restore(str(tmp_path / "state"))
    assert first(2, after) == expected[4:]


def test_trials_of_a_record_take_their_numbers_without_a_draw():
    expected = first(6, search(7))
    resumed = search(7)
    for number in range(3):
        resumed.begun(f"trial-{number}", expected[number])
    for number in range(3, 6):
        assert resumed.suggest(f"trial-{number}") == expected[number]
        resumed.begun(f"trial-{number}", expected[number])


def test_ray_tune_keeps_and_finds_its_state(tmp_path):
    before, after = search(), search()
    expected = first(3, before)[2]
    before = search()
    first(2, before)
    before.save_to_dir(str(tmp_path))
    after.restore_from_dir(str(tmp_path))
    assert after.suggest("a") == expected


def test_ray_tune_may_hand_over_the_space():
    searcher = RandomSearch(seed=7)
    with refuses(ConfigurationError, field=("RandomSearch", "space")):
        searcher.suggest("a")
    assert searcher.set_search_properties("auc", "max", {**search_space(RANGES), "rounds": 30})
    assert (searcher.metric, searcher.mode) == ("auc", "max")
    assert first(3, searcher) == first(3, search())
    assert not searcher.set_search_properties("loss", "min", {"x": tune.uniform(0, 1)})
    assert searcher.metric == "auc"


def test_ray_tunes_limiter_wraps_it():
    limited = ConcurrencyLimiter(search(), max_concurrent=1)
    assert limited.suggest("a") == search().suggest("a")
    assert limited.suggest("b") is None


def test_other_domains_of_ray_tune_are_drawn():
    space = {"q": tune.quniform(0, 1, 0.25), "n": tune.randn(10, 2), "k": tune.qrandint(2, 10, 2)}
    suggested = RandomSearch(space, seed=1).suggest("a")
    assert suggested["q"] in (0, 0.25, 0.5, 0.75, 1)
    assert suggested["k"] in (2, 4, 6, 8, 10)
    assert suggested == RandomSearch(space, seed=1).suggest("b")


@pytest.mark.parametrize("seed", [-1, 0.5, "7", True, None])
def test_a_seed_is_a_whole_number(seed):
    with refuses(ConfigurationError, field="seed", value=seed, remedy=("whole", "0")):
        RandomSearch(seed=seed)


@pytest.mark.parametrize(
    "space",
    [
        {"x": tune.grid_search([1, 2])},
        {"x": tune.sample_from(lambda: 1)},
        {"x": {"y": tune.uniform(0, 1)}},
    ],
)
def test_a_space_that_a_seed_cannot_draw_is_refused(space):
    with refuses(ConfigurationError, field=("space", "x"), remedy=("uniform", "choice")):
        RandomSearch(space, seed=0)
