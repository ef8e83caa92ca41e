"""Tensors of a checkpoint in shards: not read before they are used, and then only what is used of them."""

from __future__ import annotations

import copy
import io
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from tests.support import shards as support
from tests.support.refusals import refuses
from trainers.errors import CheckpointError, TrialError
from trainers.patient_storage import PatientStorage
from trainers.pytorch.gradients import Alone
from trainers.pytorch.plain import plain
from trainers.pytorch.state import TorchCheckpoint, shards
from trainers.pytorch.state.shards.folder import fill

WIDE = torch.arange(12_000, dtype=torch.float64).reshape(120, 100)


class Spans(PatientStorage):
    """Takes down what is read of shards."""

    def __init__(self) -> None:
        super().__init__(given_up=lambda: True)
        self.spans: list[tuple[str, int, int]] = []

    def read_span(self, uri: str, part: str, at: int, size: int) -> bytes:
        self.spans.append((part, at, size))
        return super().read_span(uri, part, at, size)


@pytest.fixture
def place() -> Spans:
    return Spans()


@pytest.fixture
def uri(tmp_path: Path) -> str:
    (tmp_path / "job").mkdir()
    return str(tmp_path / "job" / "t-003" / "000009.pt")


def kept(state: dict[str, Any], uri: str, place: Spans) -> dict[str, Any]:
    """A state as a trial that goes on gets it."""
    manifest = support.saved(Alone(), state, uri)
    return TorchCheckpoint.opened(uri, manifest, place).state


def test_aspects_copies_and_conversions_read_nothing(uri: str, place: Spans) -> None:
    it = kept({"it": WIDE}, uri, place)["it"]
    assert isinstance(it, shards.Stored)
    assert it.shape == (120, 100)
    assert it.size(1) == 100
    assert len(it) == 120
    assert (it.dtype, it.dim(), it.numel(), it.is_floating_point()) == (torch.float64, 2, 12_000, True)
    assert it.device == torch.device("cpu")
    half = copy.deepcopy(it).to(dtype=torch.bfloat16, device=torch.device("cpu"))
    assert (type(half), half.dtype) == (shards.Stored, torch.bfloat16)
    assert place.spans == []
    assert torch.equal(half + 0, WIDE.bfloat16())
    assert len(place.spans) == 1


def test_everything_else_reads_the_whole(uri: str, place: Spans) -> None:
    it = kept({"it": WIDE}, uri, place)["it"]
    assert torch.equal(torch.stack([it, it])[1], WIDE)
    assert float(it.sum()) == float(WIDE.sum())
    assert it[3, 4] == WIDE[3, 4]
    assert torch.equal(it.to("cpu", torch.float32), WIDE.float())
    stream = io.BytesIO()
    torch.save({"it": it}, stream)
    stream.seek(0)
    assert torch.equal(torch.load(stream, weights_only=True)["it"], WIDE)
    assert len(place.spans) == 1


def test_what_is_changed_in_place_stays_changed(uri: str, place: Spans) -> None:
    it = kept({"it": WIDE}, uri, place)["it"]
    it.mul_(2)
    it[0, 0] = 7.0
    expected = WIDE * 2
    expected[0, 0] = 7.0
    assert torch.equal(it + 0, expected)
    assert torch.equal(copy.deepcopy(it), expected)
    assert torch.equal(nn.Parameter(it + 0).detach(), expected)


