"""External memory on disks that are full, fill up or are cleared: an error that says so, and no trial's failure."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.external_rows import order, program
from tests.support.refusals import refuses
from trainers import DataError, GangError
from trainers.errors import StorageError
from trainers.gangs.in_process import alone

pytestmark = pytest.mark.usefixtures("scratch")


@pytest.mark.parametrize("max_bin", [64, 512])
def test_a_disk_without_room_for_pages_is_an_error(
    folder: Path, scratch: Path, monkeypatch: pytest.MonkeyPatch, max_bin: int
) -> None:
    """XGBoost itself would end the process, which is the user's own where workers are none."""
    numbers = 2500 * 4
    for left, fits in ((2 * numbers, False), (200 * numbers, True)):
        usage = shutil.disk_usage(scratch)._replace(free=left)
        monkeypatch.setattr("trainers.xgboost.matrices.spooled.shutil.disk_usage", lambda path, usage=usage: usage)
        served = program(folder, max_bin=max_bin)()
        if fits:
            served.open(alone(1))
            served.close()
        else:
            field = ("external_memory", str(scratch))
            with refuses(DataError, field=field, value="MiB", remedy="TMPDIR"):
                served.open(alone(1))
        assert not list(scratch.iterdir())


@pytest.mark.parametrize("max_bin", [256, 32])
@pytest.mark.parametrize(("in_hand", "error"), [(True, StorageError), (False, GangError)])
def test_rows_that_were_cleared_away_are_no_trial_s_failure(
    folder: Path, scratch: Path, max_bin: int, in_hand: bool, error: type[Exception]
) -> None:
    """A gang starts again; in hand, the job is stopped, and resumed as ever."""
    served = program(folder)()
    served.open(replace(alone(1), in_hand=in_hand))
    shutil.rmtree(next(scratch.iterdir()))
    with refuses(error, field=("external_memory", str(scratch)), remedy="TMPDIR"):
        served.train(order(folder, max_bin=max_bin), lambda report: None)
    served.close()


def test_a_disk_that_fills_up_is_no_trial_s_failure(
    folder: Path, scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    served = program(folder)()
    served.open(alone(1))
    usage = shutil.disk_usage(scratch)._replace(free=1000)
    monkeypatch.setattr("trainers.xgboost.matrices.spooled.shutil.disk_usage", lambda path: usage)
    with refuses(StorageError, field=("external_memory", str(scratch)), value="MiB", remedy="TMPDIR"):
        served.train(order(folder, max_bin=32), lambda report: None)
    served.close()
