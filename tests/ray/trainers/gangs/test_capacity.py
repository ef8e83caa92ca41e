"""Room for gangs: not on nodes that are drained, and how long a job waits for it."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import ray
from ray.train import ScalingConfig

from tests.support.refusals import refuses
from trainers import ResourcesError
from trainers.gangs import capacity as room
from trainers.gangs.capacity import Room, capacity

HUGE = ScalingConfig(num_workers=17)
"""More than the cluster of these tests holds."""


def silent(line: str) -> None:
    pass


def test_what_is_drained_holds_no_gang(ray_cluster: None) -> None:
    [node] = [node["NodeID"] for node in ray.nodes() if node["Alive"]]
    assert capacity(ScalingConfig(num_workers=3)) == 5
    assert capacity(ScalingConfig(num_workers=3), frozenset({node})) == 0


def test_a_node_whose_labels_are_not_allowed_holds_no_gang(ray_cluster: None) -> None:
    [node] = [node["NodeID"] for node in ray.nodes() if node["Alive"]]
    here, elsewhere = ({"ray.io/node-id": condition} for condition in (node, f"!{node}"))
    assert capacity(ScalingConfig(num_workers=3, label_selector=here)) == 5
    assert Room(ScalingConfig(num_workers=3, label_selector=here), silent).fits
    with refuses(ResourcesError, field="label_selector", value=f"!{node}", remedy=("ScalingConfig", "ray.io/node-id")):
        Room(ScalingConfig(num_workers=3, label_selector=elsewhere), silent).for_another(1, 0)


def test_a_gang_that_never_fitted_is_refused_at_once_unless_the_job_is_patient(ray_cluster: None) -> None:
    with refuses(ResourcesError, field=("workers", "1 CPU"), value=17, remedy=("16 CPU", "num_workers")):
        Room(HUGE, silent).for_another(1, 0)
    assert not Room(HUGE, silent, patient=True).for_another(1, 0)


def test_a_patient_job_waits_as_long_as_it_takes(ray_cluster: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "WAIT_SECONDS", 0.0)
    monkeypatch.setattr(room, "LOOK_AGAIN_SECONDS", 0.0)
    waits = Room(HUGE, silent, patient=True)
    for _ in range(3):
        assert not waits.for_another(1, 0)


def test_a_size_that_had_room_once_waits_for_it_to_come_back(
    ray_cluster: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A node that has gone may be replaced."""
    monkeypatch.setattr(room, "WAIT_SECONDS", 0.0)
    monkeypatch.setattr(room, "LOOK_AGAIN_SECONDS", 0.0)
    went = Room(ScalingConfig(num_workers=2), silent)
    assert went.for_another(1, 0)
    monkeypatch.setattr(ray, "nodes", list)
    monkeypatch.setattr(ray, "available_resources", dict)
    assert not went.for_another(1, 0)
    with refuses(ResourcesError, field=("gang", "2 workers"), value="0 s", remedy="ray status"):
        went.for_another(1, 0)


def test_a_process_that_stood_still_has_not_waited(ray_cluster: None, monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = 1000.0
    monkeypatch.setattr(room, "time", SimpleNamespace(monotonic=lambda: seconds))
    waits = Room(ScalingConfig(num_workers=2), silent)
    monkeypatch.setattr(ray, "available_resources", dict)
    assert not waits.for_another(1, 0)
    seconds += 3600.0
    assert not waits.for_another(1, 0)
    for _ in range(55):
        seconds += 2.0
        assert not waits.for_another(1, 0)
    seconds += 2.0
    with refuses(ResourcesError, field="gang", value="120 s", remedy=("0 CPU", "ray status")):
        waits.for_another(1, 0)


def test_the_wait_begins_anew_while_other_jobs_are_to_leave_room(
    ray_cluster: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    seconds = 1000.0
    monkeypatch.setattr(room, "time", SimpleNamespace(monotonic=lambda: seconds))
    monkeypatch.setattr(ray, "available_resources", dict)
    waits = Room(ScalingConfig(num_workers=2), silent)
    for _ in range(2):
        for _ in range(60):
            seconds += 2.0
            assert not waits.for_another(1, 0)
        waits.wait_on()
