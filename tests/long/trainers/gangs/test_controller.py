"""What a gang has of Ray Train's processes, and what becomes of it without its controller."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from pathlib import Path

import psutil
import pytest
from ray.util import placement_group_table

from tests.support.failing import OpensOnce
from tests.support.gangs import Pool, wait_until
from trainers.gangs.messages import GangEnded, GangLost, GangUp


def titles() -> dict[int, str]:
    """What the processes of this process's Ray are called, by process."""
    found = {}
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            title = " ".join(process.cmdline()).strip()
            if title.startswith("ray::"):
                found[process.pid] = title
    return found


@pytest.mark.fault
def test_a_gang_has_no_processes_that_it_does_not_use_and_without_its_controller_its_room_is_free_again(
    ray_cluster: None, tmp_path: Path
) -> None:
    """The room that it took when it started again, too, before it was up."""
    before, others = titles(), set(placement_group_table())
    pool = Pool("controller", program=lambda workers: OpensOnce(str(tmp_path / "opened")))
    try:
        first = pool.start(1)[0]
        started = {pid: title for pid, title in titles().items() if pid not in before}
        ours = sorted(title.removeprefix("ray::").split(".")[0] for title in started.values())
        assert not {"DatasetManager", "PlacementGroupCleaner"} & set(ours), ours
        assert ours.count("RayTrainWorker") == pool.workers, ours
        controllers = [pid for pid, title in started.items() if title.startswith("ray::TrainController")]
        assert len(controllers) == 1, ours
        gang = pool.gangs._gangs[first]
        group = gang.placement_group
        assert placement_group_table()[group]["state"] == "CREATED"
        os.kill(pool.up[first].pids[1], signal.SIGKILL)
        pool.until(lambda event: isinstance(event, GangLost))
        deadline = time.monotonic() + 120
        while gang.placement_group == group:
            assert time.monotonic() < deadline, "waited 120 s for the workers to start again"
            assert not pool.gangs.events(0.2)
        os.kill(controllers[0], signal.SIGKILL)
        ended = pool.until(lambda event: isinstance(event, GangEnded))
        assert ended.gang == first

        def its_room_is_free() -> bool:
            """A worker that saw the controller die may have said so first: then the gang's end takes a while."""
            pool.gangs.want({}, None)
            mine = {name: row["state"] for name, row in placement_group_table().items() if name not in others}
            return mine == dict.fromkeys([group, gang.placement_group], "REMOVED")

        wait_until("the room of both groups is free again", its_room_is_free)
        (tmp_path / "opened").unlink()
        second = pool.until(lambda event: isinstance(event, GangUp))
        assert second.gang != first
    finally:
        pool.gangs.close()
