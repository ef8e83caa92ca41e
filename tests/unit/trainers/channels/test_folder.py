"""Folders of files as channels: how they are dealt out, listed, digested and laid out on a disk."""

from __future__ import annotations

import os
import socket
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from tests.support.folders import filled, laid_out, opened
from tests.support.properties import examples
from tests.support.refusals import refuses, refuses_each
from trainers import Channel, ConfigurationError, DataError, Folder, ScalingConfig, ScriptTrainer, XGBoostTrainer
from trainers.channels import PlacedFolder, open_channels
from trainers.channels.folder.sharing import dealt

SHARDED: Any = "ShardedByS3Key"


FILES = st.dictionaries(
    st.tuples(st.sampled_from(["", "cats/", "dogs/", "dogs/small/"]), st.integers(0, 10_000)).map(
        lambda parts: f"{parts[0]}{parts[1]}"
    ),
    st.integers(0, 10**9),
    min_size=1,
    max_size=60,
)


@given(files=FILES, world_size=st.integers(1, 9))
def test_each_file_goes_to_one_worker_in_balance_of_number_and_size(files: dict[str, int], world_size: int) -> None:
    names, sizes = list(files), list(files.values())
    shares = dealt(names, sizes, world_size)
    assert sorted(file for share in shares for file in share) == list(range(len(names)))
    counts = [len(share) for share in shares]
    assert max(counts) - min(counts) <= 1
    loads = [sum(sizes[file] for file in share) for share in shares]
    assert max(loads) - min(loads) <= max(sizes)
    of_folder = Counter(name.rpartition("/")[0] for name in names)
    for folder in (each for each, count in of_folder.items() if count >= 2 * world_size - 1):
        assert all(any(names[file].rpartition("/")[0] == folder for file in share) for share in shares)


@given(files=FILES, world_size=st.integers(1, 9), order=st.randoms())
def test_the_order_of_a_listing_deals_nothing_otherwise(files: dict[str, int], world_size: int, order: Any) -> None:
    def parts(listed: dict[str, int]) -> list[list[str]]:
        names = list(listed)
        return [[names[file] for file in share] for share in dealt(names, list(listed.values()), world_size)]

    shuffled = list(files.items())
    order.shuffle(shuffled)
    assert parts(files) == parts(dict(shuffled))


def test_parts_of_a_folder_are_all_of_it_with_nested_names(tmp_path: Path) -> None:
    names = ["a b.txt", "ü/ñ 日本.txt", "ü/x/y.txt", ".hidden", "empty", "k/%20.txt", "quo'te\".txt"]
    files = {name: name * (number + 1) if name != "empty" else "" for number, name in enumerate(names)}
    folder = filled(tmp_path / "my images", files)
    parts = laid_out(folder, tmp_path / "laid", 3)
    assert {name: text for part in parts for name, text in part.items()} == files
    assert sum(map(len, parts)) == len(files)
    assert parts == laid_out(folder, tmp_path / "again", 3)
    for rank in range(3):
        assert (tmp_path / "laid" / str(rank) / "ü" / "x").is_dir(), "a class without a file here is one all the same"


@settings(max_examples=examples(20), deadline=None)
@given(
    names=st.lists(
        st.text(st.characters(exclude_characters="/\0", exclude_categories=["Cs"]), min_size=1, max_size=20).filter(
            lambda name: name not in (".", "..") and len(name.encode()) < 200
        ),
        min_size=2,
        max_size=9,
        unique=True,
    )
)
def test_any_name_that_a_disk_takes_is_dealt_out(names: list[str], tmp_path_factory: pytest.TempPathFactory) -> None:
    folder, to = tmp_path_factory.mktemp("data"), tmp_path_factory.mktemp("laid")
    for name in names:
        (folder / name).write_bytes(name.encode())
    parts = laid_out(folder, to, 2)
    found = [path for path in to.rglob("*") if path.is_file()]
    assert sorted(path.read_bytes() for path in found) == sorted(name.encode() for name in names)
    assert sum(map(len, parts)) == len(names)


def test_a_whole_folder_is_read_in_place(tmp_path: Path) -> None:
    folder = filled(tmp_path / "images", {"a.txt": "a"})
    for given_ in (folder, str(folder), f"file://{folder}", os.path.relpath(folder)):
        placed = opened(given_).place(2).source
        assert isinstance(placed, PlacedFolder)
        assert placed.in_place
        assert placed.where == str(folder)
        assert placed.names == ()
        placed.lay_out(tmp_path / "laid", 0, 2)
    assert not (tmp_path / "laid").exists()
    folder.rename(tmp_path / "away")
    with refuses(DataError, field=str(folder), remedy="disk"):
        placed.lay_out(tmp_path / "laid", 0, 2)


def test_links_are_followed_and_those_to_nowhere_or_back_refused(tmp_path: Path) -> None:
    elsewhere = filled(tmp_path / "elsewhere", {"b.txt": "b", "more/c.txt": "c"})
    folder = filled(tmp_path / "images", {"a.txt": "a"})
    (folder / "linked").symlink_to(elsewhere)
    (folder / "twice").symlink_to(elsewhere)
    (folder / "b.txt").symlink_to(elsewhere / "b.txt")
    (tmp_path / "link to all").symlink_to(folder)
    parts = laid_out(tmp_path / "link to all", tmp_path / "laid", 2)
    files = {"a.txt": "a", "b.txt": "b"} | {
        f"{top}/{name}": name[-5] for top in ("linked", "twice") for name in ("b.txt", "more/c.txt")
    }
    assert parts[0] | parts[1] == files
    (folder / "gone").symlink_to(tmp_path / "nowhere")
    with refuses(DataError, field=("'train'", f"{folder}/gone"), value="link"):
        opened(folder)
    (folder / "gone").unlink()
    (folder / "linked" / "more" / "back").symlink_to(folder)
    with refuses(DataError, field="more/back", value="link"):
        opened(folder)


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    folder = filled(tmp_path / "images", {"a.txt": "a"})
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(str(folder / "socket"))
        with refuses(DataError, field=f"{folder}/socket", value="folder", remedy="channel's"):
            opened(folder)


