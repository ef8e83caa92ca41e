"""Gangs that begin with fewer workers than they were asked for, or with none that stays."""

from __future__ import annotations

import time
from pathlib import Path

from ray.train import ScalingConfig
from ray.util import placement_group, placement_group_table, remove_placement_group

from tests.support.gangs import CHANNELS, boosting, held, is_ray_worker, segments, wait_until
from tests.support.refusals import mentions
from trainers.gangs.messages import Event, GangUp, Served
from trainers.gangs.ray_gangs import RayGangs


def free_cpus() -> int:
    """CPUs that no placement group holds; what Ray says is available comes late."""
    rows = [row for row in placement_group_table().values() if row["state"] == "CREATED"]
    return int(16 - sum(bundle.get("CPU", 0) for row in rows for bundle in row["bundles"].values()))


def test_an_elastic_gang_has_the_workers_that_there_is_room_for_and_leaves_nothing(
    ray_cluster: None, tmp_path: Path
) -> None:
    """Room for two of three: it starts with two, stands for three, and says so."""
    said: list[str] = []
    others = placement_group([{"CPU": 1}] * (free_cpus() - 2))
    assert others.wait(120)
    before = held("elastic")
    scaling = ScalingConfig(num_workers=(1, 3))
    gangs = RayGangs("elastic", boosting(CHANNELS), scaling, notify=said.append)
    try:
        (order,) = segments(tmp_path, (3,))
        events: list[Event] = []
        deadline = time.monotonic() + 300
        while not any(isinstance(event, Served) for event in events):
            assert time.monotonic() < deadline, events
            gangs.want({3: 1}, None)
            for event in gangs.events(0.5):
                events.append(event)
                if isinstance(event, GangUp):
                    assert (event.workers, event.serves, len(event.nodes)) == (2, 3, 2)
                    gangs.assign(event.gang, order)
        assert gangs.want({3: 1}, None) == ()
        [up] = [event for event in events if isinstance(event, GangUp)]
        [served] = [event for event in events if isinstance(event, Served)]
        assert served.segment is not None, served.traceback
        assert served.segment.details["units_by_workers"] == {"2": 3}
        mentions(" ".join(said), "2 of 3", "shards")
        gangs.close()
        assert held("elastic") == before
        wait_until("its workers' processes have ended", lambda: not any(is_ray_worker(pid) for pid in up.pids))
        assert [path.name for path in tmp_path.iterdir() if path.is_file()] == [f"{order.stop:06d}"], "but its models"
    finally:
        gangs.close()
        remove_placement_group(others)
