"""`context.step`: one model on all workers, whatever is stepped with, and the same answer in every mode."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional

from tests.support.networks import assignment, close, data, network, servers, small_buckets, state
from tests.support.process_gang import ProcessGang, process_gang
from tests.support.refusals import refuses
from tests.support.trainers.pytorch.step import HERE, alone, clips, hooks, steps_itself, trains_an_adversary
from trainers import TorchTrainer
from trainers.channels import Channel
from trainers.errors import TrialError


@pytest.fixture(scope="module")
def gang(tmp_path_factory):
    with process_gang(2, str(tmp_path_factory.mktemp("stores"))) as started:
        yield started


def program(function, rows: int = 96):
    """Makes the program of a trainer, on whichever process asks."""

    def make():
        trainer = TorchTrainer(function, scaling=HERE, report_timeout_s=60.0)
        return trainer.program({"train": Channel.of(data(rows), name="train").place(0)})

    return make


def together(gang: ProcessGang, function, *assignments, before=None) -> list:
    """What rank 0 gives; the first error of any rank is raised."""
    ranks = gang.run(program(function), *assignments, before=before)
    for answers in ranks:
        for answer in answers:
            if isinstance(answer, Exception):
                raise answer
    return ranks[0]


def test_a_function_that_steps_itself_is_refused_on_several_workers(gang: ProcessGang, tmp_path):
    with refuses(TrialError, field="SGD.step()", remedy="context.step(loss, optimizer)"):
        together(gang, steps_itself, assignment(tmp_path, per_worker_batch_size=8))


def goes_backward_itself(context) -> None:
    """Two losses, one of them outside `step`; or the gradients of an adversary's loss, which are made zero again."""
    words = context.hyperparameters
    model = context.prepare_model(network())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in context.epochs():
        for features, labels in context.prepare_data("train", shuffle=False, labels=torch.int64):
            rows = features.double().requires_grad_()
            functional.cross_entropy(model(rows), labels).backward()
            if words["clears"]:
                optimizer.zero_grad(set_to_none=words["clears"] == "none")
            context.step(functional.cross_entropy(model(rows.detach() + 0.1 * rows.grad.sign()), labels), optimizer)
        context.report({}, checkpoint={"model": model.state_dict()})


@pytest.mark.parametrize("before", [None, small_buckets])
def test_a_backward_pass_beside_it_counts_once_or_is_refused(gang: ProcessGang, tmp_path, before):
    words = {"per_worker_batch_size": 4}
    for clears in ("none", "zeros"):
        [two] = together(gang, goes_backward_itself, assignment(tmp_path, **words, clears=clears), before=before)
        [one] = alone(goes_backward_itself, assignment(tmp_path, name="one", per_worker_batch_size=8, clears=clears))
        close(state(two)["model"], state(one)["model"])
    with refuses(
        TrialError,
        field=("gradients", "backward()"),
        remedy=("context.step(loss, optimizer)", "optimizer.zero_grad()"),
    ):
        together(gang, goes_backward_itself, assignment(tmp_path, **words, clears=""), before=before)


def trains_a_part_of_the_loss(context) -> None:
    """A head and a scale in the loss; made late, each worker has its own random numbers by then."""
    model = context.prepare_model(network())
    batches = context.prepare_data("train", shuffle=False, labels=torch.int64)
    head, scale = nn.Linear(2, 2).double(), nn.Parameter(torch.ones(1, dtype=torch.float64))
    for epoch in context.epochs():
        if epoch == 0:
            head = nn.Linear(2, 2).double() if context.hyperparameters.get("late") else head
            optimizer = torch.optim.SGD([*model.parameters(), *head.parameters(), scale], lr=0.2, momentum=0.9)
        for features, labels in batches:
            context.step(functional.cross_entropy(scale * head(model(features.double())), labels), optimizer)
        kept = torch.cat([part.detach().flatten() for part in (*model.parameters(), *head.parameters(), scale)])
        everywhere = context.sum(kept) / context.world_size
        context.report({}, checkpoint={"kept": kept, "mean": everywhere})


def test_parameters_of_no_prepared_model_are_trained_on_all_workers(gang: ProcessGang, tmp_path):
    words = {"per_worker_batch_size": 4}
    early, late = together(
        gang,
        trains_a_part_of_the_loss,
        assignment(tmp_path, name="early", **words),
        assignment(tmp_path, name="late", **words, late=True),
    )
    for segment in (early, late):
        torch.testing.assert_close(state(segment)["kept"], state(segment)["mean"], rtol=0, atol=0)
    [one] = alone(trains_a_part_of_the_loss, assignment(tmp_path, name="one", per_worker_batch_size=8))
    close(state(early), state(one))


def thaws(context) -> None:
    """Trains the last layer first, and then all of them."""
    model = network()
    model[0].requires_grad_(False)
    context.prepare_model(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.9)
    batches = context.prepare_data("train", shuffle=False, labels=torch.int64)
    for epoch in context.epochs():
        model[0].requires_grad_(epoch > 0)
        for features, labels in batches:
            context.step(functional.cross_entropy(model(features.double()), labels), optimizer)
        context.report({}, checkpoint={"model": model.state_dict()})


def test_layers_that_are_trained_later_are_trained_on_all_workers(gang: ProcessGang, tmp_path):
    [two] = together(gang, thaws, assignment(tmp_path, per_worker_batch_size=4), before=small_buckets)
    [one] = alone(thaws, assignment(tmp_path, name="one", per_worker_batch_size=8))
    close(state(two)["model"], state(one)["model"])


