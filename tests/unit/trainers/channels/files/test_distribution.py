"""Dealing that a user asks for: by file, or all rows to each; and SageMaker's manifests."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from ray.train import ScalingConfig
from sklearn.datasets import dump_svmlight_file

from hpo.job_file.channels import Files
from hpo.jobs.files.inputs import open_inputs, record_inputs
from tests.support.refusals import refuses, refuses_each
from tests.support.tables import frame, rows_of, same
from trainers import Channel, ConfigurationError, DataError, Folder, ScriptTrainer, TorchTrainer, XGBoostTrainer
from trainers.channels import interleave
from trainers.channels.files.dealing import deal_whole

SIZES = (40, 3, 17, 17, 5)
DATA = frame(sum(SIZES))
PARTS = np.split(np.arange(len(DATA)), np.cumsum(SIZES)[:-1])
SHARDED: Any = "ShardedByS3Key"
WHOLE: Any = "FullyReplicated"


def csv(folder: Path) -> str:
    for number, part in enumerate(PARTS):
        DATA.iloc[part].to_csv(folder / f"{number}.csv", index=False)
    return f"{folder}/*.csv"


def parquet(folder: Path) -> str:
    for number, part in enumerate(PARTS):
        DATA.iloc[part].to_parquet(folder / f"{number}.parquet", row_group_size=7)
    return f"{folder}/*.parquet"


def libsvm(folder: Path) -> str:
    for number, part in enumerate(PARTS):
        features = DATA.iloc[part][["x1", "x2"]].to_numpy(np.float64)
        dump_svmlight_file(features, DATA["y"].iloc[part], str(folder / f"{number}.svm"), zero_based=False)
    return str(folder)


def numbers(table: Any) -> list[int]:
    features = table.features
    dense = pd.DataFrame(features.toarray() if hasattr(features, "toarray") else features).to_numpy()
    return rows_of(type("Rows", (), {"features": dense})).tolist()


@pytest.mark.parametrize("kind", [csv, parquet, libsvm])
def test_each_file_goes_whole_to_one_rank(tmp_path: Path, kind: Callable[[Path], str]) -> None:
    channel = Channel.of(kind(tmp_path), distribution=SHARDED)
    files = [part.tolist() for part in PARTS]
    for world_size in (2, 3, 5):
        shards = [numbers(channel.read(rank, world_size)) for rank in range(world_size)]
        assert sorted(chain(*shards)) == list(range(len(DATA)))
        for shard in shards:
            own = [file for file in files if file[0] in shard]
            assert shard == [*chain(*own)], "whole files, in their order"
        assert shards == [numbers(channel.read(rank, world_size)) for rank in range(world_size)]
    assert numbers(channel.read_whole()) == list(range(len(DATA)))
    with refuses(DataError, field="ShardedByS3Key", value=5, remedy=("6", "workers", "distribution")):
        channel.look(6)
    with refuses(DataError, field="ShardedByS3Key", value=5, remedy="6"):
        channel.place(6)
    with refuses(DataError, field="ShardedByS3Key", value=1, remedy="2"):
        Channel.of(str(tmp_path / channel.describe()["files"][0]), distribution=SHARDED).look(2)


@pytest.mark.parametrize("kind", [csv, parquet, libsvm])
def test_whole_is_all_rows_on_each_rank(tmp_path: Path, kind: Callable[[Path], str]) -> None:
    channel = Channel.of(kind(tmp_path), distribution=WHOLE)
    for rank in range(3):
        assert numbers(channel.read(rank, 3)) == list(range(len(DATA)))
    placed = channel.place(3)
    assert placed.replicated
    assert numbers(placed.read_whole()) == list(range(len(DATA)))


@pytest.mark.parametrize("distribution", [SHARDED, WHOLE])
@pytest.mark.parametrize("kind", [csv, libsvm])
def test_another_process_opens_it_alike(tmp_path: Path, kind: Callable[[Path], str], distribution: Any) -> None:
    channel = Channel.of(kind(tmp_path), name="train", distribution=distribution)
    recorded = record_inputs({"train": channel}, str(tmp_path / "job"))
    assert recorded["train"]["distribution"] == distribution
    again = open_inputs(recorded)["train"]
    assert numbers(again.read(1, 3)) == numbers(channel.read(1, 3))
    assert channel.fingerprint() != Channel.of(kind(tmp_path)).fingerprint(), "workers find other rows"


@pytest.mark.parametrize("kind", ["csv", "svm"])
def test_queries_stay_whole_where_files_do(tmp_path: Path, kind: str) -> None:
    """No rank has to read another's files, whose queries have numbers of their own."""
    data = pd.DataFrame({"y": np.arange(24) % 3, "q": np.repeat(np.arange(8), 3), "x": np.arange(24.0)})
    for number, part in enumerate((data[:9], data[9:18], data[18:])):
        if kind == "csv":
            part.to_csv(tmp_path / f"{number}.csv", index=False)
        else:
            dump_svmlight_file(
                *(np.array(part[of]) for of in (["x"], "y")),
                str(tmp_path / f"{number}.svm"),
                query_id=np.array(part["q"]),
            )
    channel = Channel.of(tmp_path, distribution=SHARDED, **({"qid": "q"} if kind == "csv" else {}))
    shards = [channel.read(rank, 3) for rank in range(3)]
    assert sorted(len(shard.labels) for shard in shards) == [6, 9, 9]
    for shard in shards:
        assert shard.said["qid"].tolist() == np.repeat(np.arange(len(shard.labels) // 3), 3).tolist()


def test_files_are_balanced_and_each_rank_has_one() -> None:
    random = np.random.default_rng(0)
    for _ in range(50):
        weights = random.integers(1, 1000, random.integers(1, 30)).tolist()
        for world_size in range(1, len(weights) + 1):
            dealt = deal_whole(weights, world_size)
            assert sorted(chain(*dealt)) == list(range(len(weights)))
            loads = [sum(weights[index] for index in share) for share in dealt]
            assert min(map(len, dealt)) > 0
            assert max(loads) - min(loads) <= max(weights)


# ---- who takes it


def test_xgboost_takes_files_and_refuses_that_each_row_counts_once_a_worker(tmp_path: Path) -> None:
    path = csv(tmp_path)
    two, one = (
        XGBoostTrainer(scaling=ScalingConfig(num_workers=workers), hyperparameters={"eval_metric": "rmse"})
        for workers in (2, 1)
    )
    whole = {"train": Channel.of(path, name="train", distribution=WHOLE)}
    with refuses(
        ConfigurationError, field=("train", "distribution"), value="FullyReplicated", remedy=("2", "ShardedByS3Key")
    ):
        two.checked(whole)
    with refuses(ConfigurationError, field=("train", "distribution"), value="FullyReplicated", remedy="4"):
        one.checked(whole, workers=4)
    one.checked(whole)
    sharded = {"train": Channel.of(path, name="train", distribution=SHARDED)}
    two.checked(sharded)
    with refuses(DataError, field=("train", "ShardedByS3Key"), value=5, remedy=("8", "workers")):
        one.checked(sharded, workers=8)


def test_scripts_have_folders_for_it(tmp_path: Path) -> None:
    (tmp_path / "program.py").touch()
    script = ScriptTrainer("program.py", source_dir=str(tmp_path))
    path = csv(tmp_path)
    with refuses(
        ConfigurationError, field=("train", "distribution"), value="ShardedByS3Key", remedy=("ScriptTrainer", "Folder")
    ):
        script.checked({"train": Channel.of(path, name="train", distribution=SHARDED)})
    script.checked({"train": Channel.of(path, name="train", distribution=WHOLE)})


def test_workers_that_share_a_model_have_all_rows_once(tmp_path: Path) -> None:
    import torch

    from trainers.pytorch.data.residence import Room, held

    channel = Channel.of(csv(tmp_path), distribution=WHOLE).place(0)
    room = Room(torch.device("cpu"), None)
    assert len(held({"train": channel}, [0, 1], 4, room)["train"].labels) == len(DATA)
    sharded = Channel.of(f"{tmp_path}/*.csv", distribution=SHARDED).place(0)
    found = sum(len(held({"train": sharded}, ranks, 4, room)["train"].labels) for ranks in ([0, 1], [2, 3]))
    assert found == len(DATA)
    TorchTrainer(lambda context: None, scaling=ScalingConfig(num_workers=0)).checked(
        {"train": Channel.of(f"{tmp_path}/*.csv", distribution=WHOLE)}
    )


def test_shards_by_file_come_together() -> None:
    tables = [Channel.of(DATA.iloc[part]).read_whole() for part in PARTS]
    assert sorted(rows_of(interleave(tables)).tolist()) == list(range(len(DATA)))


def test_what_has_no_files_is_refused() -> None:
    unknown: Any = "Sharded"
    number: Any = 3
    refuses_each(
        [
            (lambda: Channel.of(DATA, distribution=SHARDED), ("distribution", SHARDED, "files")),
            (lambda: Channel.of(Folder("/nowhere"), distribution=WHOLE), ("distribution", WHOLE, "files", "Folder")),
            (lambda: Channel.of("x.csv", distribution=unknown), ("distribution", unknown, WHOLE, SHARDED)),
            (lambda: Channel.of("x.csv", distribution=number), ("distribution", number, WHOLE, SHARDED)),
            (lambda: Channel.of(Channel.of(DATA), distribution=SHARDED), ("distribution", "roles", "Channel")),
        ],
        ConfigurationError,
    )


# ---- manifests


def manifest(folder: Path, listed: Any, name: str = "rows.manifest") -> str:
    (folder / name).write_text(listed if isinstance(listed, str) else json.dumps(listed))
    return str(folder / name)


@pytest.mark.parametrize("prefix", ["{folder}/rows/", "rows/", "./rows/part-"])
def test_a_manifest_names_files(tmp_path: Path, prefix: str) -> None:
    (tmp_path / "rows").mkdir()
    for number, part in enumerate(PARTS):
        DATA.iloc[part].to_csv(tmp_path / "rows" / f"part-{number}.csv", index=False)
    names = [f"part-{number}.csv"[len("part-") if prefix.endswith("part-") else 0 :] for number in range(4)]
    path = manifest(tmp_path, [{"prefix": prefix.format(folder=tmp_path)}, *names])
    channel = Channel.of(path, target="y")
    assert rows_of(channel.read_whole()).tolist() == list(range(sum(SIZES[:4])))
    recorded = record_inputs({"train": channel}, str(tmp_path))
    Path(path).unlink()
    same(open_inputs(recorded)["train"].read_whole(), channel.read_whole())


def test_a_manifest_stands_beside_other_paths(tmp_path: Path) -> None:
    csv(tmp_path)
    path = manifest(tmp_path, [{"prefix": f"{tmp_path}/"}, "0.csv", "1.csv"])
    channel = Channel.of([path, f"{tmp_path}/4.csv"], distribution=SHARDED)
    assert len(channel.describe()["files"]) == 3
    assert len(channel.read_whole().labels) == 48


def test_what_is_no_manifest_is_refused(tmp_path: Path) -> None:
    lines = '{"source-ref": "s3://b/a.jpg", "class": 0}\n{"source-ref": "s3://b/b.jpg", "class": 1}\n'
    example = '{"prefix"'
    cases: list[tuple[Any, tuple[object, ...]]] = [
        ("", ("rows.manifest", "JSON", example)),
        (lines, ("rows.manifest", "augmented", "JSON", example)),
        ({"prefix": "a"}, ("rows.manifest", "prefix", example)),
        ([{"prefix": "a"}], ("rows.manifest", "prefix", example)),
        (["a.csv", "b.csv"], ("rows.manifest", "prefix", example)),
        ([{"prefix": "a/"}, 3], ("rows.manifest", 2, 3, example)),
        ([{"prefix": "a/"}, "b.csv", ""], ("rows.manifest", 3, "''", example)),
        ([{"prefix": "a/"}, "b.manifest"], ("rows.manifest", "a/b.manifest", "files")),
        ([{"prefix": "a/"}, "b.csv", "c.csv", "b.csv"], ("rows.manifest", "b.csv", 2, "once")),
        ([{"prefix": "a/"}, "b.csv"], ("a/b.csv", "path")),
    ]

    def opened(number: int, listed: Any) -> Channel:
        folder = tmp_path / f"case{number}"
        folder.mkdir()
        return Channel.of(manifest(folder, listed))

    refuses_each(
        [(partial(opened, number, listed), names) for number, (listed, names) in enumerate(cases)],
        (ConfigurationError, DataError),
    )
    with refuses(ConfigurationError, field="bucket/b.csv", value="credentials", remedy="AWS_ACCESS_KEY_ID") as told:
        Channel.of(manifest(tmp_path, [{"prefix": "s3://key:secret@bucket/"}, "b.csv"]))
    assert "secret" not in str(told.value)


@pytest.mark.parametrize(
    "paths", [["0.csv", "0.csv"], ["*.csv", "./0.csv"], ["", "0.csv"], ["rows.manifest", "0.csv"], ["rows.manifest"]]
)
def test_a_file_that_several_paths_stand_for_is_refused(tmp_path: Path, paths: list[str]) -> None:
    csv(tmp_path)
    manifest(tmp_path, [{"prefix": f"{tmp_path}/"}, "0.csv", "./0.csv" if len(paths) == 1 else "1.csv"])
    with refuses(DataError, field=("/0.csv", "paths"), remedy="once"):
        Channel.of([f"{tmp_path}/{path}" for path in paths])


def test_a_manifest_that_is_not_there(tmp_path: Path) -> None:
    with refuses(DataError, field="none.manifest", remedy="path"):
        Channel.of(tmp_path / "none.manifest")


def test_a_job_file_has_it_beside_a_path(tmp_path: Path) -> None:
    opened = Files(path=csv(tmp_path), distribution=SHARDED, target="y").open("train")
    assert opened.distribution == SHARDED
    assert Files(path=f"{tmp_path}/*.csv").open("train").distribution is None
    assert Files(folder=str(tmp_path)).open("train").describe()["distribution"] == WHOLE
    assert Files(folder=str(tmp_path), distribution=SHARDED).open("train").describe()["distribution"] == SHARDED
