"""What workers compute together, in processes without Ray; the mathematics in float64."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import numpy as np
import pytest
import torch
from ray.train import ScalingConfig
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

from tests.support.networks import assignment, close, data, network, small_buckets, state, train_exactly
from tests.support.process_gang import ProcessGang, process_gang, serve_alone
from trainers import ConfigurationError, TorchTrainer, TrialError
from trainers.channels import Channel
from trainers.errors import DataError, DivergedError
from trainers.gangs.messages import Assignment
from trainers.pytorch.state.checkpoint import TorchCheckpoint

GENERATOR = np.random.default_rng(7)


def train_with_everything(context) -> None:
    """Dropout, Adam, a scheduler, shuffled rows, draws from every generator: all that a pause has to keep."""
    model = context.prepare_model(
        nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.5), nn.Linear(16, 2))
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=0.01)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)
    batches = context.prepare_data("train", labels=torch.int64)
    if context.checkpoint is not None:
        model.load_state_dict(context.checkpoint["model"])
        optimizer.load_state_dict(context.checkpoint["optimizer"])
        scheduler.load_state_dict(context.checkpoint["scheduler"])
    for _ in context.epochs():
        model.train()
        for features, labels in batches:
            noise = torch.randn(()) + random.random() + np.random.standard_normal()  # noqa: NPY002
            context.step(functional.cross_entropy(model(features + 0.01 * noise), labels), optimizer)
        scheduler.step()
        model.eval()
        context.report(
            {"train:noise": float(noise)},
            checkpoint={
                "model": model.state_dict(),
                "optimizer": optimizer.state_dict(),
                "scheduler": scheduler.state_dict(),
            },
        )


def program(function, rows: int = 96, *, timeout: float = 60.0, **options):
    """Makes the program of a trainer, on whichever process asks."""

    def make():
        trainer = TorchTrainer(function, scaling=ScalingConfig(num_workers=0), report_timeout_s=timeout, **options)
        return trainer.program({"train": Channel.of(data(rows), name="train").place(0)})

    return make


def only(answers: list) -> list:
    """The one answer of each rank."""
    for answer in answers:
        if isinstance(answer, Exception):
            raise answer
    return [answer[0] for answer in answers]


@pytest.fixture(scope="module")
def gang(tmp_path_factory):
    with process_gang(3, str(tmp_path_factory.mktemp("stores"))) as started:
        yield started


def alone(function, rows: int, *assignments: Assignment) -> list:
    return serve_alone(program(function, rows)(), *assignments)


# ---- the mathematics


@pytest.mark.process
@pytest.mark.parametrize("rows", [96, 97, 101, 10])
def test_workers_together_are_one_worker_with_the_whole_batch(gang: ProcessGang, tmp_path, rows):
    [first, *_] = only(gang.run(program(train_exactly, rows), assignment(tmp_path, per_worker_batch_size=4)))
    [one] = alone(train_exactly, rows, assignment(tmp_path, name="one", per_worker_batch_size=12))
    close(state(first)["model"], state(one)["model"])


def test_one_worker_is_plain_pytorch(tmp_path):
    [one] = alone(train_exactly, 97, assignment(tmp_path, per_worker_batch_size=12))
    torch.manual_seed(11)
    model, (features, labels) = network(), data(97)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9)
    for _ in range(2):
        for start in range(0, 97, 12):
            optimizer.zero_grad()
            rows = torch.from_numpy(features[start : start + 12]).double()
            target = torch.from_numpy(labels[start : start + 12]).long()
            functional.cross_entropy(model(rows), target).backward()
            optimizer.step()
    close(state(one)["model"], model.state_dict(), 0.0)


@pytest.mark.process
@pytest.mark.parametrize("rows", [96, 101])
def test_accumulation_is_a_larger_batch(gang: ProcessGang, tmp_path, rows):
    words = {"global_batch_size": 24, "gradient_accumulation_steps": 4}
    [first, *_] = only(gang.run(program(train_exactly, rows), assignment(tmp_path, **words)))
    [one] = alone(train_exactly, rows, assignment(tmp_path, name="one", global_batch_size=24))
    [parts] = alone(train_exactly, rows, assignment(tmp_path, name="parts", **words))
    close(state(first)["model"], state(one)["model"])
    close(state(parts)["model"], state(one)["model"])


@pytest.mark.process
def test_every_rank_ends_with_the_same_bits(gang: ProcessGang, tmp_path):
    words = {"per_worker_batch_size": 4, "leave": str(tmp_path)}
    only(gang.run(program(train_exactly, 101), assignment(tmp_path, **words), before=small_buckets))
    weights = [torch.load(tmp_path / f"{rank}.pt") for rank in range(3)]
    close(weights[0], weights[1], 0.0)
    close(weights[0], weights[2], 0.0)


def train_part_of_a_model(context) -> None:
    """A parameter that no loss reaches, and a user's own zero_grad."""
    model = context.prepare_model(nn.ModuleDict({"used": network(), "unused": nn.Linear(3, 3)}).double())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9)
    for _ in context.epochs():
        for features, labels in context.prepare_data("train", shuffle=False, labels=torch.int64):
            optimizer.zero_grad()
            context.step(functional.cross_entropy(model["used"](features.double()), labels), optimizer)
        context.report({}, checkpoint={"model": model.state_dict()})


