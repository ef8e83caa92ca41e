"""What the tuning of networks makes of a job, and a short one in this process; no Ray."""

from __future__ import annotations

import json
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from experiments.networks.training import TEXT_METRICS
from experiments.shared.benchmark import write
from experiments.tune_network import (
    LAYOUTS,
    PROBLEMS,
    Network,
    Tried,
    Tuned,
    page_tables,
    result,
    show,
    trainer,
    tune,
    without_pictures,
)
from hpo.report import Figure
from tests.support.lines import line_with
from tests.support.refusals import mentions
from trainers.datasets import Dataset, load

TUNED = Tuned(
    workers=2,
    best={"lr": 0.00123, "global_batch_size": 16, "layout": "shard=2"},
    metrics={"validation:loss": 2.0, "validation:perplexity": 7.389},
    untuned={"validation:loss": 3.0, "validation:perplexity": 20.0},
    units=69,
    unit_rows=512,
    max_units=9,
    worker_seconds=1000.0,
    gangs=1,
    seconds=500.0,
    trials=[
        Tried(layout="shard=2", units=9, value=2.0, status="Completed", unit_seconds=4.0),
        Tried(layout="replicate=2", units=1, value=2.5, status="Stopped", unit_seconds=3.0),
        Tried(layout="replicate=2", units=3, value=2.4, status="Stopped", unit_seconds=2.0),
        Tried(layout="tensor=2", units=0, value=None, status="Diverged", unit_seconds=None),
    ],
)


@pytest.fixture(scope="module")
def text() -> Dataset:
    whole = load("python-stdlib")
    train, validation, test = (
        tuple(array[:rows] for array in part)
        for part, rows in ((whole.train, 256), (whole.validation, 32), (whole.test, 32))
    )
    return replace(whole, train=train, validation=validation, test=test)


def test_the_tables_compare_the_best_trial_with_the_untuned_run_and_layouts_with_each_other(text: Dataset) -> None:
    made = page_tables(json.loads(json.dumps(result(TUNED, Network.GPT, "small", text))))
    untuned, tuned = made["tuned"].splitlines()[2:]
    assert untuned == "| un-tuned | 3 | 20 | 9 | |"
    mentions(tuned, "tuned", "lr 0.00123", "global_batch_size 16", "layout shard=2", "| 2 | 7.389 |", 69, 1000)
    assert made["layouts"].splitlines()[2:] == [
        "| shard=2 | 1 | 2.000 | 1 | 4.0 |",
        "| replicate=2 | 2 | 2.400 | 0 | 3.0 |",
        "| tensor=2 | 1 | none | 0 | |",
    ]
    mentions(made["short"], "validation loss", 3, 2)
    diverged = page_tables(result(replace(TUNED, untuned={}), Network.GPT, "small", text))
    line_with(diverged["tuned"], "un-tuned", "diverged")


def test_layouts_multiply_to_their_workers() -> None:
    from trainers.pytorch import Layout

    for workers, layouts in LAYOUTS.items():
        assert all(Layout.parse(layout).on(workers) for layout in layouts)
        assert Layout.parse(layouts[0]).is_replicas


def test_a_job_on_one_worker_is_told_shown_and_kept(text: Dataset, tmp_path: Path) -> None:
    problem = replace(PROBLEMS[Network.GPT], static={**PROBLEMS[Network.GPT].static, "validation_rows": 16})
    base = trainer(problem, 0, 3, 64, "tiny")
    ranges = {name: of for name, of in problem.ranges(2).items() if name != "layout"}
    quiet = Console(quiet=True)
    tuned, page = tune("short", problem, text, base, ranges, folder=str(tmp_path), trials=4, console=quiet)
    assert len(tuned.trials) == 4
    assert tuned.metrics.keys() == set(TEXT_METRICS)
    assert tuned.untuned["validation:loss"] < 6
    assert tuned.units == sum(trial.units for trial in tuned.trials)
    assert all(trial.unit_seconds is None or trial.unit_seconds > 0 for trial in tuned.trials)
    assert any(trial.unit_seconds for trial in tuned.trials)
    said = StringIO()
    Console(file=said, width=200).print(show(tuned, Network.GPT, text))
    assert "un-tuned" in said.getvalue()
    path = write(tmp_path / "out", result(tuned, Network.GPT, "tiny", text))
    assert path.stat().st_size < 150_000
    kept = without_pictures(page)
    assert not any(isinstance(block, Figure) for section in kept.sections for block in section.blocks)
    assert kept.write(tmp_path / "kept.html").stat().st_size < 150_000
    assert "short" in (tmp_path / "kept.html").read_text()