def adversaries_in_pytorch(batch: int, steps: int = 1) -> dict:
    torch.manual_seed(11)
    makes = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 6)).double()
    tells = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 1)).double()
    making = torch.optim.SGD(makes.parameters(), lr=0.1)
    telling = torch.optim.SGD(tells.parameters(), lr=0.1, momentum=0.9)
    rows = torch.from_numpy(data()[0]).double()
    for _ in range(2):
        for start in range(0, 96, batch):
            # Both losses of an update before either model changes, as accumulation has it.
            parts = rows[start : start + batch].split(batch // steps)
            for number, real in enumerate(parts):
                made = makes(real[:, :2])
                right = functional.softplus(-tells(real)).mean() + functional.softplus(tells(made.detach())).mean()
                grads = torch.autograd.grad(right / steps, tells.parameters())
                accumulate(tells, grads)
                if number == len(parts) - 1:
                    telling.step()
                    telling.zero_grad()
                grads = torch.autograd.grad(functional.softplus(-tells(made)).mean() / steps, makes.parameters())
                accumulate(makes, grads)
            making.step()
            making.zero_grad()
    return {"makes": makes.state_dict(), "tells": tells.state_dict()}


def accumulate(model: nn.Module, gradients) -> None:
    for parameter, gradient in zip(model.parameters(), gradients, strict=True):
        parameter.grad = gradient if parameter.grad is None else parameter.grad + gradient


@pytest.mark.parametrize("steps", [1, 3])
@pytest.mark.parametrize("before", [None, small_buckets])
def test_two_optimizers_train_as_they_would_in_pytorch(gang: ProcessGang, tmp_path, steps, before):
    words = {"global_batch_size": 24, "gradient_accumulation_steps": steps, "tells": 1.0}
    expected = adversaries_in_pytorch(24, steps)
    [one] = alone(trains_an_adversary, assignment(tmp_path, name="one", **words))
    [two] = together(gang, trains_an_adversary, assignment(tmp_path, name="two", **words), before=before)
    for name in ("makes", "tells"):
        close(state(one)[name], dict(expected[name]))
        close(state(two)[name], dict(expected[name]))


def clipped_in_pytorch(batch: int, max_norm: float) -> dict:
    torch.manual_seed(11)
    model, (features, labels) = network(), data()
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0, momentum=0.5)
    rows, targets = torch.from_numpy(features).double(), torch.from_numpy(labels).long()
    for _ in range(2):
        for start in range(0, 96, batch):
            optimizer.zero_grad()
            mine = slice(start, start + batch)
            (100 * functional.cross_entropy(model(rows[mine]), targets[mine])).backward()
            nn.utils.clip_grad_norm_(model.parameters(), max_norm)
            optimizer.step()
    return model.state_dict()


def test_clipping_is_of_the_whole_update_in_every_mode(gang: ProcessGang, tmp_path):
    expected = clipped_in_pytorch(24, 0.3)
    words = {"global_batch_size": 24, "max_norm": 0.3}
    parts = {**words, "gradient_accumulation_steps": 3}
    found = {
        "one": alone(clips, assignment(tmp_path, name="one", **words)),
        "parts": alone(clips, assignment(tmp_path, name="parts", **parts)),
        "gang": together(gang, clips, assignment(tmp_path, name="gang", **parts), before=small_buckets),
        "servers": servers(clips, assignment(tmp_path, name="servers", **words, mode="sync", num_workers=2)),
        "several": servers(clips, assignment(tmp_path, name="several", **parts, mode="sync", num_servers=2)),
        "parted": servers(
            clips, assignment(tmp_path, name="parted", **words, mode="sync", num_servers=3, num_workers=2)
        ),
        "async": servers(clips, assignment(tmp_path, name="async", **words, mode="async", num_servers=3)),
    }
    for name, [segment] in found.items():
        for key, value in state(segment)["model"].items():
            torch.testing.assert_close(value, expected[key], rtol=0, atol=1e-12, msg=f"{name}: {key}")
    [loose] = alone(clips, assignment(tmp_path, name="loose", **{**words, "max_norm": None}))
    assert not torch.allclose(state(loose)["model"]["0.weight"], expected["0.weight"])


def test_a_hook_on_steps_sees_the_whole_updates_gradient(gang: ProcessGang, tmp_path):
    expected = clipped_in_pytorch(24, 0.3)
    words = {"global_batch_size": 24, "max_norm": 0.3, "from": 0}
    for [segment] in (
        alone(hooks, assignment(tmp_path, name="one", **words)),
        together(gang, hooks, assignment(tmp_path, name="gang", **words)),
    ):
        close(state(segment)["model"], expected)


@pytest.mark.parametrize("rule", ["linear", "sqrt"])
def test_a_batch_that_is_given_whole_has_the_rate_that_was_found_for_it(gang: ProcessGang, tmp_path, rule):
    def train(context) -> None:
        model = context.prepare_model(network())
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in context.epochs():
            for features, labels in context.prepare_data("train", shuffle=False, labels=torch.int64):
                context.step(functional.cross_entropy(model(features.double()), labels), optimizer)
            context.report({}, checkpoint={"model": model.state_dict()})

    words = {"global_batch_size": 24, "learning_rate_rule": rule, "warmup_epochs": 1}
    [one] = alone(train, assignment(tmp_path, name="one", **words))
    [two] = together(gang, train, assignment(tmp_path, name="two", **words, gradient_accumulation_steps=2))
    [synchronous] = servers(train, assignment(tmp_path, name="sync", **words, num_workers=4))
    close(state(two)["model"], state(one)["model"])
    close(state(synchronous)["model"], state(one)["model"])
