"""Examples of every kind in training: each row once a pass, drawn by seed and pass alone, exact after a pause."""

from __future__ import annotations

import pytest
import torch

from tests.support.examples import KINDS, ROWS, hugging_face_images
from tests.support.networks import assignment, state
from tests.support.process_gang import ProcessGang, serve_alone
from tests.support.trainers.pytorch.examples import check_image_that_is_none, collects, counts, program
from trainers import Examples


@pytest.mark.parametrize("kind", ["images", "columns"])
def test_processes_that_load_change_no_row(tmp_path, kind):
    examples = KINDS[kind](tmp_path)
    words = {"per_worker_batch_size": 3}
    [alone] = serve_alone(program(collects(kind, steps=False), examples)(), assignment(tmp_path, name="alone", **words))
    [loaded] = serve_alone(
        program(collects(kind, steps=False, workers=2), examples)(), assignment(tmp_path, name="loaded", **words)
    )
    assert state(alone)["came"] == state(loaded)["came"]


@pytest.mark.parametrize("kind", KINDS)
def test_each_row_is_one_workers(gang: ProcessGang, tmp_path, kind):
    examples = KINDS[kind](tmp_path)
    answers = gang.run(program(counts(kind), examples), assignment(tmp_path, per_worker_batch_size=2))
    [first, *_] = [answer[0] for answer in answers]
    assert state(first)["all"].tolist() == [1] * ROWS
    if kind not in ("iterable", "images"):  # One is dealt out batch by batch, the other sorted by class.
        assert state(first)["mine"].nonzero()[:, 0].tolist() == [*range(0, ROWS, 3)]


def decodes(context) -> None:
    """Adds up the pixels of each row's image, which are ten times its number."""
    batches = context.prepare_data("train", shuffle=False)
    for _ in context.epochs():
        seen = torch.zeros(ROWS, dtype=torch.int64)
        with torch.no_grad():
            for batch in batches:
                for row, image in zip(batch["row"], batch["image"], strict=True):
                    seen[row] += int(image.float().mean())
        context.report({}, checkpoint={"all": context.sum(seen)})


def test_images_of_hugging_face_are_decoded_on_workers(gang: ProcessGang, tmp_path):
    examples = Examples.hugging_face(str(hugging_face_images(tmp_path / "images")))
    answers = gang.run(program(decodes, examples), assignment(tmp_path, per_worker_batch_size=1))
    [first, *_] = [answer[0] for answer in answers]
    assert state(first)["all"].tolist() == [10 * row for row in range(ROWS)]


def test_an_image_that_is_none_is_named_by_a_process_of_a_loader(tmp_path):
    check_image_that_is_none(tmp_path, processes=1)
