"""xgboost_ray behind the seam: native's models, exact metrics, back after actors die, and nothing left behind."""

from __future__ import annotations

import os
import signal
import time
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest
import ray
from ray.train import ScalingConfig
from ray.util import placement_group_table

from trainers import Channel, GangError, ResourcesError, XGBoostTrainer, storage
from trainers.assignment import Assignment, Event, GangEnded, GangLost, GangUp, Progress, Segment, Served
from trainers.cluster import Cluster
from trainers.datasets import find, load
from trainers.xgboost_ray_backend import XGBoostRayGangs

pytestmark = pytest.mark.ray

STATIC = {"objective": "binary:logistic", "eval_metric": "auc", "eta": 0.3}
SAMPLED = {**STATIC, "max_depth": 5, "subsample": 0.8, "colsample_bytree": 0.7}
# Slow enough for an actor to be killed in the middle, by many rows and trees: with more depth, actors that share a core
# would wait for each other at every level.
SLOW = {**STATIC, "num_parallel_tree": 60, "max_depth": 3, "subsample": 0.5}
RUNGS = (5, 15)


def rows(count: int, seed: int = 0) -> np.ndarray[Any, Any]:
    """A table with the target first, learnable, with noise."""
    random = np.random.default_rng(seed)
    features = random.normal(size=(count, 8)).astype("float32")
    target = (features[:, 0] + features[:, 1] * features[:, 2] + random.normal(size=count) > 0).astype("float32")
    return np.column_stack([target, features])


SMALL = {"train": rows(80_001), "validation": rows(601, seed=1)}


@pytest.fixture(scope="module")
def bank() -> dict[str, pandas.DataFrame]:
    """The bank's rows: the published ones where they are, else generated ones."""
    found = load("bank-marketing" if find("bank-marketing") else "bank-marketing-synthetic")
    return {"train": found.train, "validation": found.validation, "test": found.test}


class Pool:
    """Gangs of a backend, and a wait with a deadline for what they say."""

    def __init__(self, channels: dict[str, Any], workers: int, backend: str = "xgboost_ray", **ray_params: Any) -> None:
        trainer = XGBoostTrainer(
            scaling=ScalingConfig(num_workers=workers), hyperparameters=STATIC, backend=backend, ray_params=ray_params
        )
        opened = {name: Channel.of(source, name=name) for name, source in channels.items()}
        self.workers = workers
        self.gangs = trainer.start_gangs("test", opened, Cluster(private=False), lambda text: None)
        self.log: list[Event] = []
        self._heard: deque[Event] = deque()

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *exception: object) -> None:
        self.gangs.close()

    def until(self, done: Callable[[Event], bool], seconds: float = 240.0) -> Event:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if not self._heard:
                self.gangs.want({self.workers: 1}, None)
                self._heard.extend(self.gangs.events(0.5))
            while self._heard:
                event = self._heard.popleft()
                self.log.append(event)
                if done(event):
                    return event
        raise AssertionError(f"waited {seconds} s; heard {self.log[-5:]}")

    def up(self) -> str:
        return self.until(lambda event: isinstance(event, GangUp)).gang

    def serve(self, gang: str, assignment: Assignment) -> Served:
        self.gangs.assign(gang, assignment)
        served = self.until(lambda event: isinstance(event, Served))
        assert isinstance(served, Served)
        return served

    def train(self, gang: str, assignment: Assignment) -> Segment:
        served = self.serve(gang, assignment)
        assert served.segment is not None, served.traceback
        return served.segment


def segments(folder: Path, rungs: tuple[int, ...], hyperparameters: dict[str, Any]) -> list[Assignment]:
    """A trial's assignments from rung to rung."""
    paths = [str(folder / f"{rung:06d}") for rung in rungs]
    return [
        Assignment(
            trial_id="trial",
            hyperparameters=hyperparameters,
            seed=11,
            start=start,
            stop=stop,
            checkpoint=checkpoint,
            save_to=save_to,
        )
        for start, stop, checkpoint, save_to in zip((0, *rungs), rungs, (None, *paths), paths, strict=False)
    ]


def processes(title: str) -> list[int]:
    """Processes of this test's own Ray whose title begins so."""
    parents, found = {}, []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parents[int(folder.name)] = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            if (folder / "cmdline").read_bytes().startswith(title.encode()):
                found.append(int(folder.name))
        except (OSError, ValueError):
            continue  # It ended while we looked.

    def ours(pid: int) -> bool:
        while pid in parents and pid != os.getpid():
            pid = parents[pid]
        return pid == os.getpid()

    return sorted(pid for pid in found if ours(pid))


ACTORS = "ray::_RemoteRayXGBoostActor"


def groups() -> set[str]:
    """Placement groups that hold something."""
    return {group for group, row in placement_group_table().items() if row["state"] != "REMOVED"}


def left() -> list[int]:
    return processes(ACTORS) + processes("ray::Coordinator") + processes("ray::_QueueActor")


