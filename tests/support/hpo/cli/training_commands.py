"""The file of a training job."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import yaml_text


@pytest.fixture
def file(job: Path) -> Path:
    """Return the job file of a single training in this process."""
    state = yaml_text.load(job.read_text())
    del state["tuning"]
    state["trainer"] |= {"num_workers": 0}
    state["trainer"]["hyperparameters"] |= {"num_round": 6}
    state["training"] = {"checkpoint_every": 2, "random_seed": 1}
    job.write_text(yaml_text.dump(state))
    return job
