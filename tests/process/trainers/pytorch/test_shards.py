"""Checkpoints in shards: whatever the layout that wrote one, another reads the same bits."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from ray.train import ScalingConfig

from tests.support import shards as support
from tests.support.allreduce import only
from tests.support.networks import assignment
from tests.support.process_gang import ProcessGang, process_gang
from tests.support.refusals import mentions, refuses
from trainers import TorchTrainer, checkpoint, storage
from trainers.errors import CheckpointError, TrialError, UnsavedError
from trainers.pytorch.state import shards


@pytest.fixture(scope="module")
def four(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with process_gang(4, str(tmp_path_factory.mktemp("four"))) as started:
        yield started


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with process_gang(2, str(tmp_path_factory.mktemp("two"))) as started:
        yield started


@pytest.fixture(scope="module")
def trials(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with process_gang(2, str(tmp_path_factory.mktemp("trials"))) as started:
        yield started


@pytest.fixture
def folder(tmp_path: Path) -> str:
    """Of a trial."""
    (tmp_path / "job").mkdir()
    return str(tmp_path / "job" / "t-003")


@pytest.fixture
def uri(folder: str) -> str:
    return storage.join(folder, "000009.pt")


def of(answers: list[Any]) -> list[Any]:
    for answer in answers:
        if isinstance(answer, Exception):
            raise answer
    return answers


def same(one: Any, other: Any, at: str = "") -> None:
    """Whether two states are alike, bit for bit."""
    if isinstance(one, dict):
        assert list(one) == list(other), at
        for key in one:
            same(one[key], other[key], f"{at}/{key}")
    elif isinstance(one, list | tuple):
        assert type(one) is type(other), at
        assert len(one) == len(other), at
        for number, item in enumerate(one):
            same(item, other[number], f"{at}/{number}")
    elif isinstance(one, torch.Tensor):
        assert one.dtype == other.dtype, at
        assert torch.equal(one, other), at
    else:
        assert one == other, at


def test_what_four_workers_wrote_in_any_layout_is_read_in_any(four: ProcessGang, two: ProcessGang, folder: str) -> None:
    states = of(support.called(four, support.train_and_save, folder=folder, cuts=support.CUTS))[0]
    alone = support.go_on_alone()
    readers = [(four, ["rows", "blocks", "columns"]), (two, ["columns", "whole"]), (four, ["hybrid"]), (two, ["rows"])]
    for (cut, whole), (gang, cuts) in zip(states.items(), [*readers, (two, ["rows"])], strict=True):
        written = storage.join(folder, cut)
        checkpoint.check(written, checkpoint.manifest_of(written))
        same(shards.whole(support.opened(written)), whole)
        for before, after in of(support.called(gang, support.resume, uri=written, cuts=cuts))[0].values():
            same(before, whole)
            for name in ("model", "optimizer"):
                same(after[name], alone[name])


def test_replicas_share_what_is_written_once(four: ProcessGang, uri: str) -> None:
    sizes = [size for [size] in of(support.called(four, support.sizes_written, uri=uri, cut="hybrid"))]
    parameters = sum(parameter.nbytes for parameter in support.network(1).parameters())
    assert parameters + support.BUFFERS <= sum(sizes) <= parameters + support.BUFFERS + 64 * 40
    assert max(sizes[1:]) < parameters / 2, "the first worker has the buffers, which all have"


def test_an_object_store_takes_them_too(four: ProcessGang, two: ProcessGang, s3: str, tmp_path: Path) -> None:
    storage.check_writable(s3)
    folder = storage.join(s3, tmp_path.name, "t-003")
    whole = of(support.called(four, support.train_and_save, folder=folder, cuts=["rows"]))[0]["rows"]
    [(before, _)] = of(support.called(two, support.resume, uri=storage.join(folder, "rows"), cuts=["columns"]))[
        0
    ].values()
    same(before, whole)


def test_a_second_save_takes_the_place_of_the_first(two: ProcessGang, uri: str) -> None:
    names = of(support.called(two, support.save_twice, uri=uri))[0]
    between = names.index("|")
    first, second = names[:between], names[between + 1 :]
    assert len(first) == len(second) == 5
    assert set(first) & set(second) == {"index.json", "manifest.json", "state.pt"}
    weight = shards.whole(support.opened(uri))["model"]["0.weight"]
    assert torch.equal(weight, support.network(1)[0].weight * 2)


def test_what_an_earlier_attempt_left_is_no_part_of_it(two: ProcessGang, folder: str) -> None:
    written = storage.join(folder, "rows")
    for left in ("shard-00000-00000000", "shard-00005-00000000", f".shard-00001-00000000.{'0' * 32}"):
        checkpoint.save_part(written, left, b"of a gang that was lost")
    whole = of(support.called(two, support.train_and_save, folder=folder, cuts=["rows"]))[0]["rows"]
    assert storage.names(written) == sorted(file.name for file in checkpoint.manifest_of(written).files)
    same(shards.whole(support.opened(written)), whole)


@pytest.mark.parametrize("dies", [0, 1])
def test_a_worker_that_dies_before_it_is_sealed_leaves_no_checkpoint(tmp_path: Path, uri: str, dies: int) -> None:
    with process_gang(2, str(tmp_path)) as gang, pytest.raises((EOFError, ConnectionError, RuntimeError)):
        of(support.called(gang, support.die_before_the_seal, uri=uri, dies=dies))
    assert storage.names(uri)
    assert checkpoint.MANIFEST not in storage.names(uri)
    with refuses(CheckpointError, field="checkpoint", value="manifest.json"):
        checkpoint.manifest_of(uri)


@pytest.mark.parametrize("how", ["cut", "missing", "changed", "index"])
def test_a_damaged_file_is_named_with_its_trial(two: ProcessGang, folder: str, how: str) -> None:
    of(support.called(two, support.train_and_save, folder=folder, cuts=["rows"]))
    uri = storage.join(folder, "rows")
    manifest = checkpoint.manifest_of(uri)
    name = next(
        file.name for file in manifest.files if file.name.startswith("index" if how == "index" else "shard-00001")
    )
    path = Path(uri, name)
    raw = path.read_bytes()
    if how == "missing":
        path.unlink()
    else:
        path.write_bytes(raw[:-1] if how == "cut" else raw[:70] + bytes([raw[70] ^ 1]) + raw[71:])
    if how in ("cut", "missing", "index"):
        with refuses(CheckpointError, field=name, value="t-003"):
            support.opened(uri, manifest)
    answers = support.called(two, support.load, uri=uri)
    found = [error for error in answers if isinstance(error, CheckpointError)]
    assert found, answers
    for error in found:
        mentions(str(error), name, "t-003")


def test_stages_of_a_pipeline_are_put_together_and_cut_again(four: ProcessGang, two: ProcessGang, uri: str) -> None:
    cuts = [[0], [1], [3], [4]]
    found = of(support.called(four, support.stages, uri=uri, cuts=cuts, read=[[0, 1], [3, 4], [0, 1, 3, 4], [4, 0]]))
    order = [name for name, _ in support.network(1).named_parameters()]
    for rank, names in enumerate([("0", "1"), ("3", "4"), ("0", "1", "3", "4"), ("0", "4")]):
        assert {name.partition(".")[0] for name in found[rank]} == set(names)
        for name, moment in found[rank].items():
            assert moment == pytest.approx(0.1 * (order.index(name) + 1), rel=1e-12)
    state = shards.whole(support.opened(uri))
    one = support.network(1)
    groups = [[p for p in one.parameters() if p.dim() > 1], [p for p in one.parameters() if p.dim() == 1]]
    whole = torch.optim.AdamW([{"params": group} for group in groups])
    whole.load_state_dict(state["optimizer"])
    names_by_id = {id(parameter): name for name, parameter in one.named_parameters()}
    for parameter, moments in whole.state.items():
        place = order.index(names_by_id[id(parameter)]) + 1
        assert float(moments["exp_avg"].flatten()[0]) == pytest.approx(0.1 * place, rel=1e-12)


def test_workers_with_different_tensors_of_one_name_are_refused(two: ProcessGang, uri: str) -> None:
    for error in support.called(two, support.save_different, uri=uri):
        assert isinstance(error, TrialError)
        mentions(str(error), "checkpoint", "(100, 100)", "torch.float32", "rank 0", "rank 1")
    assert storage.names(uri) == []


def test_the_index_says_what_is_where(two: ProcessGang, folder: str) -> None:
    of(support.called(two, support.train_and_save, folder=folder, cuts=["rows"]))
    index = json.loads(Path(storage.join(folder, "rows"), "index.json").read_bytes())
    weight = index["tensors"]['["model", "0.weight"]']
    assert weight["size"] == [132, 8]
    assert weight["dtype"] == "float64"
    assert [piece[:2] for piece in weight["pieces"]] == [[[0, 0], [66, 8]], [[66, 0], [66, 8]]]


# ---- trials


def trial(folder: Path, start: int, stop: int, name: str = "trial", **words: Any) -> Any:
    order = assignment(folder, start, stop, name, **words)
    return replace(order, hyperparameters={**words, "watched": order.save_to})


def test_a_trial_in_shards_is_written_while_its_tail_runs_and_goes_on_with_the_same_bits(
    trials: ProcessGang, tmp_path: Path
) -> None:
    make = support.kept(support.train_in_shards)
    first, second = trial(tmp_path, 0, 1), trial(tmp_path, 1, 3)
    straight = trial(tmp_path, 0, 3, "straight")
    for order in (straight, first, second):
        [mine, its] = only(trials.run(make, order))
        assert mine.manifest == checkpoint.manifest_of(order.save_to)
        assert mine.manifest.is_folder
        assert its.manifest == checkpoint.UNKNOWN
    trainer = TorchTrainer(support.train_in_shards, scaling=ScalingConfig(num_workers=0))
    whole, paused = (trainer.load_model(order.save_to) for order in (straight, second))
    same(paused, whole)
    assert paused["at"] == 2
    assert float(paused["model"]["0.weight"].abs().sum()) > 0
    assert not any(isinstance(leaf, shards.Stored) for leaf in paused["model"].values())


def test_a_trial_in_shards_that_ended_early_stands_at_later_rungs_too(trials: ProcessGang, tmp_path: Path) -> None:
    make = support.kept(support.train_in_shards)
    answers = [only(trials.run(make, order))[0] for order in (trial(tmp_path, 0, 3, final_at=2), trial(tmp_path, 3, 9))]
    assert [report.step for report in answers[1].reports] == [4, 5, 6, 7, 8, 9]
    trainer = TorchTrainer(support.train_in_shards, scaling=ScalingConfig(num_workers=0))
    one, other = (trainer.trained(answer.checkpoint, manifest=answer.manifest).model() for answer in answers)
    same(one, other)


def test_a_function_that_fails_behind_its_last_report_leaves_no_checkpoint(trials: ProcessGang, tmp_path: Path) -> None:
    failed, later = trial(tmp_path, 0, 1, fails=1), trial(tmp_path, 0, 1)
    answers = trials.run(support.kept(support.train_in_shards), failed, later)
    for mine, its in answers:
        assert "after the last report" in str(mine)
        assert not isinstance(its, Exception), its
    names = storage.names(later.save_to)
    assert len([name for name in names if name.startswith("shard-")]) == 2, "the first attempt's are gone"


def test_a_file_that_cannot_be_written_is_rank_0_s_error(tmp_path: Path) -> None:
    order = replace(trial(tmp_path, 0, 1), hyperparameters={"watched": str(tmp_path)})
    (tmp_path / "shard-00000").touch()
    (tmp_path / "shard-00001").touch()
    with process_gang(2, str(tmp_path)) as gang:
        [[first], [second]] = gang.run(
            support.kept(support.train_in_shards), order, before=support.refuse_the_second_file
        )
    assert isinstance(first, UnsavedError)
    assert "its disk is full" in str(first)
    assert second.manifest == checkpoint.UNKNOWN
    assert checkpoint.MANIFEST not in storage.names(order.save_to)
