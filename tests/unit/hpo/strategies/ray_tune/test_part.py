"""Parts of a search: as they are given, as a record has them, and which are a user's own code."""

from __future__ import annotations

import sys
from functools import partial
from typing import Any

import numpy as np
import pytest
from optuna.samplers import BaseSampler, TPESampler
from ray.tune.schedulers import ASHAScheduler, TrialScheduler
from ray.tune.search import ConcurrencyLimiter, Searcher
from ray.tune.search.hyperopt import HyperOptSearch
from ray.tune.search.optuna import OptunaSearch

from hpo.strategies.ray_tune.part import Part, named_code
from hpo.strategies.ray_tune.strategy import RayTuneStrategy
from hpo.strategies.registry import RAY_TUNE, name_in_record, strategy_code, strategy_from_json
from tests.support.refusals import refuses, refuses_each
from trainers.errors import ConfigurationError

OPTUNA = "ray.tune.search.optuna.optuna_search:OptunaSearch"


@pytest.mark.parametrize(
    ("given", "recorded"),
    [
        (OptunaSearch, {"type": OPTUNA, "arguments": {}}),
        ("ray.tune.search.optuna:OptunaSearch", {"type": "ray.tune.search.optuna:OptunaSearch", "arguments": {}}),
        ((OptunaSearch, {"seed": np.int64(3)}), {"type": OPTUNA, "arguments": {"seed": 3}}),
        (
            (ConcurrencyLimiter, {"searcher": (OptunaSearch, {"sampler": TPESampler}), "max_concurrent": 2}),
            {
                "type": "ray.tune.search.concurrency_limiter:ConcurrencyLimiter",
                "arguments": {
                    "searcher": {
                        "type": OPTUNA,
                        "arguments": {"sampler": {"type": "optuna.samplers._tpe.sampler:TPESampler", "arguments": {}}},
                    },
                    "max_concurrent": 2,
                },
            },
        ),
        ({"type": OPTUNA, "arguments": {"points_to_evaluate": [{"eta": 0.5}]}}, None),
        ({"type": OPTUNA}, {"type": OPTUNA, "arguments": {}}),
        (OptunaSearch(), {"type": OPTUNA, "arguments": None}),
    ],
)
def test_a_record_has_class_and_arguments_and_makes_them_again(given: Any, recorded: Any) -> None:
    strategy = RayTuneStrategy(searcher=given)
    assert strategy.options == {"searcher": recorded or given}
    assert name_in_record(strategy) == RAY_TUNE
    again = strategy_from_json(RAY_TUNE, strategy.options)
    assert again.options == strategy.options
    assert strategy_code(RAY_TUNE, strategy.options) == {}


def made(given: Any, seed: int = 5, **defaults: Any) -> Any:
    return Part.of("part", given).made((Searcher, TrialScheduler, BaseSampler), seed, defaults)


def test_a_class_that_takes_a_seed_and_has_none_gets_one_of_the_jobs() -> None:
    assert made(OptunaSearch)._seed == made(OptunaSearch)._seed != made(OptunaSearch, seed=6)._seed
    assert made((OptunaSearch, {"seed": 3}))._seed == 3
    drawn = [made(kind).rstate.randint(1000) for kind in (HyperOptSearch, HyperOptSearch)]
    assert drawn[0] == drawn[1]
    within = made((OptunaSearch, {"sampler": TPESampler}))
    assert within._seed is None
    assert isinstance(within._sampler, TPESampler)


def test_defaults_go_to_those_that_take_them() -> None:
    assert made(ASHAScheduler, time_attr="resource")._time_attr == "resource"
    assert made((ASHAScheduler, {"time_attr": "epoch"}), time_attr="resource")._time_attr == "epoch"


def test_an_object_is_copied_and_one_that_cannot_be_says_so() -> None:
    searcher = OptunaSearch(seed=3)
    copy = made(searcher)
    assert (copy is searcher, copy._seed) == (False, 3)
    searcher.generator = (number for number in [1])
    with refuses(ConfigurationError, field=("part", "OptunaSearch"), value="generator", remedy="(OptunaSearch, {...})"):
        made(searcher)


def test_of_a_record_an_object_is_not_made() -> None:
    with refuses(
        ConfigurationError, field="OptunaSearch", value="object", remedy=("arguments", "(OptunaSearch, {...})")
    ):
        made({"type": OPTUNA, "arguments": None})


# ---- whose code it is


@pytest.mark.parametrize(
    "name",
    [
        "shop.search:Mine",
        "ray.tune.search.searcher:os.system",
        "ray.tune.search.searcher:Searcher.suggest",
        "ray.tune.searching:Mine",
        "ray.tune:Tuner",
        "ray.tune.search_own:Mine",
        "optuna.samplersx:Mine",
        "optuna.storages:RDBStorage",
        "hpo.text:count",
    ],
)
def test_all_but_the_libraries_own_is_a_users_code(name: str) -> None:
    recorded = {"searcher": {"type": name, "arguments": {}}, "scheduler": {"type": "ray.tune.schedulers:ASHAScheduler"}}
    assert named_code(recorded) == {"searcher": name}
    inner = {"type": OPTUNA, "arguments": {"sampler": {"type": name}}}
    assert named_code({"searcher": inner}) == {"searcher.sampler": name}


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("ray.tune.search.searcher:os", ("Searcher", "TrialScheduler", "BaseSampler")),
        ("ray.tune.search.searcher:log_once", ("Searcher", "TrialScheduler", "BaseSampler")),
        ("ray.tune.search.optuna.optuna_search:OptunaTrialState", ("Searcher", "TrialScheduler", "BaseSampler")),
        ("optuna.samplers:TYPE_CHECKING", ("class", "module")),
    ],
)
def test_whatever_else_a_librarys_module_has_is_never_called(name: str, remedy: tuple[str, ...]) -> None:
    assert named_code({"searcher": {"type": name}}) == {}
    with refuses(ConfigurationError, field="part", value=name, remedy=remedy):
        made({"type": name, "arguments": {}})


def test_naming_code_imports_nothing() -> None:
    named_code({"searcher": {"type": "antigravity:Mine", "arguments": {"sampler": {"type": "antigravity:Other"}}}})
    assert "antigravity" not in sys.modules


def test_what_is_not_installed_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    from ray.tune.search.hyperopt import hyperopt_search

    monkeypatch.setattr(hyperopt_search, "hpo", None)
    with refuses(ConfigurationError, field=("part", "HyperOptSearch"), remedy="pip install 'warmband[searchers]'"):
        made(HyperOptSearch)


def test_arguments_that_are_no_json_are_refused() -> None:
    example = ("JSON", "(TPESampler, {'seed': 1})")
    cases: list[tuple[dict[str, Any], tuple[object, ...]]] = [
        ({"space": object()}, ("searcher.space", "object", *example)),
        ({"seed": float("nan")}, ("searcher.seed", "nan", "finite")),
        ({"seed": {1: 2}}, ("searcher.seed", {1: 2}, *example)),
        ({"sampler": TPESampler()}, ("searcher.sampler", "TPESampler", *example)),
    ]
    refuses_each(
        ((partial(Part.of, "searcher", (OptunaSearch, arguments)), names) for arguments, names in cases),
        ConfigurationError,
    )