def test_an_optimizer_steps_with_what_it_loaded(uri: str, place: Spans) -> None:
    def made() -> tuple[nn.Parameter, torch.optim.Optimizer]:
        parameter = nn.Parameter(torch.ones(100, 100, dtype=torch.float64))
        return parameter, torch.optim.AdamW([parameter], lr=0.1)

    def step(parameter: nn.Parameter, optimizer: torch.optim.Optimizer) -> None:
        parameter.grad = torch.full_like(parameter, 0.5)
        optimizer.step()

    parameter, optimizer = made()
    step(parameter, optimizer)
    found = kept({"weight": parameter.detach(), "optimizer": optimizer.state_dict()}, uri, place)
    step(parameter, optimizer)
    for placed in (True, False):
        other, its = made()
        with torch.no_grad():
            other.copy_(found["weight"])
        its.load_state_dict(copy.deepcopy(found["optimizer"]))  # It takes `step` itself, and counts it up.
        if placed:
            shards.place(its)
            assert not any(isinstance(value, shards.Stored) for value in its.state[other].values())
        step(other, its)
        assert torch.equal(other, parameter)
        assert torch.equal(its.state[other]["exp_avg_sq"], optimizer.state[parameter]["exp_avg_sq"] + 0)


@pytest.mark.parametrize("assign", [False, True])
def test_a_model_reads_it_straight_into_its_parameters(uri: str, place: Spans, assign: bool) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(100, 100), nn.BatchNorm1d(100))
    found = kept({"model": model.state_dict()}, uri, place)["model"]
    assert found._metadata == model.state_dict()._metadata
    other = nn.Sequential(nn.Linear(100, 100), nn.BatchNorm1d(100))
    shards.hook(other)
    other.load_state_dict(found, assign=assign)
    assert all(
        torch.equal(one, its) for one, its in zip(model.state_dict().values(), other.state_dict().values(), strict=True)
    )
    assert isinstance(other[0].weight, nn.Parameter)
    copy.deepcopy(other).load_state_dict(found)
    with refuses(RuntimeError, field="0.weight"):
        nn.Sequential(nn.Linear(100, 99)).load_state_dict(found, strict=False)


def test_a_state_of_other_parts_of_a_model_too_is_no_error(uri: str, place: Spans) -> None:
    whole = nn.Sequential(nn.Linear(100, 100), nn.Linear(100, 100))
    found = kept({"model": whole.state_dict()}, uri, place)["model"]
    mine = nn.Sequential(nn.Linear(100, 100))
    shards.hook(mine, others=["1.weight", "1.bias"])
    mine.load_state_dict(found)
    assert torch.equal(mine[0].weight, whole[0].weight)
    with refuses(RuntimeError, field=("1.weight", "1.bias")):
        nn.Sequential(nn.Linear(100, 100)).load_state_dict(found)


@pytest.mark.parametrize(
    "dtype", [torch.bfloat16, torch.float16, torch.int64, torch.bool, torch.complex64, torch.uint8]
)
def test_every_type_of_number_comes_back(uri: str, place: Spans, dtype: torch.dtype) -> None:
    given = torch.randint(0, 2, (300, 120)).to(dtype)
    given = given.t()  # Not contiguous.
    found = kept({"it": given, "zero": torch.tensor(1).to(dtype), "none": torch.zeros(0, 5, dtype=dtype)}, uri, place)
    assert isinstance(found["it"], shards.Stored)
    assert torch.equal(found["it"] == given, torch.ones(120, 300, dtype=torch.bool))
    assert found["zero"].dtype == found["none"].dtype == dtype


def test_numbers_that_are_not_finite_come_back_bit_for_bit(uri: str, place: Spans) -> None:
    given = torch.full((100, 100), float("nan"))
    given[0, 0], given[0, 1], given[0, 2] = float("inf"), -0.0, 1e-45
    found = kept({"it": given}, uri, place)["it"]
    assert torch.equal((found + 0).view(torch.int32)[0, 3:], given.view(torch.int32)[0, 3:])
    assert torch.equal(found.whole().view(torch.int32), given.view(torch.int32))


def test_containers_and_keys_come_back_as_they_were(uri: str, place: Spans) -> None:
    state = {"a": {1: WIDE, "1": WIDE + 1}, "b": [(WIDE + 2, 3)], "c": {4, 5}, "d": None}
    found = shards.whole(kept(state, uri, place))
    assert torch.equal(found["a"][1], WIDE)
    assert torch.equal(found["a"]["1"], WIDE + 1)
    assert type(found["b"][0]) is tuple
    assert torch.equal(found["b"][0][0], WIDE + 2)
    assert (found["b"][0][1], found["c"], found["d"]) == (3, {4, 5}, None)