def test_a_folder_that_is_none_says_so(tmp_path: Path) -> None:
    filled(tmp_path / "images", {"a.txt": "a"})
    (tmp_path / "empty" / "within").mkdir(parents=True)
    refuses_each(
        [
            (lambda: opened(tmp_path / "imges"), ("'train'", f"{tmp_path}/imges", f"{tmp_path}/images")),
            (lambda: opened(tmp_path / "images/a.txt"), ("images/a.txt", "file", "Folder")),
            (lambda: opened(tmp_path / "empty"), (f"{tmp_path}/empty", "file", "path")),
            (lambda: opened(tmp_path / "no such place"), (f"{tmp_path}/no such place", "path")),
        ],
        DataError,
    )


def test_what_is_no_folder_is_refused() -> None:
    wrong: Any = {"number": 3, "unknown": "Sharded", "none": None}
    refuses_each(
        [
            (lambda: Folder(""), ("Folder", "path", "''", "URI")),
            (lambda: Folder(wrong["number"]), ("Folder", "path", 3, "URI")),
            (lambda: Folder("a\0b"), ("Folder", "path", r"a\x00b", "URI")),
            (lambda: Folder("x", wrong["unknown"]), ("distribution", "Sharded", "FullyReplicated", "ShardedByS3Key")),
            (lambda: Folder("x", wrong["none"]), ("distribution", None, "FullyReplicated", "ShardedByS3Key")),
        ],
        ConfigurationError,
    )


def test_options_of_rows_are_none_of_a_folder(tmp_path: Path) -> None:
    folder = Folder(filled(tmp_path, {"a.txt": "a"}))
    with refuses(ConfigurationError, field=("'data'", "target", "header", "delimiter"), remedy="Folder"):
        Channel.of(folder, target="y")
    with refuses(ConfigurationError, field=(str(tmp_path), "folder", "rows"), remedy=(".csv", ".parquet")):
        Channel.of(folder).read_whole()


def test_credentials_in_a_uri_are_refused_and_hidden() -> None:
    with refuses(ConfigurationError, field="bucket/images", value="credentials", remedy="AWS_ACCESS_KEY_ID") as refused:
        opened("s3://key:hidden@bucket/images")
    assert "hidden" not in str(refused.value)


def test_fewer_files_than_workers_are_refused_where_they_are_dealt_out(tmp_path: Path) -> None:
    folder = filled(tmp_path / "images", {"a.txt": "a"})
    (tmp_path / "train.py").touch()
    trainer = ScriptTrainer("train.py", source_dir=tmp_path, scaling=ScalingConfig(num_workers=2))
    field, remedy = ("'train'", str(folder), "ShardedByS3Key"), ("2", "workers", "FullyReplicated")
    with refuses(DataError, field=field, value=1, remedy=remedy):
        trainer.checked(open_channels({"train": Folder(folder, "ShardedByS3Key")}))
    with refuses(DataError, field=field, value=1, remedy=remedy):
        opened(folder, SHARDED).place(2)
    trainer.checked(open_channels({"images": Folder(folder)}, train=False))


def test_who_reads_rows_refuses_a_folder(tmp_path: Path) -> None:
    folder = filled(tmp_path / "images", {"a.txt": "a"})
    trainer = XGBoostTrainer(hyperparameters={"objective": "binary:logistic", "eval_metric": "auc", "num_round": 1})
    with refuses(
        ConfigurationError,
        field=("'train'", "Folder", str(folder), "XGBoostTrainer"),
        remedy=(".csv", ".parquet", "ScriptTrainer"),
    ):
        trainer.fit({"train": Folder(folder)})


def test_a_file_that_goes_or_changes_before_it_is_dealt_out_is_named(tmp_path: Path) -> None:
    folder = filled(tmp_path / "images", {"a.txt": "a", "b.txt": "bb"})
    placed = opened(folder, SHARDED).place(1).source
    assert isinstance(placed, PlacedFolder)
    (folder / "b.txt").write_text("b")
    with refuses(DataError, field=f"{folder}/b.txt", value=1, remedy="2"):
        placed.lay_out(tmp_path / "one", 0, 1)
    (folder / "b.txt").unlink()
    with refuses(DataError, field=f"{folder}/b.txt", value="2 bytes"):
        placed.lay_out(tmp_path / "two", 0, 1)


def test_a_fingerprint_is_of_names_sizes_and_times(tmp_path: Path) -> None:
    folder = filled(tmp_path / "images", {"a.txt": "a", "x/b.txt": "bb"})
    before = opened(folder).fingerprint()
    assert opened(folder).fingerprint() == before
    assert opened(folder, SHARDED).fingerprint() != before
    folder.rename(tmp_path / "moved")
    assert opened(tmp_path / "moved").fingerprint() == before
    about = os.stat(tmp_path / "moved" / "a.txt")
    (tmp_path / "moved" / "a.txt").write_text("b")
    assert opened(tmp_path / "moved").fingerprint() != before
    os.utime(tmp_path / "moved" / "a.txt", ns=(about.st_atime_ns, about.st_mtime_ns))
    assert opened(tmp_path / "moved").fingerprint() == before, "what is in files is not read"
    (tmp_path / "moved" / "x").rename(tmp_path / "moved" / "y")
    assert opened(tmp_path / "moved").fingerprint() != before
