"""Gangs on a real Ray cluster: warm, exact, and back after a worker is killed."""

from __future__ import annotations

import os
import signal
import statistics
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import ray
from ray.train import ScalingConfig

from tests.support.failing import FailsAsAsked, tell
from tests.support.gangs import CHANNELS, VALIDATION, Pool, boosting, held, segments, wait_until
from tests.support.refusals import mentions, refuses
from tests.support.sharing import Waits
from trainers import GangError, ResourcesError, storage
from trainers.cluster import reach
from trainers.cluster.reach import Reach
from trainers.cluster.session import Cluster
from trainers.errors import DataError
from trainers.gangs import ray_gangs
from trainers.gangs.capacity import capacity
from trainers.gangs.in_process import alone
from trainers.gangs.messages import GangLost, GangUp, Progress, Served
from trainers.gangs.worker.output import found


@pytest.fixture(scope="module")
def pool(ray_cluster: None) -> Iterator[Pool]:
    """Two gangs."""
    boosts = boosting(CHANNELS)
    pool = Pool("test", program=lambda workers: FailsAsAsked(boosts(workers)), eager=True)
    try:
        pool.start(2)
        yield pool
    finally:
        pool.gangs.close()


RUNGS = (3, 9, 27)
PLAIN = {"subsample": 1, "colsample_bytree": 1, "colsample_bylevel": 1}
"""Without sampling, so that a trial goes on from any round."""


def train_straight(pool: Pool, folder: Path, gang: str) -> bytes:
    for assignment in segments(folder, RUNGS):
        assert not pool.serve(gang, assignment).error
    return storage.read(str(folder / "000027"))


def test_a_model_is_the_same_to_the_last_byte_paused_or_moved(pool: Pool, tmp_path: Path) -> None:
    first, second = list(pool.up)[:2]
    straight = train_straight(pool, tmp_path / "straight", first)
    for assignment in segments(tmp_path / "paused", RUNGS):
        pool.serve(first, assignment)
        pool.serve(first, segments(tmp_path / "other", (4,), trial="b", max_depth=3)[0])
    for assignment, gang in zip(segments(tmp_path / "moved", RUNGS), (first, second, first), strict=True):
        pool.serve(gang, assignment)
    assert storage.read(str(tmp_path / "paused" / "000027")) == straight
    assert storage.read(str(tmp_path / "moved" / "000027")) == straight
    assert len(straight) > 1000


def test_a_gang_that_is_halted_ends_at_its_next_report_and_serves_on(pool: Pool, tmp_path: Path) -> None:
    gang = next(iter(pool.up))
    (long,) = segments(tmp_path / "halted", (20_000,), max_depth=2, **PLAIN)
    pool.gangs.assign(gang, long)
    pool.until(lambda event: isinstance(event, Progress), want=2)
    pool.gangs.halt(gang)
    served = pool.until(lambda event: isinstance(event, Served), want=2)
    assert isinstance(served, Served)
    assert served.segment is not None, served.traceback
    reached = served.segment.reached
    assert [report.step for report in served.segment.reports] == list(range(1, reached + 1))
    assert reached < long.stop
    assert served.segment.checkpoint == str(tmp_path / "halted" / f"{reached:06d}")
    # What comes next is not halted, and is what it would have been.
    rest = replace(long, start=reached, stop=reached + 2, checkpoint=served.segment.checkpoint)
    straight = replace(long, stop=reached + 2, save_to=str(tmp_path / "straight"))
    for order in (rest, straight):
        again = pool.serve(gang, order).segment
        assert again is not None
        assert again.reached == reached + 2
    assert storage.read(rest.save_to) == storage.read(straight.save_to)


