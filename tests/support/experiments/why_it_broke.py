"""Diagnosed experiments and job files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
import torch

from experiments.convergence.cases import Case, image_case
from experiments.convergence.diagnosis import Diagnosis
from experiments.convergence.experiment import Experiment
from experiments.shared.published import Options, Steps


@pytest.fixture(scope="module", autouse=True)
def the_first_optimizer_is_made() -> None:
    """It imports PyTorch's compiler, for seconds that are none of the training's."""
    torch.optim.SGD([torch.zeros(1)])


def look_into(case: Case, folder: Path, seeds: Sequence[int] = (1, 2, 3)) -> tuple[Experiment, Diagnosis]:
    with Steps(folder, lambda line: None) as steps:
        experiment = Experiment(case=case, seeds=seeds, steps=steps, folder=folder / "models", say=lambda line: None)
        return experiment, experiment.run()


IMAGE_EPOCHS, IMAGE_SEEDS = 9, (2,)


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> tuple[Experiment, Diagnosis, Path]:
    """The network on four asynchronous workers, which learns nothing there."""
    folder = tmp_path_factory.mktemp("image")
    return *look_into(
        image_case(Options(quick=True, out=folder), IMAGE_EPOCHS, real=False), folder, IMAGE_SEEDS
    ), folder


def job(tmp_path: Path, trainer: str, metric: str = "loss") -> Path:
    path = tmp_path / "job.yaml"
    path.write_text(
        f"data: {{dataset: digits}}\ntrainer: {{{trainer}}}\n"
        "tuning:\n"
        f"  objective_metric_name: validation:{metric}\n"
        "  objective_type: Minimize\n"
        "  hyperband: {max_resource: 4}\n"
        f"  ranges: {{{'lr' if metric == 'loss' else 'eta'}: {{type: continuous, min: 0.001, max: 0.5}}}}\n"
    )
    return path
