"""The model of a trial whose job compares trials by their best value is that of its best report."""

from __future__ import annotations

from tests.support.networks import HERE, assignment, data
from tests.support.process_gang import process_gang
from tests.support.trainers.pytorch.best import by_best, handed_out, train, words
from trainers import TorchTrainer
from trainers.channels import Channel


def test_on_several_workers_the_first_keeps_it(tmp_path) -> None:
    def make():
        channels = {"train": Channel.of(data(), name="train").place(0)}
        return TorchTrainer(train, scaling=HERE, report_timeout_s=60.0).program(channels)

    with process_gang(2, str(tmp_path)) as gang:
        gang.run(make, by_best(assignment(tmp_path, stop=3, **words())))
        [[segment], _] = gang.run(make, by_best(assignment(tmp_path, start=3, stop=6, **words())))
    assert int(handed_out(segment)["nested"][0]) == 1
