"""Gangs on a real Ray cluster that is full at first."""

from __future__ import annotations

from ray.util import placement_group, remove_placement_group

from tests.support.gangs import WORKERS, Pool
from tests.support.refusals import mentions


def test_it_runs_with_the_gangs_that_fit_says_so_once_and_uses_more_as_they_come_up(ray_cluster: None) -> None:
    """Of 16 logical CPUs a blocker holds 13 until the first is up, so that one gang of 2 fits."""
    said: list[str] = []
    blocker = placement_group([{"CPU": 13}])
    pool = None
    try:
        assert blocker.wait(120)
        pool = Pool("fits", eager=True, notify=said.append)
        pool.start(1)
        for _ in range(3):
            pool.gangs.want({WORKERS: 9}, None)
        assert (len(pool.up), pool.gangs.starting) == (1, 0)
        remove_placement_group(blocker)
        assert len(pool.start(2)) == 2
        (line,) = said
        mentions(line, "9 gangs", "2 workers", "8", "16 CPU", "1 node")
    finally:
        remove_placement_group(blocker)
        if pool is not None:
            pool.gangs.close()
