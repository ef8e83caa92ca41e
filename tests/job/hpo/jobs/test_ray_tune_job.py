"""Searchers and schedulers of Ray Tune's and samplers of Optuna's as jobs: what they try, stop, record and resume."""

from __future__ import annotations

import io
import signal
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from optuna.samplers import TPESampler
from ray.tune.schedulers import ASHAScheduler, FIFOScheduler, MedianStoppingRule, PopulationBasedTraining
from ray.tune.search.optuna import OptunaSearch
from rich.console import Console

from hpo import HyperparameterTuner
from hpo.job_file.reading import read_job
from hpo.record.store import Store
from tests.support.driving import CHANNELS, Counting, answer, row
from tests.support.hpo.jobs.ray_tune_job import ASHA, fitted, tuner, units
from tests.support.listed import hpo
from tests.support.own_search import Wayward
from tests.support.refusals import mentions, missing_names, refuses, refuses_each
from tests.support.small_job import write_job
from trainers import ConfigurationError, WarmbandError
from trainers.errors import NoJobError


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return fitted(tmp_path_factory.mktemp("both"), searcher=OptunaSearch, scheduler=ASHA)


def test_a_searcher_and_a_scheduler_try_and_stop(both: dict[str, Any]) -> None:
    assert both["status"] == ("Completed", "")
    assert set(units(both)) <= {1, 3, 9}
    assert {1, 9} <= set(units(both))


def test_the_same_seed_gives_the_same_trials_however_the_parts_are_given(both: dict[str, Any], tmp_path: Path) -> None:
    found = fitted(
        tmp_path,
        searcher={"type": "ray.tune.search.optuna:OptunaSearch"},
        scheduler=("ray.tune.schedulers:ASHAScheduler", ASHA[1]),
    )
    assert found == both


def test_stopped_and_resumed_it_gives_the_same_answer(both: dict[str, Any], tmp_path: Path) -> None:
    made = tuner(
        tmp_path,
        (Counting(20, lambda: signal.raise_signal(signal.SIGINT)),),
        searcher=OptunaSearch,
        scheduler=ASHA,
    )
    with pytest.raises(KeyboardInterrupt):
        made.fit(CHANNELS, job_name="job")
    assert answer(tmp_path, "job")["status"][0] == "Stopped"
    HyperparameterTuner.attach("job", store=f"sqlite:///{tmp_path}/record.db").resume(inputs=CHANNELS)
    assert {**answer(tmp_path, "job"), "used": 0} == {**both, "used": 0}


def test_a_searcher_alone_trains_every_trial_to_its_end_and_is_given_the_jobs_seed(tmp_path: Path) -> None:
    first = fitted(tmp_path, searcher=TPESampler)
    assert units(first) == [9] * 9
    for folder, seed in (("again", 1729), ("other", 1)):
        (tmp_path / folder).mkdir()
        found = fitted(tmp_path / folder, searcher=TPESampler, random_seed=seed)
        assert (found["trials"] == first["trials"]) == (seed == 1729)


def test_a_scheduler_alone_has_random_configurations(tmp_path: Path) -> None:
    random, stopped = tmp_path / "random", tmp_path / "stopped"
    random.mkdir()
    stopped.mkdir()
    expected = fitted(random, strategy="Random")
    found = fitted(stopped, scheduler=(MedianStoppingRule, {"grace_period": 2, "min_samples_required": 2}))
    assert [trial[4] for trial in found["trials"]] == [trial[4] for trial in expected["trials"]]
    assert min(units(found)) < 9


def test_an_object_serves_jobs_here_and_none_that_is_resumed(tmp_path: Path, both: dict[str, Any]) -> None:
    out = io.StringIO()
    made = tuner(
        tmp_path,
        (Counting(20, lambda: signal.raise_signal(signal.SIGINT)),),
        searcher=OptunaSearch(),
        scheduler=ASHAScheduler(**ASHA[1]),
        console=Console(file=out, width=1000),
    )
    with refuses(ConfigurationError, field="searcher", value="OptunaSearch", remedy="fit(wait=True)"):
        made.fit(CHANNELS, job_name="away", wait=False)
    with pytest.raises(KeyboardInterrupt):
        made.fit(CHANNELS, job_name="job")
    assert any(not missing_names(line, "warning", "searcher", "OptunaSearch") for line in out.getvalue().splitlines())
    with refuses(ConfigurationError, field="searcher", value="OptunaSearch", remedy="(OptunaSearch, {"):
        made.resume(inputs=CHANNELS)
    assert row(tmp_path).status == "Stopped"
    made.callbacks = ()
    made.fit(CHANNELS, job_name="second")
    assert len(units(answer(tmp_path, "second"))) == 9, "it knows nothing of the first"


