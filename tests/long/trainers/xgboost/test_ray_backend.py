"""xgboost_ray behind the seam: native's models, exact metrics, back after actors die, and nothing left behind."""

from __future__ import annotations

import os
import signal
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pandas
import pytest
import ray
from ray.train import ScalingConfig
from ray.util import placement_group_table

from tests.support.gangs import rows
from tests.support.refusals import mentions, refuses
from trainers import Channel, GangError, ResourcesError, XGBoostTrainer, storage
from trainers.cluster.session import Cluster
from trainers.datasets import find, load
from trainers.gangs.messages import Assignment, Event, GangEnded, GangLost, GangUp, Progress, Segment, Served
from trainers.xgboost.ray_backend.gangs import XGBoostRayGangs

Found = TypeVar("Found")

STATIC = {"objective": "binary:logistic", "eval_metric": "auc", "eta": 0.3}
SAMPLED = {**STATIC, "max_depth": 5, "subsample": 0.8, "colsample_bytree": 0.7}
# Slow enough for an actor to be killed in the middle, by many rows and trees: with more depth, actors that share a core
# would wait for each other at every level.
SLOW = {**STATIC, "num_parallel_tree": 60, "max_depth": 3, "subsample": 0.5}
ROUNDS = 15
ENDLESS = 100_000


SMALL = {"train": rows(40_001), "validation": rows(601, seed=1)}


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
        return segment_of(self.serve(gang, assignment))


def segment_of(served: Event) -> Segment:
    assert isinstance(served, Served)
    assert served.segment is not None, served.traceback
    return served.segment


def assignment(folder: Path, stop: int, hyperparameters: dict[str, Any], after: Segment | None = None) -> Assignment:
    """A trial's assignment, from its beginning or from where another ended."""
    return Assignment(
        trial_id="trial",
        hyperparameters=hyperparameters,
        seed=11,
        start=after.reached if after else 0,
        stop=stop,
        checkpoint=after.checkpoint if after else None,
        save_to=str(folder / f"{stop:06d}"),
    )


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
QUEUE = "ray::_QueueActor"


def groups() -> set[str]:
    """Placement groups that hold something."""
    return {group for group, row in placement_group_table().items() if row["state"] != "REMOVED"}


def left() -> list[int]:
    return processes(ACTORS) + processes("ray::Coordinator") + processes(QUEUE)


def wait_for(what: str, look: Callable[[], Found], seconds: float = 120.0) -> Found:
    """What `look` finds, as soon as that is something."""
    deadline = time.monotonic() + seconds
    while not (found := look()):
        assert time.monotonic() < deadline, f"waited {seconds} s for {what}"
        time.sleep(0.1)
    return found


def auc(checkpoint: str, table: Any) -> float:
    """What scikit-learn makes of a model."""
    import xgboost
    from sklearn.metrics import roc_auc_score

    booster = xgboost.Booster()
    booster.load_model(bytearray(storage.read(checkpoint)))
    rows = pandas.DataFrame(table)
    return float(
        roc_auc_score(
            rows.iloc[:, 0], booster.predict(xgboost.DMatrix(rows.iloc[:, 1:], feature_names=booster.feature_names))
        )
    )


# ---- the same answer, also after an error and an actor's death


def kill_an_actor(pool: Pool) -> None:
    """Kills a training actor once a round was reported, in the middle of the assignment."""
    pool.log.clear()
    pool.until(lambda event: isinstance(event, Progress))
    os.kill(processes(ACTORS)[0], signal.SIGKILL)
    assert not any(isinstance(event, Served) for event in pool.log)


@dataclass(frozen=True)
class Story:
    """What a gang of two actors made of three assignments, and native workers of the last.

    Args:
        refused: what it said of hyperparameters that XGBoost refuses.
        lost: and of an actor's death in the next assignment.
        trained: the last, by backend.
    """

    refused: Served
    lost: GangLost
    trained: dict[str, Segment]


