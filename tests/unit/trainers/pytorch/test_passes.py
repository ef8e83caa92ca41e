"""A pass goes on where it was left, and draws the same after a pause, in a loader's worker processes too."""

from __future__ import annotations

import numpy as np
import pytest
from torch.utils.data import DataLoader

from tests.support.loaders import NUMBERS, ROWS
from tests.support.networks import HERE, assignment, state
from tests.support.process_gang import serve_alone
from trainers import TorchTrainer
from trainers.channels import Channel


@pytest.mark.parametrize("prepare", ["shuffled", "in order", "loader"])
@pytest.mark.parametrize("last", [3, 10])
def test_a_pass_that_is_left_is_over(tmp_path, prepare, last):
    """Also at its last batch, the tenth; and taking a batch before the epochs leaves nothing out."""

    def train(context) -> None:
        data = DataLoader(NUMBERS, batch_size=10, shuffle=True) if prepare == "loader" else "train"
        batches = context.prepare_data(data, shuffle=prepare == "shuffled")
        came = [*context.checkpoint["came"]] if context.checkpoint else []
        next(iter(batches))
        for epoch in context.epochs():
            rows = []
            for number, batch in enumerate(batches, 1):
                rows.append(batch[1].tolist() if prepare != "loader" else batch[0].tolist())
                if epoch != 1 and number == last:
                    break
            came.append(rows)
            context.report({}, checkpoint={"came": came})

    words = {"per_worker_batch_size": 10}
    channel = Channel.of((np.ones((ROWS, 2), np.float32), np.arange(ROWS, dtype=np.float32)), name="train")
    straight, *parts = serve_alone(
        TorchTrainer(train, scaling=HERE).program({"train": channel.place(0)}),
        assignment(tmp_path, stop=4, name="straight", **words),
        *[assignment(tmp_path, start=start, stop=start + 1, name="paused", **words) for start in range(4)],
    )
    first, second, third, _ = state(straight)["came"]
    assert [len(first), len(second), len(third)] == [last, 10, last]
    assert sorted(row for batch in second for row in batch) == list(range(ROWS))
    # A pass begins at its beginning.
    assert (first == third) == (prepare == "in order")
    assert state(straight)["came"] == state(parts[-1])["came"]
