"""The search for what broke a distributed run, on small runs in this process; two of them broken on purpose."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from ray.train import ScalingConfig
from torch import nn
from typer import Typer
from typer.testing import CliRunner

from experiments import why_it_broke
from experiments.convergence.cases import ALONE, DISTRIBUTED, Case, image_case
from experiments.convergence.causes import Cause
from experiments.convergence.diagnosis import Diagnosis
from experiments.convergence.experiment import Experiment
from experiments.convergence.page import page
from experiments.convergence.published_theories import Theory
from experiments.convergence.verdicts import Verdict, judgements
from experiments.shared.published import Options, Steps
from experiments.why_it_broke import page_tables
from tests.support.experiments.why_it_broke import (
    IMAGE_EPOCHS,
    IMAGE_SEEDS,
    image,  # noqa: F401  # Fixtures.
    job,
    look_into,
    the_first_optimizer_is_made,  # noqa: F401  # Of every test.
)
from tests.support.refusals import mentions, missing_names
from trainers import Channel, ParameterServerTrainer, TorchTrainer, TrainContext
from trainers.datasets import load

HERE = ScalingConfig(num_workers=0, resources_per_worker={"CPU": 1})
DIGITS = load("digits")


def in_files(folder: Path, rows: tuple[NDArray[Any], NDArray[Any]], parts: Sequence[NDArray[Any]]) -> Channel:
    """Rows in as many CSV files, which as many workers read whole, one each."""
    features, labels = rows
    folder.mkdir()
    paths = [str(folder / f"{number}.csv") for number in range(len(parts))]
    for path, part in zip(paths, parts, strict=True):
        np.savetxt(path, np.column_stack([labels[part], features[part]]), delimiter=",", fmt="%.6g")
    return Channel.of(paths, target=0, header=False, name="rows")


def test_the_page_says_what_was_found(image: tuple[Experiment, Diagnosis, Path], tmp_path: Path) -> None:
    experiment, diagnosis, _ = image
    made = page(experiment, diagnosis)
    html = made.html()
    for text in (diagnosis.verdict, "Mitliagkas", "type: continuous", "ContinuousParameter", "Shards", "Keskar"):
        assert text in html
    titles = [section.title for section in made.sections]
    mentions(titles[1], "theories")
    mentions(titles[2], "Why")
    pictures = {path.name for path in made.write_pictures(tmp_path)}
    assert pictures == {
        f"{name}.{kind}" for name in ("gives-back", "learning", "noise-scale", "staleness") for kind in ("png", "svg")
    }


def test_momentum_or_staleness_broke_the_network(image: tuple[Experiment, Diagnosis, Path]) -> None:
    experiment, diagnosis, _ = image
    assert diagnosis.gap.alone.mean > 0.9
    assert diagnosis.gap.distributed.mean < 0.4
    shares = {finding.change.causes[0]: finding.share for finding in diagnosis.findings}
    assert shares[Cause.STALENESS].value > 0.7
    assert Cause.STALENESS in diagnosis.found
    for innocent in (Cause.METRIC, Cause.SHARDS, Cause.BATCH, Cause.NOISE):
        assert shares[innocent].value < 0.3
    # Its metric is exact: the same model has the same score, whoever evaluates which rows.
    assert experiment.scores(Cause.METRIC).values == pytest.approx(diagnosis.gap.distributed.values, abs=1e-9)
    # Without staleness and with the batch of one worker, four workers are one.
    assert diagnosis.pair is not None
    assert diagnosis.pair.share.value == pytest.approx(1, abs=0.05)
    assert {"lr", "mode"} <= diagnosis.ranges.keys()


def test_the_published_theories_are_judged_by_it(image: tuple[Experiment, Diagnosis, Path]) -> None:
    experiment, diagnosis, _ = image
    found = {judgement.theory: judgement.verdict for judgement in judgements(diagnosis)}
    assert found[Theory.STALENESS] is Verdict.CONFIRMED
    assert found[Theory.METHOD] is Verdict.NOT_TESTABLE
    assert len(found) == 5
    # The link was what the workers waited for, all the time: a push and its answer took each some milliseconds.
    [outcome] = experiment.outcomes[DISTRIBUTED]
    assert outcome.link_seconds / outcome.pushes > 0.001
    [free] = experiment.outcomes[Cause.CONGESTION]
    assert free.link_seconds == 0
    measured = experiment.noise_scales
    assert {name: scale.rows for name, scale in measured.items()} == {ALONE: 100, DISTRIBUTED: 400}
    assert all(min(scale.noise) > 0 for scale in measured.values())
    assert measured[ALONE].by_unit[0] > 0


def test_what_was_done_is_not_done_again(image: tuple[Experiment, Diagnosis, Path]) -> None:
    experiment, diagnosis, folder = image
    kept = {path: path.stat().st_mtime_ns for path in (folder / "steps").glob("*.json")}
    assert len(kept) == len(IMAGE_SEEDS) * len(experiment.outcomes)
    said: list[str] = []
    with Steps(folder, said.append) as steps:
        case = image_case(Options(quick=True, out=folder), IMAGE_EPOCHS, real=False)
        again = Experiment(case=case, seeds=IMAGE_SEEDS, steps=steps, folder=folder, say=lambda line: None).run()
    assert again.to_json() == diagnosis.to_json()
    assert len(said) == len(kept)
    assert {path: path.stat().st_mtime_ns for path in (folder / "steps").glob("*.json")} == kept


def test_sorted_rows_in_a_file_each_are_found_to_be_the_cause(tmp_path: Path) -> None:
    """Each worker has the rows of two or three labels, and the slowest worker has the last word."""
    features, labels = DIGITS.train  # type: ignore[misc]  # images are pairs
    parts = np.array_split(np.argsort(labels, kind="stable")[:1200:2], 4)
    train = in_files(tmp_path / "train", (features, labels), parts)
    learning = {"lr": 0.2, "momentum": 0.0, "per_worker_batch_size": 20, "epochs": 6}
    case = Case(
        title="sorted digits",
        trainer=ParameterServerTrainer(
            "experiments.mnist:train",
            scaling=HERE,
            hyperparameters={**learning, "mode": "async", "num_workers": 4, "delay_ms": [0, 5, 20, 80]},
        ),
        channels={"train": train, **{name: Channel.of(getattr(DIGITS, name)) for name in ("validation", "test")}},
        metric="validation:accuracy",
    )
    shares = case.label_shares()
    assert shares is not None
    assert max(share["0"] for share in shares) > 0.3
    assert min(share["0"] for share in shares) == 0
    _, diagnosis = look_into(case, tmp_path, (1,))
    assert diagnosis.findings[0].change.causes == (Cause.SHARDS,)
    mentions(diagnosis.verdict, Cause.SHARDS.word, "4 workers")
    assert diagnosis.findings[0].enough


def test_an_auc_averaged_over_skewed_shards_is_found_to_be_the_cause(tmp_path: Path) -> None:
    """The model is that of one worker; the hardest rows of both classes lie in one worker's file."""
    from sklearn.linear_model import LogisticRegression

    (features, labels), (held, known) = DIGITS.train, DIGITS.validation  # type: ignore[misc]  # images are pairs
    scores = LogisticRegression(C=0.05).fit(features, labels >= 5).decision_function(held)
    large = np.flatnonzero(known >= 5)[np.argsort(scores[known >= 5])]
    small = np.flatnonzero(known < 5)[np.argsort(-scores[known < 5])]
    parts = [np.concatenate(pair) for pair in zip(np.split(large[:140], 4), np.split(small[:140], 4), strict=True)]
    case = Case(
        title="skewed evaluation",
        trainer=TorchTrainer(
            "tests.support.averaging:train",
            scaling=ScalingConfig(num_workers=4),
            hyperparameters={"lr": 0.3, "global_batch_size": 100, "epochs": 6},
        ),
        channels={
            "train": Channel.of(DIGITS.train),
            "validation": in_files(tmp_path / "validation", (held, known), parts),
        },
        metric="validation:auc",
    )
    experiment, diagnosis = look_into(case, tmp_path, (1, 2))
    [best, *_] = diagnosis.findings
    assert best.change.causes == (Cause.METRIC,)
    assert best.share.value == pytest.approx(1, abs=0.1)
    mentions(diagnosis.verdict, Cause.METRIC.word)
    assert diagnosis.found == [Cause.METRIC]
    assert "context.sum()" in page(experiment, diagnosis).html()


