"""A pass goes on where it was left, and draws the same after a pause, in a loader's worker processes too."""

from __future__ import annotations

from torch.utils.data import DataLoader, SubsetRandomSampler, WeightedRandomSampler

from tests.support.loaders import NUMBERS, ROWS, Lengths, OddFirst, by_numpy
from tests.support.networks import HERE, assignment, run, state
from trainers import TorchTrainer


def test_a_pass_over_any_sampler_goes_on_where_it_was_left(tmp_path):
    samplers = {
        "subset": lambda: {"batch_size": 7, "sampler": SubsetRandomSampler(range(80))},
        "weighted": lambda: {"batch_size": 7, "sampler": WeightedRandomSampler([1.0] * ROWS, 90)},
        "own": lambda: {"batch_size": 7, "sampler": OddFirst(by_numpy)},
        "batches": lambda: {"batch_sampler": Lengths()},
    }

    def train(context) -> None:
        """An epoch of it is three batches of each, wherever its pass stands; `next` draws from no generator."""
        prepared = [context.prepare_data(DataLoader(NUMBERS, **make())) for make in samplers.values()]
        streams = [iter(()) for _ in prepared]
        came = [*context.checkpoint["came"]] if context.checkpoint else []
        for _ in context.epochs():
            for at, batches in enumerate(prepared):
                for _ in range(3):
                    batch = next(streams[at], None)
                    if batch is None:
                        streams[at] = iter(batches)
                        batch = next(streams[at])
                    came.append(batch[0].tolist())
            context.report({}, checkpoint={"came": came})

    straight, *parts = run(
        TorchTrainer(train, scaling=HERE),
        assignment(tmp_path, stop=24, name="straight"),
        *[assignment(tmp_path, start=start, stop=start + 3, name="paused") for start in range(0, 24, 3)],
    )
    assert state(straight)["came"] == state(parts[-1])["came"]
