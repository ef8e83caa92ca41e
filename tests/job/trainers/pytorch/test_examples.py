"""Examples of every kind in training: each row once a pass, drawn by seed and pass alone, exact after a pause."""

from __future__ import annotations

import pytest
import torch

from tests.support.examples import KINDS, ROWS, image_folder
from tests.support.networks import assignment, close, state
from tests.support.process_gang import serve_alone
from tests.support.refusals import mentions
from tests.support.trainers.pytorch.examples import check_image_that_is_none, collects, fails, goes, program
from trainers import Channel, Examples, ScalingConfig, TorchTrainer


@pytest.mark.parametrize("kind", KINDS)
def test_a_pause_in_the_middle_of_a_pass_changes_no_bit(tmp_path, kind):
    examples = KINDS[kind](tmp_path)
    make = program(collects(kind, steps=True), examples, steps_per_report=3)
    [whole] = serve_alone(make(), assignment(tmp_path, 0, 6, "whole", per_worker_batch_size=3))
    for at in range(6):  # Each in a gang of its own.
        [part] = serve_alone(make(), assignment(tmp_path, at, at + 1, "parts", per_worker_batch_size=3))
    one, other = state(whole), state(part)
    assert one["came"] == other["came"]
    close(one["model"], other["model"], 0.0)
    rows = [row for batch in one["came"] for row in batch]
    assert sorted(rows[:ROWS]) == sorted(rows[ROWS : 2 * ROWS]) == [*range(ROWS)]
    assert rows[:ROWS] != rows[ROWS : 2 * ROWS]


def test_a_stream_that_ends_early_is_an_error(tmp_path):
    early = Examples.named("tests.support.examples:Counted", rows=14, length=20)
    error = fails(tmp_path, goes, early, per_worker_batch_size=4)
    mentions(error, "DataLoader", "Counted", "4", "5", "len()")


def test_an_image_that_is_none_is_named_in_one_line(tmp_path):
    check_image_that_is_none(tmp_path, processes=0)


def test_images_of_several_sizes_make_no_batch(tmp_path):
    error = fails(tmp_path, goes, Examples.images(image_folder(tmp_path / "images")), per_worker_batch_size=4)
    mentions(error, "channel", "train", "(3, 8, 9)", "(3, 9, 9)", "(3, 10, 9)", "size", "prepare_data", "collate_fn")


@pytest.mark.parametrize(
    ("call", "names"),
    [
        (lambda context: context.shard("train"), ("channel", "train", "prepare_data", "context.dataset")),
        (lambda context: context.prepare_data("train", labels=torch.int64), ("channel", "train", "labels", "int64")),
        (lambda context: context.prepare_data("train", num_workers=-1), ("num_workers", -1, 0)),
        (lambda context: context.prepare_data("train", collate_fn=3), ("collate_fn", 3, "function")),
        (lambda context: context.prepare_data("train", sharded=True), ("sharded", True, "DataLoader")),
        (lambda context: context.dataset("test"), ("channel", "test", "train", "fit()")),
    ],
)
def test_what_examples_have_not_is_refused(tmp_path, call, names):
    examples = Examples.named("tests.support.examples:Squares")
    mentions(fails(tmp_path, call, examples, per_worker_batch_size=4), *names)


def test_tables_have_no_dataset(tmp_path):
    def make(function):
        trainer = TorchTrainer(function, scaling=ScalingConfig(num_workers=0))
        rows = torch.rand(8, 2).numpy()
        return trainer.program({"train": Channel.of((rows, rows[:, 0]), name="train").place(0)})

    [error] = serve_alone(make(lambda context: context.dataset("train")), assignment(tmp_path))
    mentions(str(error), "channel", "train", "table", "context.shard")
    [error] = serve_alone(make(lambda context: context.prepare_data("train", num_workers=2)), assignment(tmp_path))
    mentions(str(error), "num_workers", "Examples")
