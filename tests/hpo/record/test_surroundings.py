"""What is said of where a job ran."""

from __future__ import annotations

import json
import platform
from importlib.metadata import version

from hpo.record.surroundings import environment


def test_the_environment_names_versions_and_the_machine() -> None:
    found = environment()
    assert found["python"] == platform.python_version()
    assert (found["ray"], found["xgboost"]) == (version("ray"), version("xgboost"))
    assert found["cpus"] >= 1
    assert found["memory_bytes"] > 1 << 28
    assert found["gpus"] >= 0
    assert json.loads(json.dumps(found)) == found
