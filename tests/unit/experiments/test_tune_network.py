"""What the tuning of networks makes of a job, and a short one in this process; no Ray."""

from __future__ import annotations

import json
from dataclasses import replace

from experiments.tune_network import (
    LAYOUTS,
    Network,
    Tried,
    Tuned,
    page_tables,
    result,
)
from tests.support.experiments.tune_network import text  # noqa: F401  # A fixture.
from tests.support.lines import line_with
from tests.support.refusals import mentions
from trainers.datasets import Dataset

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