@pytest.mark.process
def test_parameters_without_gradients_hold_nobody_up(gang: ProcessGang, tmp_path):
    words = {"stop": 1}
    [first, *_] = only(
        gang.run(
            program(train_part_of_a_model, 96),
            assignment(tmp_path, **words, per_worker_batch_size=4),
            before=small_buckets,
        )
    )
    [one] = alone(train_part_of_a_model, 96, assignment(tmp_path, **words, name="one", per_worker_batch_size=12))
    close(state(first)["model"], state(one)["model"])


def train_at_its_rate(context) -> None:
    model = context.prepare_model(nn.Linear(6, 1, bias=False))
    nn.init.zeros_(model.weight)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    weights = []
    for _ in context.epochs():
        for _ in context.prepare_data("train"):
            context.step(-model.weight.sum(), optimizer)  # A gradient of -1, whatever the batch.
            weights.append(float(model.weight[0, 0]))
        context.report({}, checkpoint={"weights": weights, "lr": optimizer.param_groups[0]["lr"]})


@pytest.mark.process
def test_the_learning_rate_follows_the_rule(gang: ProcessGang, tmp_path):
    words = {"per_worker_batch_size": 8, "learning_rate_rule": "linear", "warmup_epochs": 1, "stop": 2}
    [first, *_] = only(gang.run(program(train_at_its_rate, 96), assignment(tmp_path, **words)))
    found = state(first)
    rates = np.diff([0.0, *found["weights"]])
    expected = 0.1 * np.array([1, 1.5, 2, 2.5, 3, 3, 3, 3])  # 4 updates an epoch; 3 workers.
    np.testing.assert_allclose(rates, expected, rtol=1e-5)
    assert found["lr"] == 0.1


# ---- pausing


@pytest.mark.process
def test_a_paused_trial_ends_with_the_same_bits_on_this_gang_or_another(gang: ProcessGang, tmp_path):
    words = {"per_worker_batch_size": 8}
    straight = assignment(tmp_path, stop=4, name="straight", **words)
    first = assignment(tmp_path, stop=1, name="paused", **words)
    other = assignment(tmp_path, stop=2, name="other", **words)
    second = assignment(tmp_path, start=1, stop=4, name="paused", **words)
    moved = assignment(tmp_path, start=1, stop=4, name="moved", **words)
    make = program(train_with_everything, 107)
    answers = gang.run(make, straight, first, other, second, before=small_buckets)[0]
    whole, paused = state(answers[0]), state(answers[3])
    close(whole["model"], paused["model"], 0.0)
    assert str(whole["optimizer"]) == str(paused["optimizer"])
    assert answers[0].reports[1:] == answers[3].reports
    (tmp_path / "moved").mkdir()
    (tmp_path / "moved" / "1.pt").write_bytes((tmp_path / "paused" / "1.pt").read_bytes())
    with process_gang(3, str(tmp_path)) as another:
        elsewhere = state(another.run(make, moved, before=small_buckets)[0][0])
    close(whole["model"], elsewhere["model"], 0.0)


