"""Programs on examples, and functions that collect or count them."""

from __future__ import annotations

import torch
from torch import nn

from tests.support.examples import ROWS, image_folder, numbers_in
from tests.support.networks import assignment
from tests.support.process_gang import serve_alone
from tests.support.refusals import mentions
from trainers import Channel, DataError, Examples, ScalingConfig, TorchTrainer, TrialError


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


def fails(tmp_path, train, examples: Examples, **words) -> str:
    [error] = serve_alone(program(train, examples)(), assignment(tmp_path, **words))
    assert isinstance(error, TrialError | DataError), error
    return str(error)


def goes(context) -> None:
    for _ in context.epochs():
        for _ in context.prepare_data("train", num_workers=context.hyperparameters.get("processes", 0)):
            pass
        context.report({}, checkpoint={})


def check_image_that_is_none(tmp_path, processes):
    folder = image_folder(tmp_path / "images")
    (folder / "b" / "05.png").write_text("no image")
    error = fails(tmp_path, goes, Examples.images(folder, size=4), per_worker_batch_size=4, processes=processes)
    mentions(error, f"{folder}/b/05.png", "image")
    assert "\n" not in error
