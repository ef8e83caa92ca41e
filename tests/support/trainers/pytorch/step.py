"""Training functions that call `context.step`, PyTorch's own step, or both."""

from __future__ import annotations

import torch
from ray.train import ScalingConfig
from torch import nn
from torch.nn import functional

from tests.support.networks import network, run
from trainers import TorchTrainer

HERE = ScalingConfig(num_workers=0)


def alone(function, *assignments) -> list:
    return run(TorchTrainer(function, scaling=HERE), *assignments)


def steps_itself(context) -> None:
    """As a port from plain PyTorch begins, which trains on one worker as it stands."""
    model = context.prepare_model(network())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in context.epochs():
        for features, labels in context.prepare_data("train", labels=torch.int64):
            optimizer.zero_grad()
            functional.cross_entropy(model(features.double()), labels).backward()
            optimizer.step()
        context.report({}, checkpoint={"model": model.state_dict()})


def trains_an_adversary(context) -> None:
    """A generator against a discriminator, as PyTorch's tutorials write them, but for the calls that `step` makes."""
    words = context.hyperparameters
    makes = context.prepare_model(nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 6)).double())
    tells = context.prepare_model(nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 1)).double())
    making = torch.optim.SGD(makes.parameters(), lr=0.1)
    telling = torch.optim.SGD(tells.parameters(), lr=0.1 * words["tells"], momentum=0.9)
    for _ in context.epochs():
        for real, _ in context.prepare_data("train", shuffle=False):
            made = makes(real[:, :2].double())
            right = functional.softplus(-tells(real.double())).mean()
            context.step(right + functional.softplus(tells(made.detach())).mean(), telling)
            context.step(functional.softplus(-tells(made)).mean(), making)
        models = {"makes": makes.state_dict(), "tells": tells.state_dict()}
        context.report({}, checkpoint={name: dict(state) for name, state in models.items()})


def clips(context) -> None:
    words = context.hyperparameters
    model = context.prepare_model(network())
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0, momentum=0.5)
    for _ in context.epochs():
        for features, labels in context.prepare_data("train", shuffle=False, labels=torch.int64):
            loss = functional.cross_entropy(model(features.double()), labels)
            context.step(100 * loss, optimizer, max_norm=words["max_norm"])
        context.report({}, checkpoint={"model": model.state_dict()})


def hooks(context) -> None:
    words = context.hyperparameters
    model = context.prepare_model(network())
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0, momentum=0.5)

    def clip(*_) -> None:
        nn.utils.clip_grad_norm_(model.parameters(), words["max_norm"])

    batches = context.prepare_data("train", shuffle=False, labels=torch.int64)
    for epoch in context.epochs():
        if epoch == words["from"]:
            register = optimizer.register_step_post_hook if words.get("post") else optimizer.register_step_pre_hook
            register(clip)
        for features, labels in batches:
            context.step(100 * functional.cross_entropy(model(features.double()), labels), optimizer)
        context.report({}, checkpoint={"model": model.state_dict()})