def train_by_parts_of_a_pass(context) -> None:
    """Reports every third batch: a unit of resource that ends in the middle of a pass."""
    model = context.prepare_model(network())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    if context.checkpoint is not None:
        model.load_state_dict(context.checkpoint["model"])
    batches = context.prepare_data("train", labels=torch.int64)
    stream = iter(())
    for _ in context.epochs():
        for _ in range(3):
            batch = next(stream, None)
            if batch is None:
                stream = iter(batches)
                batch = next(stream)
            context.step(functional.cross_entropy(model(batch[0].double()), batch[1]), optimizer)
        context.report({}, checkpoint={"model": model.state_dict()})


def test_a_pass_goes_on_where_it_was_left(tmp_path):
    words = {"per_worker_batch_size": 8}
    straight, first, second = alone(
        train_by_parts_of_a_pass,
        97,
        assignment(tmp_path, stop=7, name="straight", **words),
        assignment(tmp_path, stop=3, name="paused", **words),
        assignment(tmp_path, start=3, stop=7, name="paused", **words),
    )
    del first
    close(state(straight)["model"], state(second)["model"], 0.0)


def test_nothing_of_a_trial_is_left_for_the_next(tmp_path):
    words = {"per_worker_batch_size": 8}
    before = torch.get_rng_state(), random.getstate(), np.random.get_state()[1].tolist(), torch.get_num_threads()  # noqa: NPY002
    fresh = alone(train_with_everything, 96, assignment(tmp_path, name="fresh", **words))
    _, later = alone(
        train_with_everything,
        96,
        assignment(tmp_path, name="before", lr=3),
        assignment(tmp_path, name="later", **words),
    )
    close(state(fresh[0])["model"], state(later)["model"], 0.0)
    assert torch.equal(before[0], torch.get_rng_state())
    assert before[1:] == (random.getstate(), np.random.get_state()[1].tolist(), torch.get_num_threads())  # noqa: NPY002


# ---- a DataLoader


@pytest.mark.process
def test_a_loader_is_dealt_out_to_the_workers(gang: ProcessGang, tmp_path):
    def train(context) -> None:
        rows = TensorDataset(torch.arange(50.0)[:, None], torch.arange(50))
        batches = context.prepare_data(DataLoader(rows, batch_size=4, shuffle=True))
        orders = []
        for _ in context.epochs():
            counts, order = torch.zeros(50), []
            with torch.no_grad():
                for features, number in batches:
                    assert torch.equal(features[:, 0], number.float())
                    order += number.tolist()
                    counts[number] += 1
            orders.append(order)
            context.report({}, checkpoint={"counts": context.sum(counts), "orders": orders})

    [first, *_] = only(gang.run(program(train), assignment(tmp_path)))
    found = state(first)
    assert torch.equal(found["counts"], torch.ones(50))
    assert found["orders"][0] != found["orders"][1]
    assert len(found["orders"][0]) == 17


def test_a_loader_of_another_batch_size_is_refused(tmp_path):
    def train(context) -> None:
        context.prepare_data(DataLoader(TensorDataset(torch.arange(50)), batch_size=4))

    [error] = alone(train, 96, assignment(tmp_path, per_worker_batch_size=8))
    assert "batch_size=4 and the hyperparameters give per_worker_batch_size 8" in str(error)


# ---- what goes wrong


@pytest.mark.process
def test_a_network_that_diverges_says_so_on_every_rank(gang: ProcessGang, tmp_path):
    def train(context) -> None:
        model = context.prepare_model(network())
        optimizer = torch.optim.SGD(model.parameters(), lr=1e200)
        for _ in context.epochs():
            for features, labels in context.prepare_data("train", labels=torch.int64):
                context.step(model(features.double()).pow(2).mean() + labels.sum() * 0, optimizer)
            context.report({}, checkpoint={})

    answers = gang.run(program(train), assignment(tmp_path, per_worker_batch_size=4))
    assert {type(error) for error in only_errors(answers)} == {DivergedError}
    [error] = alone(train, 96, assignment(tmp_path, per_worker_batch_size=4))
    assert isinstance(error, DivergedError)


