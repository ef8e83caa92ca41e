"""What is changed back for each cause, why not where it is not, and that what is proposed to be tuned can be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from experiments.convergence.causes import BOOSTING, Cause, Run, as_python, as_yaml, changes, ranges
from experiments.convergence.mechanisms import mechanism
from hpo.job_file.reading import read_job
from tests.support.experiments.convergence.causes import RUNS
from tests.support.refusals import mentions

BLOG = {"lr": 0.1, "momentum": 0.9, "per_worker_batch_size": 100, "link_bytes_per_second": 1e6}


def run(mode: str, workers: int = 4, **hyperparameters: Any) -> Run:
    return Run(workers=workers, mode=mode, hyperparameters=BLOG | hyperparameters)


def test_each_cause_of_asynchronous_workers_is_one_change() -> None:
    made, ruled_out = changes(run("async"))
    assert [change.causes for change in made] == [(cause,) for cause in Cause]
    assert ruled_out == {}
    by_cause = {change.causes[0]: change for change in made}
    assert by_cause[Cause.BATCH].hyperparameters == {"per_worker_batch_size": 25}
    assert by_cause[Cause.RATE].hyperparameters == {"lr": 0.025}
    assert by_cause[Cause.STALENESS].hyperparameters == {"mode": "sync"}
    assert by_cause[Cause.MOMENTUM].hyperparameters == {"momentum": 0.0}
    assert by_cause[Cause.SHARDS].shuffled
    assert by_cause[Cause.METRIC].whole
    assert not by_cause[Cause.SHARDS].hyperparameters
    assert not by_cause[Cause.METRIC].hyperparameters
    assert by_cause[Cause.CONGESTION].hyperparameters == {"link_bytes_per_second": None}
    mentions(by_cause[Cause.CONGESTION].said, "link", "1,000,000", "bytes")
    assert by_cause[Cause.SHARED].hyperparameters == {"mode": "ring"}
    assert by_cause[Cause.NOISE].noise == 4
    mentions(by_cause[Cause.NOISE].said, "gradients", "25 rows", 100)


def test_workers_that_wait_for_each_other_are_not_stale() -> None:
    made, ruled_out = changes(run("sync"))
    assert [change.causes[0] for change in made] == [
        Cause.BATCH, Cause.RATE, Cause.SHARDS, Cause.METRIC, Cause.CONGESTION, Cause.NOISE
    ]  # fmt: skip
    assert made[1].hyperparameters == {"learning_rate_rule": "linear"}
    assert set(ruled_out) == {Cause.STALENESS, Cause.MOMENTUM, Cause.SHARED}
    mentions(changes(run("sync", learning_rate_rule="linear"))[1][Cause.RATE], "learning_rate_rule", "linear")


def test_on_a_ring_each_has_its_own_model_and_one_for_all_is_the_change() -> None:
    made, ruled_out = changes(run("ring"))
    by_cause = {change.causes[0]: change for change in made}
    assert by_cause[Cause.STALENESS].hyperparameters == {"mode": "sync"}
    assert by_cause[Cause.RATE].hyperparameters == {"learning_rate_rule": "linear"}
    mentions(ruled_out[Cause.SHARED], "worker", "model")
    assert ranges(run("ring"), set(Cause))["mode"].values == ["ring", "sync"]


def test_a_batch_that_is_the_same_rules_out_what_comes_of_it() -> None:
    same = Run(workers=4, mode="sync", hyperparameters={"lr": 0.1, "global_batch_size": 100})
    _, ruled_out = changes(same)
    mentions(ruled_out[Cause.BATCH], "100 rows", "worker")
    mentions(ruled_out[Cause.RATE], "rows", "worker", "rate")
    mentions(ruled_out[Cause.NOISE], "rows", "worker", "gradient")
    mentions(ruled_out[Cause.CONGESTION], "link_bytes_per_second")


def test_of_boosting_only_shards_can_be_at_fault() -> None:
    made, ruled_out = changes(Run(workers=3, mode=BOOSTING, hyperparameters={"eta": 0.3}))
    assert [change.causes for change in made] == [(Cause.SHARDS,)]
    assert set(ruled_out) == set(Cause) - {Cause.SHARDS}


def test_what_a_function_calls_otherwise_is_left_alone_and_said() -> None:
    named = Run(workers=4, mode="async", hyperparameters={"step_size": 0.1, "per_worker_batch_size": 1})
    made, ruled_out = changes(named)
    assert [change.causes[0] for change in made] == [
        Cause.STALENESS, Cause.SHARDS, Cause.METRIC, Cause.NOISE, Cause.SHARED
    ]  # fmt: skip
    mentions(ruled_out[Cause.RATE], "lr", "learning_rate")
    mentions(ruled_out[Cause.MOMENTUM], "momentum")
    mentions(ruled_out[Cause.BATCH], "per_worker_batch_size", 1)


def test_two_changes_at_once() -> None:
    made, _ = changes(run("async"))
    both = made[2] & made[3]
    assert both.hyperparameters == {"mode": "sync", "momentum": 0.0}
    mentions(both.name, Cause.STALENESS.value, Cause.MOMENTUM.value)
    assert (made[4] & made[5]).shuffled
    assert (made[4] & made[5]).whole
    assert (made[5] & made[7]).noise == 4
    assert run("async").changed(both.hyperparameters).stale is False


@given(RUNS, st.sets(st.sampled_from(Cause)))
def test_python_says_the_same_ranges(of: Run, found: set[Cause]) -> None:
    proposed = ranges(of, found)
    if proposed:
        names: dict[str, Any] = {}
        exec(as_python(proposed), names)
        assert {name: repr(bounds) for name, bounds in names["ranges"].items()} == {
            name: repr(bounds) for name, bounds in proposed.items()
        }


@pytest.mark.parametrize("rate", [0.1, 1e-5, 4.0])
def test_a_job_file_takes_the_ranges_as_they_are_printed(rate: float, tmp_path: Path) -> None:
    proposed = ranges(run("async", lr=rate), set(Cause))
    path = tmp_path / "job.yaml"
    path.write_text(
        "data: {dataset: digits}\n"
        "trainer: {type: parameter_server, train_loop: 'experiments.mnist:train'}\n"
        f"{as_yaml(proposed)}\n"
        "  objective_metric_name: validation:accuracy\n"
    )
    read = read_job(path, allow_code=True).tuning.ranges
    assert {name: bounds.parameter().to_json() for name, bounds in read.items()} == {
        name: bounds.to_json() for name, bounds in proposed.items()
    }
    assert set(proposed) == {"lr", "momentum", "per_worker_batch_size", "mode"}


def test_momentum_is_proposed_up_to_what_asynchrony_leaves_of_it() -> None:
    proposed = ranges(run("async"), {Cause.MOMENTUM})
    assert (proposed["momentum"].min_value, proposed["momentum"].max_value) == (0.0, 0.6)
    assert ranges(run("async", workers=16), {Cause.MOMENTUM})["momentum"].max_value == 0.45
    assert "momentum" not in ranges(run("sync"), {Cause.RATE})


@pytest.mark.parametrize("mode", ["async", "ring", "sync", BOOSTING])
@pytest.mark.parametrize("cause", Cause)
def test_every_mechanism_has_a_source_and_a_word(cause: Cause, mode: str) -> None:
    told = mechanism(cause, run(mode), 2.5)
    assert told.text.endswith(".")
    assert told.source
    assert cause.word


def test_mechanisms_are_told_with_the_runs_own_figures() -> None:
    mentions(mechanism(Cause.MOMENTUM, run("async")).text, 0.75, 0.9, 0.975, "40 updates", 10)
    mentions(mechanism(Cause.STALENESS, run("async"), 2.5).text, 2.5)
