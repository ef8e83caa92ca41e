"""Workers that hold a network in shards and save, read and train it, without a trainer around them."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterable
from datetime import timedelta
from pathlib import Path
from typing import Any, ClassVar

import torch
from ray.train import ScalingConfig
from torch import Tensor, nn

from tests.support.process_gang import ProcessGang
from trainers import TorchTrainer, checkpoint, patient_storage, steady, storage
from trainers.checkpoint import File, Manifest
from trainers.errors import StorageError
from trainers.gangs.messages import Assignment
from trainers.gangs.program import WorkerContext
from trainers.patient_storage import PatientStorage
from trainers.pytorch.gradients import ProcessGroup
from trainers.pytorch.state import IN_SHARDS, TorchCheckpoint, shards


class Calls:
    """A program that calls a function for each assignment, with its peers and the assignment's words.

    Its process group stays, since DTensors keep what they know of one.
    """

    peers: ClassVar[ProcessGroup | None] = None

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    def open(self, context: WorkerContext) -> None:
        Calls.peers = Calls.peers or ProcessGroup(context, torch.device("cpu"), 60.0)

    def train(self, assignment: Assignment, *_: Any) -> Any:
        return self._function(Calls.peers, **assignment.hyperparameters)

    def close(self) -> None:
        pass


def called(gang: ProcessGang, function: Callable[..., Any], **words: Any) -> list[Any]:
    """Call a function on each rank; return its results or errors."""
    one = Assignment(trial_id="t", hyperparameters=words, seed=1, start=0, stop=1, checkpoint=None, save_to="/nowhere")
    return [answer[0] if isinstance(answer, list) else answer for answer in gang.run(lambda: Calls(function), one)]


def network(seed: int) -> nn.Module:
    """Layers whose rows not every number of workers divides, and buffers of several types of number."""
    torch.manual_seed(seed)
    made = nn.Sequential(nn.Linear(8, 132), nn.BatchNorm1d(132), nn.Tanh(), nn.Linear(132, 67), nn.Linear(67, 3))
    made.double()
    made.register_buffer("table", torch.randint(0, 1 << 40, (60, 60)))
    made.register_buffer("halves", torch.randn(100, 100, dtype=torch.bfloat16))
    return made


BUFFERS = 60 * 60 * 8 + 100 * 100 * 2
"""Bytes of those that are in shards."""

CUTS = ("rows", "columns", "hybrid", "blocks", "whole")


def laid_out(model: nn.Module, cut: str, world_size: int) -> nn.Module:
    """A model in shards of rows, of columns, of rows in two replicas, of rows and columns at once, or whole."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard
    from torch.distributed.tensor import Shard, distribute_module, distribute_tensor

    if cut == "whole":
        return model
    if cut == "blocks":
        mesh = init_device_mesh("cpu", (2, world_size // 2), mesh_dim_names=("shard", "tensor"))

        def spread(name: str, module: nn.Module, mesh: Any) -> None:
            for own, parameter in list(module.named_parameters(recurse=False)):
                places = [Shard(0), Shard(parameter.dim() - 1)]
                parameter = nn.Parameter(distribute_tensor(parameter.detach(), mesh, places, src_data_rank=None))
                module.register_parameter(own, parameter)

        return distribute_module(model, mesh, spread)
    shape = (2, world_size // 2) if cut == "hybrid" else (world_size,)
    names = ("replicate", "shard") if cut == "hybrid" else ("shard",)
    mesh = init_device_mesh("cpu", shape, mesh_dim_names=names)

    def columns(parameter: nn.Parameter) -> Shard:
        """FSDP2 takes columns where they are as many for each worker."""
        return Shard(int(parameter.dim() > 1 and parameter.shape[-1] % world_size == 0))

    place = columns if cut == "columns" else None
    for layer in model:
        if next(iter(layer.parameters()), None) is not None:
            fully_shard(layer, mesh=mesh, shard_placement_fn=place)
    return fully_shard(model, mesh=mesh, shard_placement_fn=place)


def optimizer_of(model: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.AdamW(model.parameters(), lr=0.01, foreach=False)


def stepped(model: nn.Module, optimizer: torch.optim.Optimizer, turns: Iterable[int]) -> None:
    """Steps with gradients that every layout has alike."""
    from torch.distributed.tensor import DTensor, distribute_tensor

    for turn in turns:
        generator = torch.Generator().manual_seed(turn)
        for parameter in model.parameters():
            gradient = torch.randn(parameter.shape, generator=generator, dtype=parameter.dtype)
            if isinstance(parameter, DTensor):
                places = parameter.device_mesh, parameter.placements
                gradient = distribute_tensor(gradient, *places, src_data_rank=None)
            parameter.grad = gradient
        optimizer.step()


def state_of(model: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, Any]:
    return {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 3, "rates": [0.5, (1, "a")]}


def full(value: Any) -> Any:
    """A state with all DTensors put together, by collectives."""
    if isinstance(value, dict):
        return {key: full(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(full(item) for item in value)
    return value.full_tensor() if shards.is_sharded(value) else value


def saved(peers: Any, state: dict[str, Any], uri: str, **words: Any) -> Manifest:
    """Writes a state, as the end of an assignment does."""
    place = PatientStorage()
    staged = shards.stage(state, peers.rank, peers.gather, **words)
    staged.begin(uri, place)
    rest = TorchCheckpoint(step=1, state=staged.tree, random=(), updates=0, positions=()).to_bytes()
    return staged.end(uri, peers.rank, peers.gather, place, {IN_SHARDS: rest})


def opened(uri: str, manifest: Manifest | None = None) -> dict[str, Any]:
    """The state of a checkpoint; its tensors are not read yet."""
    known = manifest or checkpoint.manifest_of(uri)
    return TorchCheckpoint.opened(uri, known, PatientStorage(given_up=lambda: True)).state


def train_and_save(peers: Any, folder: str, cuts: Iterable[str]) -> dict[str, Any]:
    """Three steps and a checkpoint in each layout, which has its name; the whole states on rank 0."""
    states = {}
    for cut in cuts:
        model = laid_out(network(1), cut, peers.world_size)
        optimizer = optimizer_of(model)
        stepped(model, optimizer, range(3))
        state = state_of(model, optimizer)
        saved(peers, state, storage.join(folder, cut))
        states[cut] = full(state)
    return states if peers.rank == 0 else {}


def resume(peers: Any, uri: str, cuts: Iterable[str]) -> dict[str, tuple[Any, Any]]:
    """Other networks in other layouts go on from a checkpoint; on rank 0 whole states before and after two steps."""
    states = {}
    for cut in cuts:
        state = opened(uri)
        model = laid_out(network(2 + peers.rank), cut, peers.world_size)
        optimizer = optimizer_of(model)
        shards.hook(model)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        shards.place(optimizer)
        before = copied(full({**state_of(model, optimizer), "epoch": state["epoch"], "rates": state["rates"]}))
        stepped(model, optimizer, range(3, 5))
        states[cut] = before, full(state_of(model, optimizer))
    return states if peers.rank == 0 else {}


def copied(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: copied(item) for key, item in value.items()}
    return value.clone() if isinstance(value, Tensor) else value


def go_on_alone() -> dict[str, Any]:
    """Train in one process; return the result."""
    model = network(1)
    optimizer = optimizer_of(model)
    stepped(model, optimizer, range(5))
    return state_of(model, optimizer)


def save_twice(peers: Any, uri: str) -> list[str]:
    """A second save in the place of a first one; returns the names that were there in between and are there now."""
    model = laid_out(network(1), "rows", peers.world_size)
    saved(peers, {"model": model.state_dict()}, uri)
    peers.meet("the first")
    before = storage.names(uri)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(2)
    saved(peers, {"model": model.state_dict()}, uri)
    peers.meet("the second")
    return [*before, "|", *storage.names(uri)]


def load(peers: Any, uri: str) -> None:
    """A model reads its slices; nobody waits for another."""
    state = opened(uri)
    model = laid_out(network(2), "rows", peers.world_size)
    shards.hook(model)
    model.load_state_dict(state["model"])


def die_before_the_seal(peers: Any, uri: str, dies: int) -> None:
    """One worker is killed when its part is written."""
    place = PatientStorage()
    model = laid_out(network(1), "rows", peers.world_size)
    staged = shards.stage({"model": model.state_dict()}, peers.rank, peers.gather)
    staged.begin(uri, place)
    if peers.rank != dies:
        peers._meeting.set_timeout(timedelta(seconds=1))
    else:
        staged._thread.join()
        os.kill(os.getpid(), signal.SIGKILL)
    staged.end(uri, peers.rank, peers.gather, place, {})


def sizes_written(peers: Any, uri: str, cut: str) -> list[int]:
    """By rank, the bytes of its file."""
    model = laid_out(network(1), cut, peers.world_size)
    saved(peers, {"model": model.state_dict()}, uri)
    peers.meet("the checkpoint")
    own = [name for name in storage.names(uri) if name.startswith(f"shard-{peers.rank:05d}")]
    return [Path(uri, name).stat().st_size for name in own]


def stages(peers: Any, uri: str, cuts: list[list[int]], read: list[list[int]]) -> Any:
    """Each worker has some layers of a network, saves them with their names, and others read them cut otherwise."""
    whole = network(1)
    order = [name for name, _ in whole.named_parameters()]

    def part(layers: list[int]) -> tuple[dict[str, nn.Parameter], torch.optim.Optimizer]:
        own = {name: each for name, each in whole.named_parameters() if int(name.partition(".")[0]) in layers}
        decayed = [each for each in own.values() if each.dim() > 1]
        others = [each for each in own.values() if each.dim() == 1]
        return own, torch.optim.AdamW([{"params": decayed}, {"params": others, "weight_decay": 0.0}], foreach=False)

    def names(own: dict[str, nn.Parameter], optimizer: torch.optim.Optimizer) -> list[str]:
        by_id = {id(each): name for name, each in own.items()}
        return [by_id[id(each)] for group in optimizer.param_groups for each in group["params"]]

    own, optimizer = part(cuts[peers.rank])
    for name, each in own.items():
        each.grad = torch.full_like(each, float(order.index(name) + 1))
    optimizer.step()
    state = {
        "model": {name: each.detach() for name, each in own.items()},
        "optimizer": shards.named(optimizer.state_dict(), names(own, optimizer)),
    }
    saved(peers, state, uri, order=order)
    peers.meet("the checkpoint")
    mine, other = part(read[peers.rank])
    found = opened(uri)
    other.load_state_dict(shards.cut(found["optimizer"], list(mine)))
    shards.place(other)
    names_by_id = dict(
        zip(map(id, (p for g in other.param_groups for p in g["params"])), names(mine, other), strict=True)
    )
    moments = {names_by_id[id(each)]: value["exp_avg"] for each, value in other.state.items()}
    return {name: float(value.flatten()[0]) for name, value in moments.items()}


def save_different(peers: Any, uri: str) -> None:
    saved(peers, {"it": torch.zeros(100 + peers.rank, 100)}, uri)


# ---- trials


def train_in_shards(context: Any) -> None:
    """A user's own FSDP2; its tail waits until what was reported is being written, and then spoils the model."""
    words = context.hyperparameters
    model = laid_out(network(1), "rows", context.world_size)
    optimizer = optimizer_of(model)
    if context.checkpoint is not None:
        shards.hook(model)
        model.load_state_dict(context.checkpoint["model"])
        optimizer.load_state_dict(context.checkpoint["optimizer"])
        shards.place(optimizer)
    for epoch in context.epochs():
        with context._ours():
            stepped(model, optimizer, [epoch])
        final = epoch + 1 == words.get("final_at")
        context.report({}, {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "at": epoch}, final=final)
    if words.get("fails") == context.rank:
        raise ValueError("after the last report")
    deadline = steady.now() + 30.0
    while not any(name.startswith(f"shard-{context.rank:05d}") for name in storage.names(words["watched"])):
        assert steady.now() < deadline, "nothing is written while the function's tail runs"
        time.sleep(0.01)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()


def refuse_the_second_file() -> None:
    """The place of checkpoints takes all files but that of rank 1."""
    save_part = checkpoint.save_part

    def refusing(uri: str, name: str, data: bytes) -> File:
        if name.startswith("shard-00001"):
            raise StorageError("its disk is full")
        return save_part(uri, name, data)

    patient_storage.GIVE_UP_SECONDS = 0.0
    checkpoint.save_part = refusing


class Kept:
    """A program that is opened once in a process, and never closed: a gang's, which serves more than one run of it."""

    program: ClassVar[Any] = None

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make

    def open(self, context: WorkerContext) -> None:
        if Kept.program is None:
            Kept.program = self._make()
            Kept.program.open(context)

    def train(self, *given: Any) -> Any:
        return Kept.program.train(*given)

    def close(self) -> None:
        pass


def kept(function: Callable[[Any], None]) -> Callable[[], Kept]:
    """Makes the program of a trainer, on whichever process asks."""

    def make() -> Any:
        trainer = TorchTrainer(function, scaling=ScalingConfig(num_workers=0), report_timeout_s=60.0)
        return trainer.program({})

    return lambda: Kept(make)