@pytest.mark.process
@pytest.mark.parametrize("bad_epoch", [0, 1])
def test_an_objective_that_is_not_finite_on_rank_0_ends_every_rank(gang: ProcessGang, tmp_path, bad_epoch: int):
    """With that report, the last one too; what the others report counts nowhere."""

    def train(context) -> None:
        model = context.prepare_model(network())
        for epoch in context.epochs():
            bad = context.rank == 1 or (context.rank == 0 and epoch == context.hyperparameters["bad_epoch"])
            context.report({"loss": math.nan if bad else 1.0}, checkpoint={"model": model.state_dict()})

    def told(name: str, epoch: int) -> Assignment:
        made = assignment(tmp_path, name=name, per_worker_batch_size=4, bad_epoch=epoch)
        return replace(made, objective="loss")

    for refused, served in gang.run(program(train), told("bad", bad_epoch), told("good", 99)):
        assert isinstance(refused, DivergedError)
        assert f"unit {bad_epoch + 1}" in str(refused)
        assert not isinstance(served, Exception), served
    assert not (tmp_path / "bad").exists()


def only_errors(answers: list) -> list:
    found = [answer[0] for answer in answers]
    assert all(isinstance(error, Exception) for error in found), found
    return found


@pytest.mark.process
def test_reporting_from_one_rank_only_is_found(gang: ProcessGang, tmp_path):
    def train(context) -> None:
        for _ in context.epochs():
            if context.rank == 0:
                context.report({}, checkpoint={})

    first, *others = only_errors(gang.run(program(train), assignment(tmp_path)))
    assert "rank 1" in str(first) or "rank 2" in str(first)
    assert all("without a report; call report() once an epoch, on every rank" in str(error) for error in others)
    again = gang.run(program(train_exactly), assignment(tmp_path, name="again", per_worker_batch_size=4))
    only(again)


@pytest.mark.process
def test_the_gang_serves_on_after_a_trial_that_failed_on_every_rank(gang: ProcessGang, tmp_path):
    def train(context) -> None:
        if context.hyperparameters.get("wrong"):
            context.sum(torch.ones(3))
            raise ValueError("not today")
        train_exactly(context)

    wrong = assignment(tmp_path, name="wrong", per_worker_batch_size=4, wrong=True)
    right = assignment(tmp_path, name="right", per_worker_batch_size=4)
    for refused, served in gang.run(program(train), wrong, right):
        assert "not today" in str(refused)
        assert not isinstance(served, Exception), served


@pytest.mark.process
def test_an_error_on_one_rank_is_every_ranks(gang: ProcessGang, tmp_path):
    def train(context) -> None:
        model = context.prepare_model(network())
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in context.epochs():
            for features, labels in context.prepare_data("train", labels=torch.int64):
                if context.rank == 1:
                    raise ValueError("a bad row")
                context.step(functional.cross_entropy(model(features.double()), labels), optimizer)

    first, second, third = only_errors(gang.run(program(train), assignment(tmp_path, per_worker_batch_size=4)))
    assert str(first) == str(third) == "rank 1 failed: ValueError: a bad row"
    assert isinstance(second, ValueError)


@pytest.mark.process
def test_ranks_that_go_different_ways_are_told(gang: ProcessGang, tmp_path):
    def train(context) -> None:
        for _ in context.epochs():
            if context.rank == 1:
                context.sum(1.0)
            context.report({}, checkpoint={})

    errors = only_errors(gang.run(program(train), assignment(tmp_path)))
    assert all("rank 0 in the report of epoch 0, rank 1 in context.sum" in str(error) for error in errors)