def wait_until(true: Callable[[], bool], seconds: float = 120.0) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, f"waited {seconds} s for {true}"
        time.sleep(0.1)


def auc(checkpoint: str, table: np.ndarray[Any, Any]) -> float:
    """What scikit-learn makes of a model."""
    import xgboost
    from sklearn.metrics import roc_auc_score

    booster = xgboost.Booster()
    booster.load_model(bytearray(storage.read(checkpoint)))
    return float(roc_auc_score(table[:, 0], booster.predict(xgboost.DMatrix(table[:, 1:]), strict_shape=False)))


# ---- the same answer


@pytest.fixture(scope="module")
def both(
    ray_cluster: None, bank: dict[str, pandas.DataFrame], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, list[Segment]]:
    """One trial on the bank's rows, from rung to rung, by backend; of one worker: tests/hpo/test_xgboost_ray.py."""
    folder = tmp_path_factory.mktemp("both")
    trained = {}
    for backend in ("native", "xgboost_ray"):
        with Pool(bank, 2, backend) as pool:
            gang = pool.up()
            trained[backend] = [pool.train(gang, order) for order in segments(folder / backend, RUNGS, SAMPLED)]
    return trained


def test_it_trains_what_native_does(both: dict[str, list[Segment]]) -> None:
    for native, other in zip(both["native"], both["xgboost_ray"], strict=True):
        assert [report.step for report in other.reports] == [report.step for report in native.reports]
        for ours, theirs in zip(native.reports, other.reports, strict=True):
            assert list(theirs.metrics) == list(ours.metrics)
            assert theirs.metrics["validation:auc"] == pytest.approx(ours.metrics["validation:auc"], abs=0.002)
            assert theirs.metrics["test:auc"] == pytest.approx(ours.metrics["test:auc"], abs=0.002)


def test_its_models_are_those_of_native_to_the_last_byte(both: dict[str, list[Segment]]) -> None:
    """More than was promised: shards, ranks and seeds are the same, so that nothing is left to differ."""
    for native, other in zip(both["native"], both["xgboost_ray"], strict=True):
        assert storage.read(other.checkpoint) == storage.read(native.checkpoint)


@pytest.mark.parametrize("channel", ["validation", "test"])
def test_metrics_are_scikit_learns(
    both: dict[str, list[Segment]], bank: dict[str, pandas.DataFrame], channel: str
) -> None:
    import xgboost
    from sklearn.metrics import roc_auc_score

    table = bank[channel]
    for segment in both["xgboost_ray"]:
        booster = xgboost.Booster()
        booster.load_model(bytearray(storage.read(segment.checkpoint)))
        predicted = booster.predict(xgboost.DMatrix(table.iloc[:, 1:]))
        expected = roc_auc_score(table.iloc[:, 0], predicted)
        assert segment.reports[-1].metrics[f"{channel}:auc"] == pytest.approx(expected, abs=1e-6)


def test_what_its_actors_cost_is_told_apart(both: dict[str, list[Segment]]) -> None:
    for backend, trained in both.items():
        for segment in trained:
            assert segment.checkpoint_bytes == len(storage.read(segment.checkpoint))
            assert segment.training_seconds > 0
            assert (segment.starting_seconds > 0.5) == (backend == "xgboost_ray")
            assert segment.starting_seconds == 0 or segment.starting_seconds > segment.training_seconds


# ---- what a gang survives, and what it leaves


def kill_an_actor(pool: Pool) -> None:
    """Kills a training actor once a round was reported, in the middle of the assignment."""
    pool.log.clear()
    pool.until(lambda event: isinstance(event, Progress))
    os.kill(processes(ACTORS)[0], signal.SIGKILL)
    assert not any(isinstance(event, Served) for event in pool.log)


@pytest.mark.fault
def test_a_gang_that_is_halted_ends_at_its_next_round_and_serves_on_also_after_a_death(
    ray_cluster: None, tmp_path: Path
) -> None:
    with Pool(SMALL, 2) as pool:
        gang = pool.up()
        (long,) = segments(tmp_path, (5000,), SLOW)
        pool.gangs.assign(gang, long)
        pool.until(lambda event: isinstance(event, Progress))
        pool.gangs.halt(gang)
        served = pool.until(lambda event: isinstance(event, Served))
        assert isinstance(served, Served)
        assert served.segment is not None, served.traceback
        reached = served.segment.reached
        assert [report.step for report in served.segment.reports] == list(range(1, reached + 1))
        assert reached < long.stop
        assert auc(served.segment.checkpoint, SMALL["validation"]) > 0.5

        # No restarts were asked for: the gang loses its actors, and is up again at once.
        checkpoint, save_to = served.segment.checkpoint, str(tmp_path / "rest" / f"{long.stop:06d}")
        rest = replace(long, start=reached, checkpoint=checkpoint, save_to=save_to)
        pool.gangs.assign(gang, rest)
        kill_an_actor(pool)
        lost = pool.until(lambda event: isinstance(event, GangLost))
        assert (lost.gang, pool.up()) == (gang, gang)
        again = pool.train(gang, replace(rest, stop=reached + 2))
        assert [report.step for report in again.reports] == [reached + 1, reached + 2]


