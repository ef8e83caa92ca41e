"""Training in this very process: no Ray, the calling thread; that its models are a gang's is in test_gang."""

from __future__ import annotations

import bdb
import errno
import os
import signal
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest
from ray.train import ScalingConfig

from tests.support.assignments import segment
from tests.support.gangs import STATIC, TRAIN, segments
from tests.support.refusals import mentions, refuses
from trainers import Channel, ConfigurationError, DataError, GangError, TrialError, XGBoostTrainer
from trainers.channels import PlacedChannel
from trainers.errors import BrokenWorkerError, DivergedError
from trainers.gangs.in_process import InHand, cores
from trainers.gangs.messages import Assignment, GangUp, Report, Segment, Served
from trainers.gangs.program import WorkerContext, never
from trainers.registry import trainer_from_json

HAND = ScalingConfig(num_workers=0)


class Scripted:
    """A program that does what it is told, and notes by whom."""

    def __init__(self, train: Callable[[Assignment], None] = lambda assignment: None) -> None:
        self._train = train
        self.context: WorkerContext | None = None
        self.threads: list[int] = []
        self.closed = 0

    def open(self, context: WorkerContext) -> dict[str, float]:
        self.context = context
        return {"load": 0.0}

    def train(
        self, assignment: Assignment, on_report: Callable[[Report], None], halted: Callable[[], bool] = never
    ) -> Segment:
        self.threads.append(threading.get_ident())
        self._train(assignment)
        return segment(checkpoint=assignment.save_to)

    def close(self) -> None:
        self.closed += 1


def up(program: Scripted) -> tuple[InHand, str]:
    hand = InHand("job", program, HAND)
    hand.want({1: 4}, None)
    (event,) = hand.events(0.0)
    assert isinstance(event, GangUp)
    return hand, event.gang


def served(hand: InHand) -> Served:
    (event,) = hand.events(0.0)
    assert isinstance(event, Served)
    return event


def trial() -> Assignment:
    return segments(Path("/nowhere"), (3,))[0]


def test_a_trial_that_breaks_this_process_fails_and_the_next_one_is_told_why_nothing_goes_on() -> None:
    def breaks(assignment: Assignment) -> None:
        raise BrokenWorkerError("AcceleratorError: CUDA error: device-side assert triggered")

    hand, gang = up(Scripted(breaks))
    hand.assign(gang, trial())
    answer = served(hand)
    assert answer.error == "AcceleratorError: CUDA error: device-side assert triggered"
    hand.assign(gang, trial())
    with refuses(GangError, value="device-side assert", remedy=("hpo resume", "ScalingConfig(num_workers=1)")):
        hand.events(0.0)


def test_it_is_one_gang_whatever_is_wanted_and_opens_once() -> None:
    program = Scripted()
    hand = InHand("job", program, HAND)
    hand.want({}, None)
    assert program.context is None
    hand.want({1: 4}, None)
    hand.want({1: 4}, 100.0)
    events = hand.events(0.0)
    assert [type(event) for event in events] == [GangUp]
    assert events[0].pids == (os.getpid(),)  # type: ignore[union-attr]
    assert (events[0].hosts, len(events[0].devices)) == ((socket.gethostname(),), 1)  # type: ignore[union-attr]
    assert (events[0].workers, hand.starting) == (1, 0)  # type: ignore[union-attr]
    assert program.context is not None
    assert (program.context.rank, program.context.world_size, program.context.broadcast("x")) == (0, 1, "x")
    assert hand.events(0.0) == []
    hand.close()
    hand.close()
    assert program.closed == 1


def test_it_trains_in_the_thread_that_asks_and_not_before() -> None:
    program = Scripted()
    hand, gang = up(program)
    hand.assign(gang, trial())
    assert program.threads == []
    assert served(hand).segment is not None
    assert program.threads == [threading.get_ident()]


def test_a_trial_that_raises_is_refused_with_its_traceback_and_the_next_is_served() -> None:
    def fail_once(assignment: Assignment) -> None:
        if len(program.threads) == 1:
            raise ValueError("bad depth\nand a stack of C++ behind it")

    program = Scripted(fail_once)
    hand, gang = up(program)
    hand.assign(gang, trial())
    refused = served(hand)
    assert (refused.error, refused.segment, refused.trial_id) == ("ValueError: bad depth", None, trial().trial_id)
    assert "in fail_once" in refused.traceback
    hand.assign(gang, trial())
    assert not served(hand).error


@pytest.mark.parametrize(("error", "diverged"), [(DivergedError, True), (TrialError, False), (GangError, False)])
def test_what_was_reported_before_an_error_comes_with_it(error: type[Exception], diverged: bool) -> None:
    told = Report(step=1, metrics={"loss": 0.5})

    class Reports(Scripted):
        def train(
            self, assignment: Assignment, on_report: Callable[[Report], None], halted: Callable[[], bool] = never
        ) -> Segment:
            on_report(told)
            raise error("the loss is nan")

    hand, gang = up(Reports())
    hand.assign(gang, trial())
    refused = served(hand)
    assert (refused.error, refused.diverged, refused.reports) == ("the loss is nan", diverged, (told,))


def test_a_disk_that_is_full_is_no_trials_failure() -> None:
    def fails(assignment: Assignment) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", "/tmp/of-its-own")

    hand, gang = up(Scripted(fails))
    hand.assign(gang, trial())
    refusal = served(hand)
    assert (refusal.away, refusal.error) == (True, "OSError: [Errno 28] No space left on device: '/tmp/of-its-own'")


