"""A cluster of a job's own: it listens on 127.0.0.1 alone, asks for its token, and ends with the job."""

from __future__ import annotations

import os

import pytest

from hpo.observers.snippets import as_python
from tests.support.processes import python
from trainers import ScalingConfig, XGBoostTrainer


@pytest.mark.parametrize(
    "code", [as_python(XGBoostTrainer(scaling=ScalingConfig(num_workers=0)).to_json()), "import experiments.startup"]
)
def test_printed_code_and_experiments_keep_ray_to_this_machine(code: str) -> None:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    done = python("-c", f"{code}\nimport ray\nprint(ray.util.get_node_ip_address())", environment=kept)
    assert done.stdout == "127.0.0.1\n", done.stderr
    assert "Running in local mode" not in done.stderr
