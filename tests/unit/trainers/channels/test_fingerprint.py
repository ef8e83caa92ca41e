"""The same rows have the same fingerprint, and other rows another."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from tests.support.refusals import refuses
from tests.support.tables import frame, write
from trainers.channels import Channel, fingerprint
from trainers.channels.files import files
from trainers.errors import DataError


def test_the_same_rows_have_the_same_fingerprint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = frame(50)
    channels = write(data, tmp_path)
    digests = {name: channel.fingerprint() for name, channel in channels.items()}
    in_memory = {digests[name] for name in ("pandas", "numpy", "pair of arrays", "pair of frames")}
    assert len(in_memory) == 1
    assert len(set(digests.values())) == 1 + 4, "CSV with and without a header, with semicolons, and Parquet"
    (tmp_path / "copy").mkdir()
    assert digests == {name: channel.fingerprint() for name, channel in write(data, tmp_path / "copy").items()}
    for row, column in ((49, "x2"), (0, "y")):
        other = data.copy()
        other.loc[row, column] += 1
        changed = write(other, tmp_path)
        assert not {channel.fingerprint() for channel in changed.values()} & set(digests.values())
    # Large ones: a row in so many and every label, or what the file system says.
    monkeypatch.setattr(fingerprint, "MOST_BYTES", 120)
    monkeypatch.setattr(files, "QUICK_BYTES", 10)
    large = {name: channel.fingerprint() for name, channel in write(data, tmp_path / "copy").items()}
    assert not set(large.values()) & set(digests.values())
    other = data.copy()
    other.loc[49, "y"] += 1
    assert not {channel.fingerprint() for channel in write(other, tmp_path).values()} & set(large.values())


def test_categories_are_in_the_fingerprint() -> None:
    one = frame(8).assign(kind=pd.Categorical(["a", "b"] * 4))
    other = one.assign(kind=pd.Categorical(["a", "b"] * 3 + ["b", "a"]))
    digests = [Channel.of(data, target="y").fingerprint() for data in (one, one.copy(), other)]
    assert digests[0] == digests[1] != digests[2]


def test_the_fingerprint_of_a_file_that_is_gone_says_so(tmp_path: Path) -> None:
    channel = write(frame(5), tmp_path)["csv with header"]
    (tmp_path / "headed.csv").unlink()
    with refuses(DataError, field="headed.csv", value="Errno 2"):
        channel.fingerprint()
