"""Iterable datasets: dealt out batch by batch or a worker's own, of any number of batches, and exact after a pause."""

from __future__ import annotations

import pytest

from tests.support.allreduce import alone, only, program
from tests.support.networks import assignment, close, servers, state
from tests.support.process_gang import serve_alone
from tests.support.trainers.pytorch.iterables import check_pause, counts, loader, trains


def test_a_pause_in_the_middle_of_a_pass_changes_nothing(tmp_path):
    check_pause(tmp_path, workers=0)


def test_it_accumulates_over_its_batches(tmp_path):
    words = {"sharded": False, "rows": 50}
    [whole] = alone(trains, 96, assignment(tmp_path, name="whole", **words, size=8))
    halves = {"per_worker_batch_size": 4, "gradient_accumulation_steps": 2}
    [parts] = alone(trains, 96, assignment(tmp_path, name="parts", **words, size=4, **halves))
    close(state(whole)["model"], state(parts)["model"])
    [both] = servers(trains, assignment(tmp_path, name="both", **words, size=4, num_workers=2, mode="sync"))
    close(state(whole)["model"], state(both)["model"])


@pytest.mark.parametrize("sharded", [False, True])
def test_a_length_that_is_too_small_leaves_no_row_out(tmp_path, sharded):
    """PyTorch warns of it."""
    [segment] = serve_alone(program(counts)(), assignment(tmp_path, sharded=sharded, said=8))
    assert sorted(state(segment)["all"]) == [*range(50)]


def test_a_length_is_that_of_the_dataset_or_none(tmp_path):
    def asks(context) -> None:
        for _ in context.epochs():
            with pytest.raises(TypeError):
                len(context.prepare_data(loader(context)))
            context.report({}, checkpoint={})

    only([serve_alone(program(asks)(), assignment(tmp_path, stop=1))])