@pytest.mark.process
def test_a_rank_that_stays_away_is_named_by_a_deadline(gang: ProcessGang, tmp_path):
    def train(context) -> None:
        import time

        for _ in context.epochs():
            if context.rank == 2:
                time.sleep(4)
            context.report({}, checkpoint={})

    first, *_ = only_errors(gang.run(program(train, timeout=2.0), assignment(tmp_path)))
    assert "waited 2 s in the report of epoch 0 for ranks [2]" in str(first)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (lambda context: None, "returned on rank 0 after the reports of 0 of 2 epochs; loop over context.epochs"),
        (lambda context: list(context.epochs()), "ended epoch 0 without a report"),
        (lambda context: [context.report({}) for _ in range(2)], "epoch 0 was reported twice"),
        (lambda context: [context.report({}) for _ in context.epochs()], "of epoch 1 came with checkpoint=None"),
        (lambda context: context.report({}, final=True), "of epoch 0 came with checkpoint=None"),
        (
            lambda context: next(context.epochs()) or context.report({}, checkpoint={}),
            r"after the reports of 1 of 2 epochs; .* end the trial early with report\(..., final=True\)",
        ),
        (lambda context: context.report({"a:b": "good"}), "metric 'a:b' is 'good'; give a number"),
        (lambda context: context.shard("trian"), "no channel 'trian'; fit\\(\\) was given train"),
        (lambda context: context.prepare_data("train"), "no batch size; give per_worker_batch_size"),
        (
            lambda context: [context.report({}, checkpoint={"model": nn.Linear(1, 1)}) for _ in context.epochs()],
            r"checkpoint\['model'\] is a torch.nn.modules.linear.Linear; give tensors",
        ),
    ],
)
def test_a_wrong_function_is_told(tmp_path, body, message):
    [error] = alone(body, 96, assignment(tmp_path))
    with pytest.raises(TrialError, match=message):
        raise error


def test_a_function_that_never_reports_is_ended_by_a_deadline(tmp_path):
    def train(context) -> None:
        while True:
            try:
                sum(range(1000))
            except Exception:
                continue

    [error] = serve_alone(program(train, timeout=0.5)(), assignment(tmp_path))
    assert "waited 0.625 s for a report of trial after 0 epochs or more" in str(error)


def resume_from(tmp_path, function, raw: bytes) -> Exception:
    (tmp_path / "trial").mkdir(exist_ok=True)
    (tmp_path / "trial" / "1.pt").write_bytes(raw)
    [error] = alone(function, 96, assignment(tmp_path, start=1, per_worker_batch_size=8))
    assert isinstance(error, Exception)
    return error


def test_a_checkpoint_that_is_none_is_named(tmp_path):
    alone(train_with_everything, 96, assignment(tmp_path, stop=1, per_worker_batch_size=8))
    whole = (tmp_path / "trial" / "1.pt").read_bytes()
    for raw in (b"", whole[:100], whole[: len(whole) // 2], whole[:-1], b"{}", whole[::-1]):
        error = resume_from(tmp_path, train_with_everything, raw)
        assert isinstance(error, DataError), error
        assert "is cut short or no checkpoint" in str(error)


def test_a_checkpoint_of_another_model_is_named(tmp_path):
    def train(context) -> None:
        model = context.prepare_model(nn.Linear(6, 9))
        model.load_state_dict(context.checkpoint["model"])

    alone(train_with_everything, 96, assignment(tmp_path, stop=1, per_worker_batch_size=8))
    error = resume_from(tmp_path, train, (tmp_path / "trial" / "1.pt").read_bytes())
    assert "is of another model" in str(error)
    assert "Missing key(s)" in str(error)


def test_values_that_a_network_cannot_take_are_refused(tmp_path):
    features, labels = data()
    features[3, 2] = np.nan
    trainer = TorchTrainer(train_exactly, scaling=ScalingConfig(num_workers=0))
    with pytest.raises(DataError, match=r"'train' lacks 1 values \(NaN\)"):
        serve_alone(trainer.program({"train": Channel.of((features, labels), name="train").place(0)}))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"train_loop_per_worker": 3}, "train_loop_per_worker is 3; give a function"),
        ({"train_loop_per_worker": "nowhere"}, "give a function"),
        ({"train_loop_per_worker": "nowhere:train"}, "cannot be loaded"),
        ({"train_loop_per_worker": "math:pi"}, "is a float; give a function"),
        ({"precision": "fp16"}, "precision is 'fp16'; give one of fp32, bf16"),
        ({"compile": 1}, "compile is 1; give True or False"),
        ({"metrics": "validation:accuracy"}, "metrics is 'validation:accuracy'; give names"),
        ({"metrics": ["accuracy"]}, "metrics has 'accuracy'; give a channel"),
        ({"report_timeout_s": 0}, "report_timeout_s is 0; give a number of seconds"),
        ({"hyperparameters": {"epochs": 1.5}}, "'epochs' is 1.5"),
        ({"hyperparameters": {"num_workers": 0}}, "'num_workers' is 0; give a whole number, 1 or more"),
        ({"hyperparameters": {"global_batch_size": 7}}, "7 does not divide by 2 workers"),
        ({"hyperparameters": {"global_batch_size": 9, "num_workers": 4}}, "9 does not divide by 4 workers"),
        ({"scaling": ScalingConfig(num_workers=0), "hyperparameters": {"num_workers": 4}}, "process, on one worker"),
        ({"scaling": ScalingConfig(num_workers=0, use_gpu=True)}, "sees no GPU"),
    ],
)  # fmt: skip
def test_what_cannot_be_right_is_refused_where_it_is_given(arguments, message):
    given = {"train_loop_per_worker": train_exactly, "scaling": ScalingConfig(num_workers=2), **arguments}
    with pytest.raises(ConfigurationError, match=message):
        TorchTrainer(given.pop("train_loop_per_worker"), **given)