@pytest.fixture(scope="module")
def story(ray_cluster: None, bank: dict[str, pandas.DataFrame], tmp_path_factory: pytest.TempPathFactory) -> Story:
    """On the bank's rows. A gang of one that goes on from a checkpoint: tests/long/hpo/jobs/test_xgboost_ray.py."""
    folder = tmp_path_factory.mktemp("story")
    with Pool(bank, 2) as pool:
        gang = pool.up()
        refused = pool.serve(gang, assignment(folder, 3, {**STATIC, "max_depth": -3}))
        # No restarts were asked for: the gang loses its actors, and is up again at once.
        pool.gangs.assign(gang, assignment(folder, ENDLESS, SAMPLED))
        kill_an_actor(pool)
        lost = pool.until(lambda event: isinstance(event, GangLost))
        assert isinstance(lost, GangLost)
        assert pool.up() == gang
        actors = pool.train(gang, assignment(folder, ROUNDS, SAMPLED))
    with Pool(bank, 2, "native") as pool:
        native = pool.train(pool.up(), assignment(folder / "native", ROUNDS, SAMPLED))
    return Story(refused=refused, lost=lost, trained={"xgboost_ray": actors, "native": native})


def test_it_trains_what_native_does(story: Story) -> None:
    native, other = story.trained["native"], story.trained["xgboost_ray"]
    assert [report.step for report in other.reports] == [report.step for report in native.reports]
    assert [report.step for report in other.reports] == list(range(1, ROUNDS + 1))
    for ours, theirs in zip(native.reports, other.reports, strict=True):
        assert list(theirs.metrics) == list(ours.metrics)
        assert theirs.metrics["validation:auc"] == pytest.approx(ours.metrics["validation:auc"], abs=0.002)
        assert theirs.metrics["test:auc"] == pytest.approx(ours.metrics["test:auc"], abs=0.002)


def test_its_models_are_those_of_native_to_the_last_byte(story: Story) -> None:
    """More than was promised: shards, ranks and seeds are the same, so that nothing is left to differ."""
    native, other = story.trained["native"], story.trained["xgboost_ray"]
    assert storage.read(other.checkpoint) == storage.read(native.checkpoint)


@pytest.mark.parametrize("channel", ["validation", "test"])
def test_metrics_are_scikit_learns(story: Story, bank: dict[str, pandas.DataFrame], channel: str) -> None:
    segment = story.trained["xgboost_ray"]
    expected = auc(segment.checkpoint, bank[channel])
    assert segment.reports[-1].metrics[f"{channel}:auc"] == pytest.approx(expected, abs=1e-6)


def test_what_its_actors_cost_is_told_apart(story: Story) -> None:
    for backend, segment in story.trained.items():
        assert segment.manifest.size == len(storage.read(segment.checkpoint))
        assert segment.training_seconds > 0
        assert (segment.starting_seconds > 0.5) == (backend == "xgboost_ray")
        assert segment.starting_seconds == 0 or segment.starting_seconds > segment.training_seconds


@pytest.mark.fault
def test_a_gang_that_lost_an_actor_says_so_and_serves_on(story: Story) -> None:
    mentions(story.lost.reason, "actors", "rank")
    assert any(rank in story.lost.reason for rank in "012"), "which"
    assert story.trained["xgboost_ray"].reached == ROUNDS


def test_hyperparameters_that_xgboost_refuses_are_an_error_in_its_words(story: Story) -> None:
    assert "max_depth" in story.refused.error
    assert "\n" not in story.refused.error
    assert "XGBoostError" in story.refused.traceback


# ---- what a gang survives, and what it leaves


def train_here(order: Assignment) -> Segment:
    """In this process, which costs no actors."""
    trainer = XGBoostTrainer(scaling=ScalingConfig(num_workers=0), hyperparameters=STATIC)
    channels = {name: Channel.of(source, name=name) for name, source in SMALL.items()}
    with trainer.gangs("here", channels) as gangs:
        gangs.want({1: 1}, None)
        (up,) = gangs.events(0.0)
        gangs.assign(up.gang, order)
        (served,) = gangs.events(0.0)
    return segment_of(served)