def test_where_nothing_broke_it_stops_there_unless_asked(tmp_path: Path) -> None:
    case = Case(
        title="the same batch",
        trainer=TorchTrainer(
            "experiments.mnist:train",
            scaling=ScalingConfig(num_workers=4),
            hyperparameters={"lr": 0.1, "momentum": 0.9, "global_batch_size": 100, "epochs": 4},
        ),
        channels={name: Channel.of(getattr(DIGITS, name)) for name in ("train", "validation", "test")},
        metric="validation:accuracy",
    )
    experiment, diagnosis = look_into(case, tmp_path)
    mentions(diagnosis.verdict, "4 workers", diagnosis.gap.distributed.text, diagnosis.gap.alone.text)
    assert list(experiment.outcomes) == [ALONE, DISTRIBUTED]
    assert diagnosis.verdict in page(experiment, diagnosis).html().replace("&#39;", "'")
    asked = experiment.run(anyway=True)
    assert asked.findings
    titles = [section.title for section in page(experiment, asked).sections]
    mentions(titles[1], "theories")
    mentions(titles[2], "training")


class Pair(nn.Module):
    """A model that gives two tensors."""

    def __init__(self) -> None:
        super().__init__()
        self.inside = nn.Linear(64, 10)

    def forward(self, rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        found = self.inside(rows)
        return found, found.square()


def pairs(context: TrainContext) -> None:
    """Learns digits with it, and scores its own loss on all of them."""
    batches = context.prepare_data("train", labels=torch.int64)
    model = context.prepare_model(Pair())
    optimizer = torch.optim.SGD(model.parameters(), lr=context.hyperparameters["lr"])
    for _ in context.epochs():
        for features, labels in batches:
            loss = nn.functional.cross_entropy(model(features)[0], labels)
            context.step(loss, optimizer)
        context.report({"train:loss": float(loss.detach())}, checkpoint={"model": model.state_dict()})


def test_noise_that_cannot_be_seen_is_said_not_to_have_been_tried(tmp_path: Path) -> None:
    case = Case(
        title="pairs",
        trainer=ParameterServerTrainer(
            pairs,
            scaling=HERE,
            hyperparameters={
                "lr": 0.1, "per_worker_batch_size": 100, "epochs": 2, "mode": "async", "num_workers": 4
            },
        ),
        channels={"train": Channel.of(DIGITS.train)},
        metric="train:loss",
        maximize=False,
    )  # fmt: skip
    experiment, diagnosis = look_into(case, tmp_path, (1,))
    mentions(diagnosis.ruled_out[Cause.NOISE], "prepared", "tensor", "row", "example")
    assert Cause.NOISE not in experiment.outcomes
    found = {judgement.theory: judgement for judgement in judgements(diagnosis)}
    assert found[Theory.NOISE].verdict is Verdict.NOT_TESTABLE
    assert found[Theory.CONGESTION].verdict is Verdict.NOT_TESTABLE
    assert not [part for part in page(experiment, diagnosis).sections if not missing_names(part.title, "gradients")]


def test_the_command_runs_a_job_file_to_its_page(tmp_path: Path) -> None:
    path = job(
        tmp_path,
        "type: parameter_server, train_loop: 'experiments.mnist:train', num_workers: 4, "
        "hyperparameters: {lr: 0.1, momentum: 0.9, per_worker_batch_size: 100, mode: async}",
    )
    app, out = Typer(), tmp_path / "out"
    app.command()(why_it_broke.main)
    done = CliRunner().invoke(app, [str(path), "--epochs", "4", "--seeds", "1", "--out", str(out), "--allow-code"])
    assert done.exit_code == 0, done.output
    result = json.loads((out / "result.json").read_text())
    assert result["metric"] == "validation:loss"
    assert result["gap"]["size"] > 0
    assert result["verdict"] in done.output.replace("\n", " ").replace("  ", " ")
    assert (out / "index.html").stat().st_size > 1e6
    assert page_tables(result)["causes"].count("\n") == len(result["findings"]) + 3 + (result["pair"] is not None)
