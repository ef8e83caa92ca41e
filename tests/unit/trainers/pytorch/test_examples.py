"""Examples of every kind in training: each row once a pass, drawn by seed and pass alone, exact after a pause."""

from __future__ import annotations

import torch

from tests.support.examples import KINDS, ROWS, text_file
from tests.support.networks import assignment, state
from tests.support.process_gang import serve_alone
from tests.support.trainers.pytorch.examples import counts, program
from trainers import Examples, ParameterServerTrainer


def test_parameter_servers_have_them_too(tmp_path):
    examples = KINDS["columns"](tmp_path)
    words = {"per_worker_batch_size": 2, "num_workers": 2, "mode": "sync"}
    make = program(counts("columns"), examples, ParameterServerTrainer)
    [first, *_] = serve_alone(make(), assignment(tmp_path, **words))
    assert state(first)["all"].tolist() == [1] * ROWS


def test_a_function_may_make_its_own_loader_and_batches(tmp_path):
    def train(context) -> None:
        own = torch.utils.data.DataLoader(context.dataset("train"), batch_size=8, collate_fn=" ".join)
        lengths = context.prepare_data("train", collate_fn=lambda lines: [len(line) for line in lines], shuffle=False)
        for _ in context.epochs():
            with torch.no_grad():
                first = next(iter(context.prepare_data(own)))
                shapes = [len(batch) for batch in lengths]
            context.report({}, checkpoint={"first": first, "shapes": shapes})

    make = program(train, Examples.text(text_file(tmp_path / "lines.txt")))
    [done] = serve_alone(make(), assignment(tmp_path, stop=1, per_worker_batch_size=8))
    assert state(done) == {"first": " ".join(f"line {row}" for row in range(8)), "shapes": [8, 8, 4]}


def test_ragged_columns_are_lists_of_tensors(tmp_path):
    def train(context) -> None:
        batches = context.prepare_data("train", shuffle=False)
        for _ in context.epochs():
            with torch.no_grad():
                batch = next(iter(batches))
            context.report({}, checkpoint={"tokens": batch["tokens"], "grid": batch["grid"].shape})

    [done] = serve_alone(
        program(train, KINDS["columns"](tmp_path))(), assignment(tmp_path, stop=1, per_worker_batch_size=4)
    )
    assert [tokens.tolist() for tokens in state(done)["tokens"]] == [[], [0], [0, 1], [0, 1, 2]]
    assert tuple(state(done)["grid"]) == (4, 2, 3)


def test_an_iterable_dataset_is_new_for_each_trial(tmp_path):
    def train(context) -> None:
        read = context.dataset("train").read
        for _ in context.epochs():
            for _ in context.prepare_data("train"):
                break
            context.report({"train:read": read}, checkpoint={})

    make = program(train, Examples.named("tests.support.examples:Counted"))
    words = {"per_worker_batch_size": 4, "stop": 1}
    segments = serve_alone(make(), *(assignment(tmp_path, name=name, **words) for name in "ab"))
    assert [segment.reports[0].metrics for segment in segments] == [{"train:read": 0.0}] * 2
