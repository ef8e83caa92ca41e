"""Programs as trials on gangs of two: ranks that fail or hang, a worker that is killed, and torchrun."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from tests.support.gangs import Pool
from tests.support.refusals import mentions
from tests.support.script_programs import running
from tests.support.trainers.script.gang import (
    ACCURACY,
    assignment,
    pool,  # noqa: F401  # Fixtures.
    programs,
    served,
)

LOSS = {"Name": "train:loss", "Regex": r"epoch=(?P<step>\d+) loss=(?P<value>\S+)"}


@pytest.mark.parametrize("kept", [False, True])
def test_data_parallel_training_under_torchrun(ray_cluster: None, tmp_path: Path, kept: bool) -> None:
    options = {"keep_loaded": True} if kept else {"metric_definitions": [LOSS]}
    pool = Pool("ddp", program=programs("ddp_kept.py" if kept else "ddp.py", launcher="torchrun", **options))
    try:
        pool.start(1)
        whole = served(pool, assignment(tmp_path / "whole", 4, epochs=4, lr=0.05))
        first = served(pool, assignment(tmp_path, 2, epochs=4, lr=0.05))
        second = served(pool, assignment(tmp_path, 4, first, epochs=4, lr=0.05))
        losses = [report.metrics["train:loss"] for report in whole.reports]
        assert losses == [report.metrics["train:loss"] for report in (*first.reports, *second.reports)]
        assert losses == sorted(losses, reverse=True)
        processes = {report.metrics.get("process") for each in (whole, first, second) for report in each.reports}
        assert len(processes) == 1
        assert not any("units_trained_again" in each.details for each in (whole, first, second))
    finally:
        pool.gangs.close()


def test_parts_that_end_apart_and_one_that_cannot_start_fail_the_trial_alone(ray_cluster: None, tmp_path: Path) -> None:
    pool = Pool("apart", program=programs("ranks.py", metric_definitions=[ACCURACY], grace_period_s=13))
    try:
        pool.start(1)
        (gang,) = pool.up
        answer = pool.serve(gang, assignment(tmp_path, 6, mode="stubborn"))
        mentions(answer.error.partition("\n")[0], "ranks.py", "worker 1", "ValueError: no third epoch")
        answer = pool.serve(gang, assignment(tmp_path, 6, mode="x" * 200_000))
        mentions(answer.error, "worker 0", os.strerror(errno.E2BIG), "128 kB")
        assert served(pool, assignment(tmp_path, 1)).reached == 1
        assert running("ranks.py") == []
    finally:
        pool.gangs.close()
