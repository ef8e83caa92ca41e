"""The model of a trial whose job compares trials by their best value is that of its best report."""

from __future__ import annotations

from tests.support.networks import assignment
from tests.support.trainers.pytorch.best import by_best, handed_out, in_one_process, words
from trainers.pytorch.state.checkpoint import TorchCheckpoint


def test_a_trial_that_ends_itself_hands_out_its_best_too(tmp_path) -> None:
    first = by_best(assignment(tmp_path, stop=4, **words(ends=2)))
    second = by_best(assignment(tmp_path, start=4, stop=6, **words(ends=2)))
    for segment in in_one_process(first, second):
        assert int(handed_out(segment)["nested"][0]) == 1


def test_where_the_last_value_counts_nothing_more_is_kept(tmp_path) -> None:
    [segment] = in_one_process(assignment(tmp_path, stop=3, **words(without=[1])))
    assert TorchCheckpoint.read(segment.checkpoint).best == {}
    assert int(handed_out(segment)["nested"][0]) == 2