def train_over_a_death(pool: Pool, gang: str, folder: Path) -> None:
    """An actor dies in an assignment, which goes on all the same until it is halted, with a report of every round."""
    first = train_here(assignment(folder, 1, SLOW))
    pool.gangs.assign(gang, assignment(folder, ENDLESS, SLOW, after=first))
    queues = set(wait_for("the queue of the actors", lambda: processes(QUEUE)))
    kill_an_actor(pool)
    # xgboost_ray goes on with another queue, after 10 s.
    wait_for("another queue", lambda: set(processes(QUEUE)) - queues)
    pool.until(lambda event: isinstance(event, Progress))
    pool.gangs.halt(gang)
    segment = segment_of(pool.until(lambda event: isinstance(event, Served)))
    assert not any(isinstance(event, GangLost | GangEnded) for event in pool.log)
    assert [report.step for report in segment.reports] == list(range(2, segment.reached + 1))
    # Whether a part of that wait counts as training depends on when the actors that are left notice the death.
    assert segment.starting_seconds + segment.training_seconds > 10, "xgboost_ray waits for 10 s before it goes on"
    expected = auc(segment.checkpoint, SMALL["validation"])
    assert segment.reports[-1].metrics["validation:auc"] == pytest.approx(expected, abs=1e-6)


@pytest.mark.fault
def test_training_goes_on_with_the_actors_that_are_left(ray_cluster: None, tmp_path: Path) -> None:
    elastic = {"max_actor_restarts": 1, "elastic_training": True, "max_failed_actors": 1, "checkpoint_frequency": 1}
    with Pool(SMALL, 2, **elastic) as pool:
        train_over_a_death(pool, pool.up(), tmp_path)


@pytest.mark.fault
def test_coordinators_and_actors_that_died_are_replaced_and_a_gang_that_ends_while_actors_start_leaves_nothing(
    ray_cluster: None, tmp_path: Path
) -> None:
    before = groups()
    endless = assignment(tmp_path, ENDLESS, SLOW)
    with Pool(SMALL, 1, max_actor_restarts=1) as pool:
        up = pool.until(lambda event: isinstance(event, GangUp))
        assert isinstance(up, GangUp)

        # While actors start, their coordinator dies: another gang takes its place.
        pool.gangs.assign(up.gang, endless)
        os.kill(up.pids[0], signal.SIGKILL)
        ended = pool.until(lambda event: isinstance(event, GangEnded))
        assert ended.gang == up.gang
        other = pool.up()
        assert other != up.gang
        pool.log.clear()
        train_over_a_death(pool, other, tmp_path)

        # It is closed while they start.
        wait_for("the end of its actors", lambda: not processes(ACTORS))
        pool.gangs.assign(other, endless)
        wait_for("its next actor", lambda: processes(ACTORS))
        assert groups() != before
    assert groups() == before
    wait_for("the end of what it left", lambda: not left())


def test_data_that_an_actor_cannot_read_ends_the_job(ray_cluster: None, tmp_path: Path) -> None:
    path = tmp_path / "cut.csv"
    path.write_text("\n".join(["1,2,3"] * 50 + ["1,2"]) + "\n")
    with Pool({"train": path, "validation": path}, 1) as pool:
        pool.gangs.assign(pool.up(), assignment(tmp_path, 2, STATIC))
        with refuses(GangError, field="'train'", value="cut.csv"):
            pool.until(lambda event: isinstance(event, Served))


def test_a_gang_that_fits_nowhere_is_refused_with_numbers(ray_cluster: None) -> None:
    with Pool(SMALL, 17) as pool, refuses(ResourcesError, field=("CPU", "1"), value=17, remedy="16"):
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

        with refuses(GangError, field="coordinator", value=3):
            until_no_more()
