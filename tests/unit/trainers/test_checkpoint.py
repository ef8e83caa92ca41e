"""Checkpoints of one file and of several: whole once their manifest is known, refused where a byte of them changed."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from tests.support.refusals import mentions, refuses
from tests.support.trainers.checkpoint import (
    beside_place,
    job,  # noqa: F401  # A fixture.
)
from trainers import checkpoint, storage
from trainers.checkpoint import MANIFEST, UNKNOWN, File, Manifest, sized
from trainers.errors import CheckpointError, StorageError

PARTS = {"rank-0": b"first" * 100, "rank-1": b"second" * 100}


def of_several(uri: str) -> Manifest:
    return checkpoint.seal(uri, [checkpoint.save_part(uri, name, data) for name, data in PARTS.items()])


def test_a_large_file_is_known_by_the_same(tmp_path: Path) -> None:
    (tmp_path / "job").mkdir()
    uri, data = str(tmp_path / "job" / "job-003" / "000009"), bytes(range(256)) * 8192
    manifest = checkpoint.save(uri, data)
    assert manifest.files == (File(name="000009", size=1 << 21, digest=hashlib.sha256(data).hexdigest()),)
    assert checkpoint.load(uri, manifest) == data
    with refuses(StorageError, field=str(tmp_path / "gone"), remedy="disk"):
        checkpoint.save(str(tmp_path / "gone" / "job-003" / "000009"), data)


def test_of_an_older_record_the_size_alone_is_compared(job: str) -> None:
    uri = storage.join(job, "job-003", "000009")
    checkpoint.save(uri, b"a model")
    old = sized(uri, 7)
    assert checkpoint.load(uri, old) == b"a model"
    assert checkpoint.is_there(uri, old)
    storage.write(uri, b"a mod")
    assert not checkpoint.is_there(uri, old)
    with refuses(CheckpointError, field=uri) as refused:
        checkpoint.load(uri, old)
    mentions(beside_place(refused, uri), "job-003", 5, 7)


def test_one_of_several_files_is_there_once_its_manifest_is(job: str) -> None:
    uri = storage.join(job, "job-003", "000009")
    files = [checkpoint.save_part(uri, name, data) for name, data in PARTS.items()]
    with refuses(CheckpointError, field=f"000009/{MANIFEST}"):
        checkpoint.manifest_of(uri)
    manifest = checkpoint.seal(uri, files)
    assert checkpoint.manifest_of(uri) == manifest == Manifest.from_json(json.loads(json.dumps(manifest.to_json())))
    assert checkpoint.is_there(uri, manifest)
    assert {part: checkpoint.load(uri, manifest, part) for part in manifest.parts} == PARTS
    assert storage.names(uri) == sorted([MANIFEST, *PARTS])
    assert manifest.size == 1100 + (storage.size(storage.join(uri, MANIFEST)) or 0)
    checkpoint.check(uri, manifest)


@pytest.mark.parametrize("name", ["rank-1", MANIFEST])
def test_a_part_that_is_cut_or_gone_is_seen_and_one_that_changed_is_named(job: str, name: str) -> None:
    uri = storage.join(job, "job-003", "000009")
    manifest, part = of_several(uri), storage.join(uri, name)
    raw = storage.read(part)
    storage.write(part, raw[:-1])
    assert not checkpoint.is_there(uri, manifest)
    storage.delete(part)
    assert not checkpoint.is_there(uri, manifest)
    storage.write(part, bytes(len(raw)))
    if name == MANIFEST:
        with refuses(CheckpointError, field=f"000009/{MANIFEST}") as refused:
            checkpoint.manifest_of(uri)
        mentions(beside_place(refused, part), "manifest")
    else:
        assert checkpoint.load(uri, manifest, "rank-0") == PARTS["rank-0"]
        with refuses(CheckpointError, field="000009/rank-1") as refused:
            checkpoint.check(uri, manifest)
        mentions(beside_place(refused, part), "job-003")


def test_what_earlier_workers_left_in_its_folder_goes_when_it_is_sealed(job: str) -> None:
    uri = storage.join(job, "job-003", "000009")
    for left in ("rank-2", f".rank-0.{'0' * 32}"):
        checkpoint.save_part(uri, left, b"of a gang of three that was lost")
    of_several(uri)
    assert storage.names(uri) == sorted([MANIFEST, *PARTS])


def test_a_removal_that_breaks_off_leaves_nothing_that_looks_whole(job: str, monkeypatch: pytest.MonkeyPatch) -> None:
    uri = storage.join(job, "job-003", "000009")
    manifest = of_several(uri)

    def dies(uri: str) -> None:
        raise KeyboardInterrupt

    delete = storage.delete
    with monkeypatch.context() as broken:
        broken.setattr(storage, "delete", lambda uri: delete(uri) if MANIFEST in uri else dies(uri))
        with pytest.raises(KeyboardInterrupt):
            checkpoint.remove(uri)
    assert storage.names(uri) == sorted(PARTS)
    assert not checkpoint.is_there(uri, manifest)
    with refuses(CheckpointError, field=f"000009/{MANIFEST}"):
        checkpoint.manifest_of(uri)
    for _ in range(2):
        checkpoint.remove(uri)
        assert storage.names(uri) == []


def test_a_part_makes_no_folder_above_its_trial_s(tmp_path: Path) -> None:
    uri = str(tmp_path / "job" / "job-003" / "000009")
    with refuses(StorageError, field=str(tmp_path / "job"), remedy="disk"):
        checkpoint.save_part(uri, "rank-0", b"a part")
    assert not (tmp_path / "job").exists()


def test_spans_of_a_part_are_read_alone(job: str) -> None:
    uri = storage.join(job, "job-003", "000009")
    assert checkpoint.looked_up(uri) == UNKNOWN
    manifest = of_several(uri)
    assert checkpoint.looked_up(uri) == manifest
    assert checkpoint.load_span(uri, "rank-1", 3, 9) == (PARTS["rank-1"])[3:12]
    assert checkpoint.load_span(uri, "rank-1", 600, 0) == b""
    for at, size in ((595, 6), (700, 1)):
        with refuses(CheckpointError, field="rank-1") as refused:
            checkpoint.load_span(uri, "rank-1", at, size)
        mentions(beside_place(refused, storage.join(uri, "rank-1")), "job-003", at + size)
    with refuses(CheckpointError, field="rank-2"):
        checkpoint.load_span(uri, "rank-2", 0, 1)


@pytest.mark.parametrize("name", ["rank-1", MANIFEST])
def test_a_file_of_another_size_is_named_without_being_read(job: str, name: str) -> None:
    uri = storage.join(job, "job-003", "000009")
    manifest, part = of_several(uri), storage.join(uri, name)
    checkpoint.check_sizes(uri, manifest)
    checkpoint.check_sizes(uri, UNKNOWN)
    raw = storage.read(part)
    storage.write(part, raw[:-1])
    with refuses(CheckpointError, field=name) as refused:
        checkpoint.check_sizes(uri, manifest)
    mentions(beside_place(refused, part), "job-003", len(raw) - 1, len(raw))
    storage.delete(part)
    with refuses(CheckpointError, field=name) as refused:
        checkpoint.check_sizes(uri, manifest)
    mentions(beside_place(refused, part), "job-003")