def test_mixed_precision_and_compilation_train_the_same_network(tmp_path):
    def train(context) -> None:
        model = context.prepare_model(nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 2)))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        output = None
        for _ in context.epochs():
            for features, labels in context.prepare_data("train", shuffle=False, labels=torch.int64):
                output = model(features)
                context.step(functional.cross_entropy(output, labels), optimizer)
            context.report({}, checkpoint={"model": model.state_dict(), "dtype": str(output.dtype)})

    whole, half = (
        state(serve_alone(program(train, precision=precision)(), assignment(tmp_path, per_worker_batch_size=8))[0])
        for precision in ("fp32", "bf16")
    )
    assert half["dtype"] == "torch.float32"
    close(whole["model"], half["model"], 0.02)
    assert any(not torch.equal(whole["model"][name], half["model"][name]) for name in whole["model"])


# ---- halting


@pytest.mark.process
def test_a_trial_that_is_halted_at_any_report_ends_with_the_same_bits(gang: ProcessGang, tmp_path):
    words = {"per_worker_batch_size": 8}
    make = program(train_with_everything, 107)
    [straight] = gang.run(make, assignment(tmp_path, stop=5, name="straight", **words), before=small_buckets)[0]
    for first, second in [(2, None), (4, None), (2, 4)]:
        name = f"halted-{first}-{second}"
        save_to = str(tmp_path / name / "000005.pt")
        start, checkpoint, reports = 0, None, []
        for halt_at in (first, second, None):
            if start == 5:
                break
            given = words if halt_at is None else {**words, "halt_at": halt_at}
            order = replace(assignment(tmp_path, stop=5, **given), start=start, checkpoint=checkpoint, save_to=save_to)
            ranks = only(gang.run(make, order, before=small_buckets))
            assert {segment.reached for segment in ranks} == {halt_at or 5}
            start, checkpoint = ranks[0].reached, ranks[0].checkpoint
            assert checkpoint.endswith(f"/{start:06d}.pt")
            reports += ranks[0].reports
        assert tuple(reports) == straight.reports
        close(state(straight)["model"], TorchCheckpoint.read(checkpoint).state["model"], 0.0)
        assert str(state(straight)["optimizer"]) == str(TorchCheckpoint.read(checkpoint).state["optimizer"])


@pytest.mark.process
def test_a_halt_waits_for_a_report_with_a_checkpoint(gang: ProcessGang, tmp_path):
    def train(context) -> None:
        for epoch in context.epochs():
            context.report({}, checkpoint={"epoch": epoch} if epoch % 3 == 2 else None)

    for segment in only(gang.run(program(train), assignment(tmp_path, stop=9, halt_at=2, per_worker_batch_size=8))):
        assert (segment.reached, state(segment)) == (3, {"epoch": 2})