FAULTS = {
    "outside": ("searcher", "Wayward", "job-003", "eta", "7.0", "0.01", "1.0"),
    "nan": ("searcher", "Wayward", "job-003", "eta", "nan"),
    "raises": ("searcher", "Wayward", "job-003", "ZeroDivisionError: by zero"),
    "nothing": ("searcher", "1 s", "6", "9"),
}
"""The names in what is said of each."""


@pytest.mark.parametrize("then", FAULTS)
def test_a_searcher_that_fails_ends_the_job_which_keeps_what_it_found_and_goes_on_once_it_is_mended(
    tmp_path: Path, then: str
) -> None:
    mended = tmp_path / "mended"
    made = tuner(tmp_path, searcher=(Wayward, {"trials": 3, "then": then, "mended": str(mended)}), max_silence=1)
    with refuses(WarmbandError, field=("job", *FAULTS[then])):
        made.fit(CHANNELS, job_name="job")
    found = answer(tmp_path, "job")
    assert found["status"][0] == "Failed"
    assert units(found) == [9] * 3
    assert made.best_estimator().model()
    refused = HyperparameterTuner.attach("job", store=f"sqlite:///{tmp_path}/record.db")
    own = "tests.support.own_search:Wayward"
    with refuses(ConfigurationError, field="searcher", value=own, remedy="allow_code=True"):
        refused.resume(inputs=CHANNELS)
    with refuses(WarmbandError, field=FAULTS[then]):
        made.resume(inputs=CHANNELS)
    assert {**answer(tmp_path, "job"), "status": 0} == {**found, "status": 0}
    mended.touch()
    made.resume(inputs=CHANNELS)
    whole = answer(tmp_path, "job")
    assert whole["status"] == ("Completed", "")
    assert units(whole) == [9] * 9
    assert [trial for trial in whole["trials"] if trial in found["trials"]] == found["trials"]


def test_from_a_job_file_it_does_the_same(tmp_path: Path) -> None:
    path, mended, store = write_job(tmp_path), tmp_path / "mended", f"sqlite:///{tmp_path}/record.db"
    job = yaml.safe_load(path.read_text())
    arguments = {"trials": 2, "then": "raises", "mended": str(mended)}
    job["trainer"] |= {"num_workers": 0, "resources_per_worker": {"CPU": 1}}
    job["trainer"]["hyperparameters"]["num_round"] = 3
    ranges = {"eta": job["tuning"]["ranges"]["eta"], "max_depth": {"type": "integer", "min": 1, "max": 8}}
    job["tuning"] = {
        "objective_metric_name": "validation:auc",
        "searcher": {"type": "tests.support.own_search:Wayward", "arguments": arguments},
        "scheduler": {"type": "ray.tune.schedulers:ASHAScheduler", "arguments": {"max_t": 3}},
        "max_jobs": 4,
        "ranges": {**ranges, "booster": {"type": "categorical", "values": ["gbtree", "dart"]}},
    }
    path.write_text(yaml.safe_dump(job))
    failed = hpo("tune", str(path), "--store", store, "--allow-code", code=1, columns=900)
    mentions(failed, "searcher", "Wayward", "tiny-002", "ZeroDivisionError: by zero")
    refused = hpo("resume", "tiny", "--store", store, code=2, columns=400)
    mentions(refused, "searcher", "tests.support.own_search:Wayward", "--allow-code")
    mended.touch()
    assert "tiny: Completed" in hpo("resume", "tiny", "--store", store, "--allow-code", columns=900)
    with Store(store) as record:
        assert [row.resource for row in record.trials("tiny") if row.number >= 0] == [3] * 4


def test_a_searcher_that_is_finished_ends_the_job_as_completed(tmp_path: Path) -> None:
    found = fitted(tmp_path, searcher=(Wayward, {"trials": 3, "then": "finished"}))
    assert found["status"] == ("Completed", "")
    assert units(found) == [9] * 3


def test_more_trials_go_on_with_what_was_learned(tmp_path: Path) -> None:
    """As a job that had so many from its start."""
    for name, trials in (("six", 6), ("nine", 9)):
        (tmp_path / name).mkdir()
        fitted(tmp_path / name, searcher=TPESampler, scheduler=ASHA, max_jobs=trials)
    again = HyperparameterTuner.attach("job", store=f"sqlite:///{tmp_path}/six/record.db")
    again.resume(inputs=CHANNELS, max_jobs=9)
    assert answer(tmp_path / "six", "job")["trials"] == answer(tmp_path / "nine", "job")["trials"]


