"""Iterable datasets: exact after a pause, and dealt out or a worker's own in any number of rows."""

from __future__ import annotations

import pytest

from tests.support.process_gang import ProcessGang
from tests.support.trainers.pytorch.iterables import check_pause, check_whole_batch


def test_a_pause_in_the_middle_of_a_pass_of_processes_changes_nothing(tmp_path):
    check_pause(tmp_path, workers=2)


@pytest.mark.parametrize("sharded", [False, True])
@pytest.mark.parametrize("rows", [50, 49, 26])
def test_workers_together_are_one_with_the_whole_batch(gang: ProcessGang, tmp_path, sharded, rows):
    """Of 49 and 26 rows some workers have none of the last update's."""
    check_whole_batch(gang, tmp_path, sharded=sharded, rows=rows)