@pytest.mark.fault
def test_a_model_is_the_same_after_a_worker_was_killed(pool: Pool, tmp_path: Path) -> None:
    """Rank 0, by which its gang speaks; another one: test_torch_gang."""
    gang = next(iter(pool.up))
    straight = train_straight(pool, tmp_path / "straight", gang)
    first, second, third = segments(tmp_path / "killed", RUNGS)
    pool.serve(gang, first)
    endless = segments(tmp_path / "endless", (200_000,), trial="endless")[0]
    pool.gangs.assign(gang, endless)
    pool.until(lambda event: type(event).__name__ == "Progress")  # It is in the middle of training now.
    os.kill(pool.up[gang].pids[0], signal.SIGKILL)
    lost = pool.until(lambda event: isinstance(event, GangLost))
    assert lost.gang == gang
    back = pool.until(lambda event: isinstance(event, GangUp))
    assert back.gang == gang
    for assignment in (second, third):
        assert not pool.serve(gang, assignment).error
    assert storage.read(str(tmp_path / "killed" / "000027")) == straight


def test_the_metrics_are_exact(pool: Pool, tmp_path: Path) -> None:
    import xgboost
    from sklearn.metrics import roc_auc_score

    served = pool.serve(next(iter(pool.up)), segments(tmp_path, (12,))[0])
    booster = xgboost.Booster()
    booster.load_model(bytearray(storage.read(str(tmp_path / "000012"))))
    predicted = booster.predict(xgboost.DMatrix(VALIDATION[:, 1:]))
    assert served.segment is not None
    assert served.segment.reports[-1].metrics["validation:auc"] == pytest.approx(
        roc_auc_score(VALIDATION[:, 0], predicted), abs=1e-12
    )


def test_a_refused_configuration_fails_with_xgboosts_message_and_the_gang_serves_on(pool: Pool, tmp_path: Path) -> None:
    gang = next(iter(pool.up))
    refused = pool.serve(gang, segments(tmp_path, (3,), max_depth=-4)[0])
    assert "max_depth" in refused.error
    assert "\n" not in refused.error
    assert "Traceback" in refused.traceback
    assert pool.serve(gang, segments(tmp_path, (3,))[0]).segment is not None


def test_nothing_is_loaded_or_joined_again(pool: Pool, tmp_path: Path) -> None:
    """A warm start: from the assignment's arrival to the first training step, against the gang's own start."""
    gang = next(iter(pool.up))
    pids = pool.up[gang].pids
    waits = []
    for number in range(20):
        sent = time.time()
        served = pool.serve(gang, segments(tmp_path, (2,), trial=f"t{number}")[0])
        assert served.segment is not None
        waits.append(served.segment.first_step_at - sent)
    assert pool.up[gang].pids == pids
    assert statistics.median(waits) < sum(pool.up[gang].opening.values())


def test_a_gang_that_can_never_fit_is_a_clear_error(ray_cluster: None) -> None:
    never = Pool("never", workers=40)
    try:
        with refuses(ResourcesError, field=("workers", "1 CPU"), value=40, remedy=("16 CPU", "1 node", "num_workers")):
            never.gangs.want({40: 1}, None)
    finally:
        never.gangs.close()


def test_capacity_counts_whole_gangs(ray_cluster: None) -> None:
    assert capacity(ScalingConfig(num_workers=3)) == 5
    assert capacity(ScalingConfig(num_workers=3, resources_per_worker={"CPU": 2})) == 2
    assert capacity(ScalingConfig(num_workers=1, use_gpu=True)) == 0