def test_what_is_none_is_refused_by_the_tuner(tmp_path: Path) -> None:
    sampled = (OptunaSearch, {"sampler": TPESampler()})
    place = "ray.tune.search.optuna:OptunaSearch"
    refused: list[tuple[dict[str, Any], tuple[object, ...]]] = [
        ({"searcher": OptunaSearch, "strategy": "Hyperband"}, ("strategy", "Hyperband", "searcher")),
        ({"strategy": "RayTune"}, ("strategy", "RayTune", "searcher", "scheduler")),
        ({"searcher": 3}, ("searcher", 3, place)),
        ({"searcher": "optuna"}, ("searcher", "'optuna'", place)),
        ({"searcher": sampled}, ("searcher.sampler", "(TPESampler, {'seed'")),
        ({"scheduler": ASHA, "rounds": 1}, ("scheduler", "AsyncHyperBandScheduler", "reports")),
        ({"scheduler": (ASHA[0], {"grace_period": 1}), "rounds": None}, ("num_round", "max_t")),
        ({"scheduler": ASHA, "early_stopping_type": "Auto"}, ("early_stopping_type", "Auto", "RayTune", "Off")),
    ]
    refuses_each([(partial(tuner, tmp_path, **given), names) for given, names in refused], ConfigurationError)


def test_what_does_not_fit_the_job_is_refused_before_it_is_recorded(tmp_path: Path) -> None:
    changing = (PopulationBasedTraining, {"hyperparam_mutations": {"num_round": [3, 9]}})
    refused: list[tuple[dict[str, Any], tuple[object, ...]]] = [
        ({"searcher": FIFOScheduler}, ("searcher", "FIFOScheduler", "ray.tune", "optuna")),
        ({"scheduler": OptunaSearch()}, ("scheduler", "OptunaSearch", "TrialScheduler")),
        ({"searcher": (OptunaSearch, {"sed": 3})}, ("OptunaSearch", {"sed": 3}, "TypeError")),
        ({"searcher": "optuna.samplers:Nobody"}, ("searcher", "optuna.samplers:Nobody")),
        ({"searcher": OptunaSearch(metric="loss", mode="min")}, ("metric", "loss", "objective_metric_name")),
        ({"scheduler": (ASHAScheduler, {"mode": "min"})}, ("mode", "min", "objective_type", "max")),
        ({"scheduler": MedianStoppingRule()}, ("MedianStoppingRule", "time_total_s", "training_iteration")),
        ({"scheduler": (ASHAScheduler, {"time_attr": "epoch"})}, ("scheduler", "'epoch'", "training_iteration")),
        ({"scheduler": changing}, ("PopulationBasedTraining", "num_round", "checkpoint")),
    ]

    def fit(given: dict[str, Any]) -> None:
        tuner(tmp_path, **given).fit(CHANNELS, job_name="job")

    refuses_each([(partial(fit, given), names) for given, names in refused], ConfigurationError)
    with refuses(NoJobError, value="'job'"):
        row(tmp_path)


def test_a_job_file_has_them(tmp_path: Path) -> None:
    path = write_job(tmp_path)
    job = yaml.safe_load(path.read_text())
    del job["tuning"]["hyperband"]
    job["trainer"]["hyperparameters"]["num_round"] = 9
    job["tuning"] |= {
        "searcher": {
            "type": "ray.tune.search.optuna:OptunaSearch",
            "arguments": {"sampler": {"type": "optuna.samplers:TPESampler", "arguments": {"n_startup_trials": 2}}},
        },
        "scheduler": {"type": "ray.tune.schedulers:ASHAScheduler", "arguments": {"max_t": 9}},
    }
    path.write_text(yaml.safe_dump(job))
    read = read_job(path)
    assert not read.code()
    made = HyperparameterTuner(**read.arguments())
    assert made.settings.strategy_name == "RayTune"
    assert made.strategy.options["scheduler"] == job["tuning"]["scheduler"]
    job["tuning"]["strategy"] = "Random"
    path.write_text(yaml.safe_dump(job))
    with refuses(ConfigurationError, field=("strategy", "searcher", "scheduler")):
        read_job(path)
    del job["tuning"]["strategy"]
    job["tuning"]["searcher"] = {"type": "shop.search:Mine"}
    path.write_text(yaml.safe_dump(job))
    with refuses(ConfigurationError, field="searcher", value="shop.search:Mine", remedy="--allow-code"):
        read_job(path)
