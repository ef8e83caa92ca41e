"""On real gangs: one seed gives the same trials, rungs, models and winner, whatever runs at once or is killed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hpo.ranges import decode
from hpo.strategies.asha import AshaStrategy
from hpo.strategies.hyperband import HyperbandStrategy
from hpo.strategies.random_strategy import at_random
from hpo.strategies.strategy import Task
from tests.support.hpo.jobs.same_answer import GANGS, METRIC, PLAN, RANGES, Watched, answer, gangs, of, run  # noqa: F401  # Fixtures.


@pytest.fixture(scope="module")
def expected(gangs: Watched, tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, ...]:
    return answer(run(gangs, tmp_path_factory.mktemp("one"), parallel=1))


def test_one_seed_gives_one_answer(gangs: Watched, expected: tuple[Any, ...], tmp_path: Path) -> None:
    controller = run(gangs, tmp_path, GANGS)
    assert len(gangs.used) >= GANGS
    assert answer(controller) == expected


@pytest.mark.parametrize("suggestions", ["random", "model"])
def test_asha_promotes_on_several_gangs(suggestions: str, gangs: Watched, tmp_path: Path) -> None:
    found = run(gangs, tmp_path, GANGS, **of(AshaStrategy(max_resource=9, min_resource=1, suggestions=suggestions), 12))
    assert len(gangs.used) >= GANGS
    units = [made.resource for made in found.runs.values()]
    assert set(units) == {1, 3, 9}
    assert units.count(1) > units.count(3) >= units.count(9)
    assert not any(made.failure for made in found.runs.values())


@pytest.mark.fault
def test_and_with_a_worker_killed_on_the_way(gangs: Watched, expected: tuple[Any, ...], tmp_path: Path) -> None:
    controller = run(gangs, tmp_path, GANGS, kill_at={6})
    assert gangs.killed == [6]
    assert sum(run.attempts for run in controller.runs.values()) >= 1
    assert answer(controller) == expected


def test_a_model_s_suggestions_are_the_same_on_several_gangs_and_with_a_worker_killed(
    gangs: Watched, tmp_path: Path
) -> None:
    learning = HyperbandStrategy(max_resource=30, min_resource=1)
    parts = {"plan": learning.plan(RANGES, 24, None), "prepare": learning.prepare}
    one = run(gangs, tmp_path / "one", parallel=1, **parts)
    two = run(gangs, tmp_path / "two", parallel=GANGS, kill_at={25}, **parts)
    assert gangs.killed == [25]
    assert len(gangs.used) >= GANGS
    assert answer(two) == answer(one)
    tried = [[made.hyperparameters for made in controller.runs.values()] for controller in (one, two)]
    assert tried[0] == tried[1]
    drawn = at_random(Task(plan=PLAN, ranges=RANGES, metric=METRIC, mode="max", seed=1729)).searcher
    at_chance = [decode(RANGES, drawn.suggest(name)) for name in one.runs]
    same = [made == chance for made, chance in zip(tried[0], at_chance, strict=True)]
    assert all(same[:6])  # A small job: a suggestion reads trials 3 back, and a model is asked once it reads 4.
    assert not any(same[6:]), "a model suggests them"
