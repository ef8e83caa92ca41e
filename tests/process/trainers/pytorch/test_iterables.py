"""Iterable datasets: dealt out batch by batch or a worker's own, of any number of batches, and exact after a pause."""

from __future__ import annotations

import pytest
import torch
from torch.utils.data import DataLoader

from tests.support.allreduce import only, only_errors, program
from tests.support.networks import assignment, state
from tests.support.process_gang import ProcessGang
from tests.support.refusals import mentions, missing_names
from tests.support.trainers.pytorch.iterables import Numbers, check_whole_batch, counts, gathered, trains


def rows_of(context) -> None:
    words = context.hyperparameters
    made = Numbers(context.rank, 50, 3, shuffled=False) if words["sharded"] else Numbers()
    batches = context.prepare_data(DataLoader(made, batch_size=4), sharded=words["sharded"])
    for _ in context.epochs():
        with torch.no_grad():
            evaluated = [row for rows, _ in batches for row in rows[:, 0].int().tolist()]
        context.report({}, checkpoint={"all": [row for rows in gathered(context, evaluated) for row in rows]})


@pytest.mark.parametrize("sharded", [False, True])
def test_each_row_is_one_workers(gang: ProcessGang, tmp_path, sharded):
    [first, *_] = only(gang.run(program(rows_of), assignment(tmp_path, sharded=sharded)))
    assert sorted(state(first)["all"]) == [*range(50)]


def test_workers_together_are_one_with_the_whole_batch(gang: ProcessGang, tmp_path):
    """Other numbers of rows, shared and not: tests/long/trainers/pytorch/test_iterables.py."""
    check_whole_batch(gang, tmp_path, sharded=True, rows=26)


def test_on_workers_neither_does_it_and_one_that_is_too_large_is_an_error(gang: ProcessGang, tmp_path):
    small, large = (assignment(tmp_path, name=str(said), sharded=False, said=said) for said in (8, 500))
    answers = gang.run(program(counts), small, large)
    assert sorted(state(answers[0][0])["all"]) == [*range(50)]
    for _, error in answers:
        mentions(str(error), "DataLoader", "Said", "13", "125", "len()")


def differs(context) -> None:
    batches = context.prepare_data(DataLoader(Numbers(context.rank, 50, context.world_size), batch_size=4))
    for _ in context.epochs():
        for _ in batches:
            pass


def test_rows_that_are_dealt_out_twice_are_refused(gang: ProcessGang, tmp_path):
    errors = only_errors(gang.run(program(differs), assignment(tmp_path)))
    mentions(str(errors[0]), "DataLoader", "Numbers", "rank 1", "rank 0", "prepare_data", "sharded=True")


def test_fewer_batches_than_workers_are_refused(gang: ProcessGang, tmp_path):
    errors = only_errors(gang.run(program(trains), assignment(tmp_path, sharded=False, rows=8, size=4)))
    said = [str(error) for error in errors]
    assert any(not missing_names(text, "DataLoader", "rank 2", "3", "batch", "workers") for text in said), said