def test_gangs_that_are_still_starting_end_at_once_and_leave_nothing(
    pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of them holds its resources, the other has asked for them just now."""
    monkeypatch.setattr(ray_gangs, "END_SECONDS", 120.0)  # Nothing is left to a machine that is busy.
    before = held("young")
    young = Pool("young", workers=1)
    young.gangs.want({1: 1}, None)
    wait_until("its workers' resources are held", lambda: held("young")[0] > before[0])
    later = Pool("young", workers=1)
    later.gangs.want({1: 1}, None)
    later.gangs.close()
    young.gangs.close()
    assert held("young") == before


def output(logs: str) -> str:
    """What the file that an error names holds."""
    address, file = found(logs)
    assert address == ray.util.get_node_ip_address()
    return file.read_text()


class Unpicklable(Waits):
    def __init__(self) -> None:
        self.lock = threading.Lock()


class OfHere(Waits):
    def __reduce__(self) -> Any:
        return import_module, ("of_here",)


class Tells(Reach):
    """What a gang's workers have to see, each of which tells of it before it looks."""

    def check_here(self, node: str) -> None:
        tell("open")
        reach.PATIENCE_SECONDS = 0.0  # In the worker's process: nothing will come to be seen.
        super().check_here(node)


def test_what_a_worker_does_not_see_ends_its_gang_with_that_error_and_where_it_printed(
    ray_cluster: None, tmp_path: Path
) -> None:
    blind = Cluster(private=False, reach=Tells(marker=str(tmp_path / ".warmband-gone")))
    bad = Pool("bad", workers=1, on=blind)
    try:
        node = ray.util.get_node_ip_address()
        with refuses(GangError, field="storage_path", value=str(tmp_path), remedy=(node, "s3://")) as caught:
            bad.start(1)
        assert "printed in open" in output(str(caught.value).split()[-1])
    finally:
        bad.gangs.close()


def test_a_program_that_does_not_reach_the_workers_is_one_clear_error(ray_cluster: None) -> None:
    """It holds what cannot be pickled, or its module is not there."""
    for program, obstacle in ((Unpicklable(), "'_thread.lock'"), (OfHere(), "'of_here'")):
        away = Pool("away", workers=1, program=lambda workers, program=program: program)
        try:
            with refuses(GangError, field="away-gang0", value=obstacle):
                away.start(1)
        finally:
            away.gangs.close()


def test_data_that_a_worker_cannot_read_is_an_error_as_it_opens(tmp_path: Path) -> None:
    """As any error of `open`, it ends the gang: above."""
    path = tmp_path / "cut.csv"
    path.write_text("\n".join(["1,2,3"] * 50 + ["1,2"]) + "\n")
    program = boosting({"train": path, "validation": path})(1)
    with refuses(DataError, field="cut.csv"):
        program.open(alone(1))


def test_a_failed_trial_names_the_file_that_holds_what_it_printed(pool: Pool, tmp_path: Path) -> None:
    served = pool.serve(next(iter(pool.up)), segments(tmp_path, (2,), fails="raise")[0])
    assert served.error == "ValueError: raised in train"
    assert "raise ValueError" in served.traceback
    said = output(served.logs)
    for line in ("printed in train", "warned in train", "written by a library"):
        assert line in said


def test_a_gang_error_starts_the_workers_again_and_a_trial_that_diverges_does_not(pool: Pool, tmp_path: Path) -> None:
    gang = next(iter(pool.up))
    (order,) = segments(tmp_path, (2,), fails=str(tmp_path / "marker"))
    pool.gangs.assign(gang, order)
    lost = pool.until(lambda event: isinstance(event, GangLost))
    assert isinstance(lost, GangLost)
    assert lost.gang == gang
    assert "a server is gone" in lost.reason
    pool.until(lambda event: isinstance(event, GangUp))
    served = pool.serve(gang, order)
    assert (served.error, served.diverged) == ("the loss is nan", True)
    assert [report.step for report in served.reports] == [1, 2]


CUT = {"empty": 0, "cut": 1000}


@pytest.mark.parametrize("kind", ["empty", "cut", "garbage"])
def test_a_checkpoint_that_is_cut_short_fails_its_trial_alone(pool: Pool, tmp_path: Path, kind: str) -> None:
    gang = next(iter(pool.up))
    first, second, _ = segments(tmp_path, RUNGS)
    pool.serve(gang, first)
    whole = storage.read(first.save_to)
    Path(first.save_to).write_bytes(b"garbage" * 300 if kind == "garbage" else whole[: CUT[kind]])
    served = pool.serve(gang, second)
    mentions(served.error, "checkpoint", first.save_to, "train")
    Path(first.save_to).write_bytes(whole)
    assert not pool.serve(gang, second).error
