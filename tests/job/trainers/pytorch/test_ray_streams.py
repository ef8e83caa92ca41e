"""Streams of Ray Datasets without Ray: what a pass is, how it goes on, and how one that breaks off is told."""

from __future__ import annotations

import threading

from tests.support.networks import assignment
from tests.support.process_gang import serve_alone
from tests.support.refusals import mentions
from tests.support.trainers.pytorch.ray_streams import Split, collects, program
from trainers import DataError, TrialError
from trainers.channels import Streamed
from trainers.pytorch.data import ray_streams


def failed(tmp_path, form: Streamed, *more) -> str:
    [error, *rest] = serve_alone(program(collects, form), assignment(tmp_path, stop=3, per_worker_batch_size=4), *more)
    assert isinstance(error, DataError | TrialError), error
    assert not any(isinstance(each, Exception) for each in rest)
    return str(error)


def test_a_stream_that_ends_early_is_an_error_and_the_next_trial_trains(tmp_path):
    after = assignment(tmp_path, name="after", stop=1, per_worker_batch_size=4)
    said = failed(tmp_path, Split(p1=13), after)
    mentions(said, "channel", "train", "4", "pass 1", "6")
    mentions(failed(tmp_path, Split(p0=0)), "channel", "train", "0", "pass 0", "1")
    broken = failed(tmp_path, Split(p1=ValueError("Traceback\n  no such file")), after)
    mentions(broken, "channel", "train", "1", "no such file")


def test_a_stream_that_stalls_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setattr(ray_streams, "STALL_SECONDS", 0.2)
    event = threading.Event()
    said = failed(tmp_path, Split(p0=event))
    event.set()
    mentions(said, "channel", "train", "0.2 s", "1", "CPUs")


def test_a_pass_that_is_left_ends_its_part_and_its_thread(tmp_path):
    def leaves(context) -> None:
        batches = context.prepare_data("train")
        for _ in context.epochs():
            for _batch in batches:
                break
            context.report({}, checkpoint={})

    form = Split()
    serve_alone(program(leaves, form), assignment(tmp_path, stop=2, per_worker_batch_size=4))
    for thread in threading.enumerate():
        if thread.name == "ray-data":
            thread.join(20)
            assert not thread.is_alive()
    assert [part.ended for part in form.made] == [part.passes for part in form.made]


def test_processes_are_ray_datas_own(tmp_path):
    def asks(context) -> None:
        context.prepare_data("train", num_workers=2)

    [error] = serve_alone(program(asks, Split()), assignment(tmp_path, per_worker_batch_size=4))
    mentions(str(error), "num_workers", "2", "Ray Data")
