"""External memory on disks that are full, fill up or are cleared: an error that says so, and no trial's failure."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.support.external_rows import order, program
from tests.support.process_gang import ProcessGang
from tests.support.refusals import mentions
from trainers.errors import StorageError
from trainers.gangs.messages import Assignment

pytestmark = pytest.mark.usefixtures("scratch")


def test_all_workers_hear_of_one_that_has_no_room(pair: ProcessGang, folder: Path) -> None:
    made = program(folder, max_bin=64)

    def on_a_full_disk() -> Any:
        served = made()
        train = served.train

        def narrow(assignment: Assignment, *more: Any) -> Any:
            context = served._opened().context
            free = 1000 if context.rank == 1 else 1 << 40
            usage = shutil.disk_usage("/")._replace(free=free)
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr("trainers.xgboost.matrices.spooled.shutil.disk_usage", lambda path: usage)
                return train(assignment, *more)

        served.train = narrow
        return served

    for [error] in pair.run(on_a_full_disk, order(folder, max_bin=32)):
        assert isinstance(error, StorageError)
        mentions(str(error), "external_memory", 2, "MiB", "TMPDIR")
