"""Archives of tar that somebody made to do harm, or that are spoilt, are one error and write nothing outside."""

from __future__ import annotations

import io
import os
import tarfile
from pathlib import Path

import pytest

from tests.support.refusals import refuses
from trainers.archives import FlawedArchiveError, archive_errors, extract
from trainers.errors import CheckpointError
from trainers.ray_train.packing import unpacked
from trainers.script.folders import unpack

FILE, LINK, HARD, DEVICE, PIPE = tarfile.REGTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE


def packed(*entries: tuple[str, bytes, str], size: int = 1, mode: str = "w") -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=mode, format=tarfile.PAX_FORMAT) as archive:  # type: ignore[call-overload]
        for name, kind, target in entries:
            entry = tarfile.TarInfo(name)
            entry.type, entry.linkname, entry.size = kind, target, size if kind == FILE else 0
            archive.addfile(entry, io.BytesIO(bytes(entry.size)))
    return buffer.getvalue()


HARMFUL = {
    "above": packed(("../outside", FILE, "")),
    "a link above": packed(
        (
            "a",
            LINK,
            "../..",
        ),
        ("a/outside", FILE, ""),
    ),
    "a link to a place": packed(("a", LINK, "/etc"), ("a/outside", FILE, "")),
    "a hard link to a place": packed(("a", HARD, "/etc/passwd")),
    "a hard link to nothing": packed(("a", HARD, "nothing")),
    "links in a circle": packed(("a", LINK, "b"), ("b", LINK, "a"), ("a/b", FILE, "")),
    "a device": packed(("a", DEVICE, "")),
    "a pipe": packed(("a", PIPE, "")),
    "a long name": packed(("a" * 5000, FILE, "")),
    "a deep name": packed(("/".join("a" * 2000), FILE, "")),
    "a file as a folder": packed(("a", FILE, ""), ("a/b", FILE, "")),
    "a folder as a file": packed(("a/b", FILE, ""), ("a", FILE, "")),
    "cut": packed(("a", FILE, ""), size=5000)[:1500],
    "cut and compressed": packed(("a", FILE, ""), size=5000, mode="w:gz")[:60],
    "nothing": b"",
    "no archive": b"no archive" * 100,
}


@pytest.mark.parametrize("data", HARMFUL.values(), ids=HARMFUL)
def test_a_harmful_archive_is_one_error_that_names_the_file(data: bytes, tmp_path: Path) -> None:
    place = tmp_path / "in" / "folder"
    place.mkdir(parents=True)
    with refuses(CheckpointError, field="s3://models/worker-0.tar", remedy=("restore", "train again")) as refused:
        unpack(data, place, "s3://models/worker-0.tar")
    assert "\n" not in str(refused.value)
    with refuses(CheckpointError, field="s3://models/rank-0.tar", remedy=("restore", "train again")):
        unpacked(data, place, "s3://models/rank-0.tar")
    assert {path.name for path in tmp_path.rglob("*") if not path.is_relative_to(place)} == {"in"}


def test_an_absolute_name_is_taken_within_the_folder(tmp_path: Path) -> None:
    unpack(packed((f"{tmp_path}/outside", FILE, "")), tmp_path / "in")
    assert not (tmp_path / "outside").exists()
    assert (tmp_path / "in" / str(tmp_path).lstrip("/") / "outside").is_file()


def test_a_bomb_is_refused_before_it_is_decompressed(tmp_path: Path) -> None:
    data = packed(("a", FILE, ""), ("b", FILE, ""), size=6 << 20, mode="w:gz")
    read = io.BytesIO(data)
    with pytest.raises(FlawedArchiveError, match="more than 5 MiB"), tarfile.open(fileobj=read, mode="r:*") as archive:
        extract(archive, str(tmp_path), 5 << 20)
    assert list(tmp_path.iterdir()) == []
    with tarfile.open(fileobj=io.BytesIO(data), mode="r:*") as archive:
        extract(archive, str(tmp_path), 12 << 20)
    assert len(list(tmp_path.iterdir())) == 2


def test_a_full_disk_is_no_fault_of_the_archive() -> None:
    with pytest.raises(OSError, match="No space"), archive_errors():
        raise OSError(28, os.strerror(28))