def test_what_was_never_used_is_saved_again(uri: str, place: Spans, tmp_path: Path) -> None:
    found = kept({"it": WIDE, "epoch": 1}, uri, place)
    state = plain({**found, "epoch": 2}, "checkpoint")
    assert shards.needed(state)
    later = str(tmp_path / "job" / "t-003" / "000027.pt")
    again = kept(state, later, place)
    assert again["epoch"] == 2
    assert torch.equal(again["it"] + 0, WIDE)


def test_small_pieces_are_read_together(uri: str, place: Spans) -> None:
    state = {f"layer-{number}": WIDE + number for number in range(50)}
    found = kept(state, uri, place)
    for name, given in state.items():
        assert torch.equal(found[name] + 0, given)
    assert len(place.spans) == 1
    assert place.spans[0][2] == Path(uri, place.spans[0][0]).stat().st_size


def test_pieces_that_are_not_needed_are_not_read() -> None:
    asked = []

    def piece(number: int) -> torch.Tensor:
        asked.append(number)
        return WIDE[number * 40 : (number + 1) * 40]

    target = torch.zeros(120, 100, dtype=torch.float32)
    fill(target, [((begin, 0), (40, 100)) for begin in (0, 40, 80)], piece)
    assert torch.equal(target, WIDE.float())
    assert sorted(asked) == [0, 1, 2]


def test_a_changed_byte_is_found_as_it_is_read(uri: str, place: Spans) -> None:
    found = kept({"it": WIDE, "other": WIDE + 1}, uri, place)
    [part] = [path for path in Path(uri).iterdir() if path.name.startswith("shard")]
    raw = part.read_bytes()
    part.write_bytes(raw[:-1] + bytes([raw[-1] ^ 1]))
    assert torch.equal(found["it"] + 0, WIDE)
    with refuses(CheckpointError, field=part.name, value="t-003"):
        found["other"].whole()


@pytest.mark.parametrize(
    "change",
    [
        lambda index: b"[]",
        lambda index: b"not JSON",
        lambda index: index.replace(b"float64", b"nothing"),
        lambda index: index.replace(b"[120, 100]", b"[120, 200]"),
        lambda index: index.replace(b"shard-00000", b"shard-00009"),
        lambda index: index.replace(b"[[0, 0]", b"[[-1, 0]"),
        lambda index: index.replace(b"warmband-shards-1", b"warmband-shards-0"),
    ],
)
def test_an_index_that_is_none_is_one_clear_error(uri: str, place: Spans, change: Any) -> None:
    from trainers.checkpoint import manifest_of

    kept({"it": WIDE}, uri, place)
    path = Path(uri, "index.json")
    manifest = manifest_of(uri)
    raw = change(path.read_bytes())
    with refuses(CheckpointError, field=("checkpoint", "index.json"), value="t-003"):
        shards.Folder(uri, manifest, raw, lambda *_: b"")


def test_names_have_to_fit_an_optimizer() -> None:
    optimizer = torch.optim.SGD([nn.Parameter(torch.zeros(2)), nn.Parameter(torch.zeros(3))], momentum=0.9)
    for names in (["a"], ["a", "b", "c"], ["a", "a"]):
        with refuses(TrialError, field=("optimizer", "2", "names"), value=len(names)):
            shards.named(optimizer.state_dict(), names)
    with refuses(TrialError, field=("optimizer", "checkpoint", "names")):
        shards.cut(optimizer.state_dict(), ["a"])
    cut = shards.cut(shards.named(optimizer.state_dict(), ["a", "b"]), ["b"])
    assert [group["params"] for group in cut["param_groups"]] == [[0]]
    assert [group["param_names"] for group in cut["param_groups"]] == [["b"]]
