"""Whole tuning jobs in this process: the answer of the cluster, and no cluster."""

from __future__ import annotations

import os
from pathlib import Path

from tests.support.processes import printed

WITHOUT_RAY = """
    import os, pathlib
    import ray
    from tests.support.in_hand import answer
    answer(0, pathlib.Path(os.environ["WARMBAND_HOME"]))
    assert not ray.is_initialized()
    children = pathlib.Path(f"/proc/self/task/{os.getpid()}/children").read_text()
    assert not children, children
    print("done")
"""


def test_neither_ray_nor_any_process_is_started(home: Path) -> None:
    home.mkdir()
    assert printed(WITHOUT_RAY, environment={**os.environ, "WARMBAND_HOME": str(home)}) == "done\n"
