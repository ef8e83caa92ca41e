"""Examples of every kind in training: each row once a pass, drawn by seed and pass alone, exact after a pause."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from tests.support.examples import KINDS, ROWS, hugging_face_images, image_folder, numbers_in, text_file
from tests.support.networks import assignment, close, state
from tests.support.process_gang import ProcessGang, serve_alone
from tests.support.refusals import mentions
from trainers import Channel, DataError, Examples, ParameterServerTrainer, ScalingConfig, TorchTrainer, TrialError


def program(function, examples: Examples, trainer=TorchTrainer, **options):
    def make():
        made = trainer(function, scaling=ScalingConfig(num_workers=0), report_timeout_s=60.0, **options)
        return made.program({"train": Channel.of(examples, name="train").place(0)})

    return make


def collects(kind: str, *, steps: bool, workers: int = 0):
    """Notes the rows that came, and trains with them."""

    def train(context) -> None:
        model = context.prepare_model(nn.Sequential(nn.Linear(1, 4), nn.Dropout(0.5), nn.Linear(4, 1)).double())
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
        batches = context.prepare_data("train", num_workers=workers)
        came = []
        if context.checkpoint is not None:
            model.load_state_dict(context.checkpoint["model"])
            optimizer.load_state_dict(context.checkpoint["optimizer"])
            came = [*context.checkpoint["came"]]
        for _ in context.epochs():
            for batch in context.steps(batches) if steps else batches:
                rows = numbers_in(kind, batch)
                came.append(rows)
                context.step(model(torch.tensor(rows).double()[:, None]).square().mean(), optimizer)
            states = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "came": came}
            context.report({}, checkpoint=states)

    return train


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


@pytest.mark.process
@pytest.mark.parametrize("kind", ["images", "columns"])
def test_processes_that_load_change_no_row(tmp_path, kind):
    examples = KINDS[kind](tmp_path)
    words = {"per_worker_batch_size": 3}
    [alone] = serve_alone(program(collects(kind, steps=False), examples)(), assignment(tmp_path, name="alone", **words))
    [loaded] = serve_alone(
        program(collects(kind, steps=False, workers=2), examples)(), assignment(tmp_path, name="loaded", **words)
    )
    assert state(alone)["came"] == state(loaded)["came"]


def counts(kind: str):
    def train(context) -> None:
        batches = context.prepare_data("train", shuffle=False)
        for _ in context.epochs():
            seen = torch.zeros(ROWS, dtype=torch.int64)
            with torch.no_grad():
                for batch in batches:
                    seen[numbers_in(kind, batch)] += 1
            context.report({}, checkpoint={"all": context.sum(seen), "mine": seen})

    return train


@pytest.mark.process
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


@pytest.mark.process
def test_images_of_hugging_face_are_decoded_on_workers(gang: ProcessGang, tmp_path):
    examples = Examples.hugging_face(str(hugging_face_images(tmp_path / "images")))
    answers = gang.run(program(decodes, examples), assignment(tmp_path, per_worker_batch_size=1))
    [first, *_] = [answer[0] for answer in answers]
    assert state(first)["all"].tolist() == [10 * row for row in range(ROWS)]


def test_parameter_servers_have_them_too(tmp_path):
    examples = KINDS["columns"](tmp_path)
    words = {"per_worker_batch_size": 2, "num_workers": 2, "mode": "sync"}
    make = program(counts("columns"), examples, ParameterServerTrainer)
    [first, *_] = serve_alone(make(), assignment(tmp_path, **words))
    assert state(first)["all"].tolist() == [1] * ROWS


# ---- of a function's own


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


# ---- what is refused


def fails(tmp_path, train, examples: Examples, **words) -> str:
    [error] = serve_alone(program(train, examples)(), assignment(tmp_path, **words))
    assert isinstance(error, TrialError | DataError), error
    return str(error)


def goes(context) -> None:
    for _ in context.epochs():
        for _ in context.prepare_data("train", num_workers=context.hyperparameters.get("processes", 0)):
            pass
        context.report({}, checkpoint={})


def test_a_stream_that_ends_early_is_an_error(tmp_path):
    early = Examples.named("tests.support.examples:Counted", rows=14, length=20)
    error = fails(tmp_path, goes, early, per_worker_batch_size=4)
    mentions(error, "DataLoader", "Counted", "4", "5", "len()")


def test_an_image_that_is_none_is_named_in_one_line(tmp_path):
    check_image_that_is_none(tmp_path, processes=0)


@pytest.mark.process
def test_an_image_that_is_none_is_named_by_a_process_of_a_loader(tmp_path):
    check_image_that_is_none(tmp_path, processes=1)


def check_image_that_is_none(tmp_path, processes):
    folder = image_folder(tmp_path / "images")
    (folder / "b" / "05.png").write_text("no image")
    error = fails(tmp_path, goes, Examples.images(folder, size=4), per_worker_batch_size=4, processes=processes)
    mentions(error, f"{folder}/b/05.png", "image")
    assert "\n" not in error


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