@pytest.mark.parametrize("leave", [KeyboardInterrupt, bdb.BdbQuit])
def test_leaving_the_program_or_the_debugger_is_no_trials_failure(leave: type[BaseException]) -> None:
    def interrupt(assignment: Assignment) -> None:
        raise leave

    hand, gang = up(Scripted(interrupt))
    hand.assign(gang, trial())
    with pytest.raises(leave):
        hand.events(0.0)


def test_data_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    path = tmp_path / "cut.csv"
    path.write_text("\n".join(["1,2,3"] * 50 + ["1,2"]) + "\n")
    trainer = XGBoostTrainer(scaling=HAND, hyperparameters=STATIC)
    placed = {name: Channel.of(path, name=name).place(0) for name in ("train", "validation")}
    hand = InHand("bad", trainer.program(placed), HAND)
    with refuses(GangError, field="cut.csv"):
        hand.want({1: 1}, None)
    hand.close()


def test_it_uses_the_cores_of_this_process_unless_told() -> None:
    assert cores(HAND) == len(os.sched_getaffinity(0))
    assert cores(ScalingConfig(num_workers=0, resources_per_worker={"CPU": 3})) == 3
    assert cores(ScalingConfig(num_workers=0, use_gpu=True, resources_per_worker={"GPU": 1})) == len(
        os.sched_getaffinity(0)
    )


def hand_trainer(**hyperparameters: Any) -> XGBoostTrainer:
    scaling = ScalingConfig(num_workers=0, resources_per_worker={"CPU": 1})
    return XGBoostTrainer(scaling=scaling, hyperparameters={**STATIC, **hyperparameters})


def test_no_workers_are_one_in_hand_and_stay_none_on_record() -> None:
    trainer = hand_trainer()
    assert (trainer.workers, trainer.in_hand, trainer.logical_cpus(4)) == (1, True, 0)
    assert "num_workers=0" in repr(trainer)
    again = trainer_from_json(trainer.to_json())
    assert (again.in_hand, again.to_json()) == (True, trainer.to_json())
    assert hand_trainer(tree_method="exact").workers == 1
    assert not XGBoostTrainer().in_hand


def test_a_trial_that_xgboost_refuses_fails_with_its_words(tmp_path: Path) -> None:
    with refuses(TrialError, field="updater", value="nonsense") as caught:
        hand_trainer(num_round=3, updater="nonsense").fit({"train": TRAIN}, storage_path=str(tmp_path))
    assert "\n" not in str(caught.value)
    assert "Traceback" in caught.value.traceback
    assert not list(tmp_path.rglob("000003*"))


def test_more_at_once_than_one_is_said_not_to_be() -> None:
    said: list[str] = []
    channels = {"train": Channel.of(TRAIN)}
    with hand_trainer().gangs("job", channels, at_once=4, notify=said.append), hand_trainer().gangs("job", channels):
        pass
    [line] = said
    mentions(line, "num_workers=0", "4")


def frame() -> pandas.DataFrame:
    return pandas.DataFrame({"y": [0, 1, 1, 0], "a": [1.0, 2.0, 3.0, 4.0], "c": pandas.Categorical(list("abab"))})


@pytest.mark.parametrize("source", [frame(), TRAIN, (TRAIN[:, 1:], TRAIN[:, 0])], ids=["frame", "array", "pair"])
def test_rows_in_memory_stay_where_they_are(source: Any) -> None:
    channel = Channel.of(source, name="train")
    placed = channel.place(0)
    assert placed.source is channel.source
    same(placed.read(0, 1), channel.read_whole())
    same(placed.read_whole(), channel.read_whole())
    same(placed.read(2, 3), channel.read(2, 3))  # As a worker that is simulated here reads it.
    with refuses(ConfigurationError, field=("rank", "workers"), value=3, remedy="2"):
        placed.read(3, 3)
    with refuses(DataError, field="rows", value=5000, remedy="workers"):
        placed.read(0, 5000)


def test_files_are_read_here(tmp_path: Path) -> None:
    np.savetxt(tmp_path / "rows.csv", TRAIN[:20], delimiter=",")
    placed: PlacedChannel = Channel.of(tmp_path / "rows.csv").place(0)
    np.testing.assert_allclose(placed.read(0, 1).features, TRAIN[:20, 1:], rtol=1e-6)


def test_there_have_to_be_rows() -> None:
    with refuses(DataError, field="rows", remedy="worker"):
        Channel.of(np.empty((0, 3))).place(0)


def same(left: Any, right: Any) -> None:
    if isinstance(left.features, pandas.DataFrame):
        pandas.testing.assert_frame_equal(left.features, right.features)
    else:
        np.testing.assert_array_equal(left.features, right.features)
    np.testing.assert_array_equal(left.labels, right.labels)


def test_it_is_halted_while_it_trains_and_no_longer_with_the_next(tmp_path: Path) -> None:
    """From a signal handler or another thread: nobody else is heard while it serves."""
    asked: list[bool] = []

    class Asks(Scripted):
        def train(
            self, assignment: Assignment, on_report: Callable[[Report], None], halted: Callable[[], bool] = never
        ) -> Segment:
            asked.append(halted())
            signal.raise_signal(signal.SIGUSR1)
            asked.append(halted())
            return super().train(assignment, on_report)

    hand, gang = up(Asks())
    before = signal.signal(signal.SIGUSR1, lambda number, frame: hand.halt(gang))
    try:
        for _ in range(2):
            hand.assign(gang, trial())
            assert not served(hand).error
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert asked == [False, True] * 2
