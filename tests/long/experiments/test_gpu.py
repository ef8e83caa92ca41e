"""The benchmark of GPUs: what it makes of its parts, and that those which CPUs can show run."""

from __future__ import annotations

import json
from pathlib import Path

from experiments.gpu import NOT_RUN, Place
from tests.support.experiments.gpu import PARTS
from tests.support.processes import python


def test_it_runs_and_says_what_it_could_not(tmp_path: Path) -> None:
    """The whole benchmark, small, on whatever there is: losses of one CPU, nothing left behind, recoveries."""
    done = python("-m", "experiments.gpu", "--quick", "--out", str(tmp_path))
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    result = json.loads((tmp_path / "result.json").read_text())
    parts = result["parts"]
    assert parts.keys() == PARTS.keys()
    not_run = {name for name, part in parts.items() if part.get("not_run") == NOT_RUN}
    assert not_run == (set() if result["gpus"] else {"assertion", "host_rows", "xgboost"})
    assert parts["worker"]["told_workers"] == Place.here().workers
    assert parts["memory"]["grown_bytes"] <= 0
    timed = ("samples a second", "first step")
    assert [
        each["promise"] for each in result["targets"] if not each["kept"] and not each["promise"].startswith(timed)
    ] == []
