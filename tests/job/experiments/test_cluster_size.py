"""How large a cluster to take: the words, the tables, and searches that are run once."""

from __future__ import annotations

import io
import math
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from experiments.cluster_size import (
    page,
    result,
    run,
)
from experiments.shared.network import Setting
from experiments.shared.problems import problems
from experiments.shared.published import Options, Steps
from experiments.shared.searches import Searches
from hpo.record.store import Store
from trainers import Trainer


def in_hand(workers: int, units: int) -> Trainer:
    """Return the network's trainer with its workers here. Gangs of several sizes: tests/job/hpo/jobs/test_sizes.py."""
    return Setting(name="image", workers=workers, asynchronous=True).trainer(units, in_hand=True)


def test_each_size_is_searched_once_and_the_size_is_tuned(tmp_path: Path) -> None:
    options = Options(quick=True, out=tmp_path)
    dataset = options.images()
    problem = replace(problems(options)["image"], jobs=4, max_resource=3, units=3, trainer=in_hand)
    console = Console(file=io.StringIO())
    for _ in range(2):
        with Steps(tmp_path, console.print) as steps:
            searches = Searches(steps=steps, folder=tmp_path, console=console)
            came = run(problem, dataset, [1, 2], options, searches)
        with Store(searches.store) as store:
            assert len(store.jobs()) == 3
    with Store(searches.store) as store:
        tried = [trial.hyperparameters["num_workers"] for trial in store.trials(came.tuned[0].job) if trial.number >= 0]
    assert {*tried} <= {1, 2}
    assert came.tuned[0].best["num_workers"] in tried
    assert result(came, math.inf, math.inf)["size_tuned"]
    shown = page(came, searches, math.inf, math.inf).html()
    assert "size tuned too" in shown