def train_here(order: Assignment) -> None:
    """In this process, which costs no actors."""
    trainer = XGBoostTrainer(scaling=ScalingConfig(num_workers=0), hyperparameters=STATIC)
    channels = {name: Channel.of(source, name=name) for name, source in SMALL.items()}
    with trainer.gangs("here", channels) as gangs:
        gangs.want({1: 1}, None)
        (up,) = gangs.events(0.0)
        gangs.assign(up.gang, order)
        (served,) = gangs.events(0.0)
    assert isinstance(served, Served)
    assert not served.error


@pytest.mark.fault
@pytest.mark.parametrize(
    "ray_params",
    [
        {"max_actor_restarts": 1},
        {"max_actor_restarts": 1, "elastic_training": True, "max_failed_actors": 1, "checkpoint_frequency": 1},
    ],
    ids=["restarted", "elastic"],
)
def test_training_ends_with_all_rounds_although_an_actor_died(
    ray_cluster: None, tmp_path: Path, ray_params: dict[str, Any]
) -> None:
    first, second = segments(tmp_path, (1, 20), SLOW)
    train_here(first)
    with Pool(SMALL, 2, **ray_params) as pool:
        pool.gangs.assign(pool.up(), second)
        kill_an_actor(pool)
        served = pool.until(lambda event: isinstance(event, Served))
        assert isinstance(served, Served)
        assert not any(isinstance(event, GangLost | GangEnded) for event in pool.log)
    segment = served.segment
    assert segment is not None, served.traceback
    assert [report.step for report in segment.reports] == list(range(2, 21))
    assert segment.training_seconds > 10, "xgboost_ray waits for 10 s before it goes on"
    expected = auc(segment.checkpoint, SMALL["validation"])
    assert segment.reports[-1].metrics["validation:auc"] == pytest.approx(expected, abs=1e-6)


@pytest.mark.fault
def test_a_gang_serves_on_after_an_error_and_leaves_nothing_when_it_ends_while_actors_start(
    ray_cluster: None, tmp_path: Path
) -> None:
    before = groups()
    (slow,) = segments(tmp_path / "slow", (60,), SLOW)
    with Pool(SMALL, 1) as pool:
        gang = pool.up()
        refused = pool.serve(gang, segments(tmp_path, (3,), {**STATIC, "max_depth": -3})[0])
        assert "max_depth" in refused.error
        assert "\n" not in refused.error
        assert "XGBoostError" in refused.traceback

        # While actors start, their coordinator dies: another gang takes its place.
        pool.gangs.assign(gang, slow)
        os.kill(processes("ray::Coordinator")[0], signal.SIGKILL)
        ended = pool.until(lambda event: isinstance(event, GangEnded))
        assert ended.gang == gang
        other = pool.up()
        assert other != gang
        assert [report.step for report in pool.train(other, segments(tmp_path, (2,), STATIC)[0]).reports] == [1, 2]

        # It is closed while they start.
        pool.gangs.assign(other, slow)
        wait_until(lambda: bool(processes(ACTORS)))
        assert groups() != before
    assert groups() == before
    wait_until(lambda: not left())


def test_data_that_an_actor_cannot_read_ends_the_job(ray_cluster: None, tmp_path: Path) -> None:
    path = tmp_path / "cut.csv"
    path.write_text("\n".join(["1,2,3"] * 50 + ["1,2"]) + "\n")
    with Pool({"train": path, "validation": path}, 1) as pool:
        pool.gangs.assign(pool.up(), segments(tmp_path, (2,), STATIC)[0])
        with pytest.raises(GangError, match=r"cannot serve: channel 'train'.*cut\.csv"):
            pool.until(lambda event: isinstance(event, Served))


def test_a_gang_that_fits_nowhere_is_refused_with_numbers(ray_cluster: None) -> None:
    with Pool(SMALL, 17) as pool, pytest.raises(ResourcesError, match=r"17 workers of 1 CPU each.*holds 16 CPU"):
        pool.gangs.want({pool.workers: 1}, None)


def test_a_gang_that_fails_to_start_again_and_again_is_an_error(ray_cluster: None) -> None:
    with Pool(SMALL, 1) as pool:
        assert isinstance(pool.gangs, XGBoostRayGangs)

        def until_no_more() -> None:
            while True:
                pool.gangs.want({pool.workers: 1}, None)
                for gang in list(pool.gangs._gangs.values()):
                    ray.kill(gang.coordinator)
                pool.gangs.events(0.5)

        with pytest.raises(GangError, match="failed to start 3 times in a row, the last: its coordinator died"):
            until_no_more()
