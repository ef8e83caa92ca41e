"""What the tuning of networks makes of a job, and a short one in this process; no Ray."""

from __future__ import annotations

from dataclasses import replace
from io import StringIO
from pathlib import Path

from rich.console import Console

from experiments.networks.training import TEXT_METRICS
from experiments.shared.benchmark import write
from experiments.tune_network import (
    PROBLEMS,
    Network,
    result,
    show,
    trainer,
    tune,
    without_pictures,
)
from hpo.report import Figure
from tests.support.experiments.tune_network import text  # noqa: F401  # A fixture.
from trainers.datasets import Dataset


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
