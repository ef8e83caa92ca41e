"""A trial that ends itself: its last report stands for the epochs that are left, and nothing is run for them."""

from __future__ import annotations

from tests.support.networks import HERE, assignment, data, state
from tests.support.process_gang import process_gang
from tests.support.trainers.pytorch.final import WORDS, steps, train
from trainers import TorchTrainer
from trainers.channels import Channel


def test_all_workers_end_when_the_first_says_so(tmp_path):
    def make():
        channels = {"train": Channel.of(data(), name="train").place(0)}
        return TorchTrainer(train, scaling=HERE, report_timeout_s=60.0).program(channels)

    words = {**WORDS, "ends": 1}
    with process_gang(2, str(tmp_path)) as gang:
        # One after the other, as a driver gives them: the second is from what the first has written.
        first = gang.run(make, assignment(tmp_path, stop=4, **words))
        second = gang.run(make, assignment(tmp_path, start=4, stop=6, **words))
    for [segment] in first:
        assert steps(segment) == [(1, 0), (2, 1), (3, 1), (4, 1)]
    for [segment] in second:
        assert steps(segment) == [(5, 1), (6, 1)]
    assert state(second[0][0])["epoch"] == 1
