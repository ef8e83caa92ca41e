"""Named datasets: the published preparation, downloads that are whole or not there, and the synthetic stand-in."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.refusals import mentions, refuses
from tests.support.trainers.datasets.datasets import CONTENT, CSV, ZIP, archive, real_data, zipped
from trainers.datasets import DATASETS, check, fetch, find, load
from trainers.errors import ConfigurationError, DataError


@real_data
def test_files_cut_short_or_changed_are_refused(tmp_path: Path) -> None:
    path = find("bank-marketing")
    assert path is not None
    assert all(ok for _, ok, _ in check("bank-marketing"))
    whole = path.read_bytes()
    header = whole[: whole.index(b"\n") + 1]
    for content, names in [
        (whole[: len(whole) // 2], ("20520", "41188", "rows")),
        (whole.replace(b"housemaid", b"astronaut"), ("astronaut", "job")),
        (header.replace(b'"age";', b""), ("21", "columns")),
        (whole[:-8], ("41187", "41188", "rows")),
        (b"", ()),
    ]:
        (tmp_path / CSV).write_bytes(content)
        with refuses(DataError, field=(CSV, *names), remedy=("fetch", "bank-marketing")):
            load("bank-marketing", data_dir=tmp_path)
        [(file, ok, problem)] = check("bank-marketing", tmp_path)
        assert (file, ok) == (tmp_path / CSV, False)
        assert "SHA-256" in problem


def test_every_dataset_says_what_it_is() -> None:
    assert set(DATASETS) == {"bank-marketing", "bank-marketing-synthetic", "mnist", "digits", "python-stdlib"}
    for name, info in DATASETS.items():
        assert info.name == name
        assert all((info.title, info.description, info.source, info.licence))
        assert (info.url is None) == (not info.files) == (info.instead is None)
        assert info.synthetic == ("synthetic" in name)


def test_unknown_names_are_refused(nowhere: Path) -> None:
    for use in (load, find, check, fetch):
        with refuses(ConfigurationError, field="dataset", value="'bank'", remedy=("'bank-marketing'", "mnist")):
            use("bank")
    assert find("bank-marketing-synthetic") is None
    assert check("bank-marketing-synthetic") == []
    with refuses(ConfigurationError, field="bank-marketing-synthetic", value="download", remedy="load"):
        fetch("bank-marketing-synthetic")


def test_find_looks_where_it_is_told_first(nowhere: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert find("bank-marketing") is None
    [(_, ok, problem)] = check("bank-marketing")
    assert not ok
    mentions(problem, "download", "--data-dir", "WARMBAND_DATA", "bank-marketing-synthetic")
    in_cache = nowhere / "bank-marketing" / CSV
    in_environment = tmp_path / "environment" / ZIP
    given = tmp_path / "given" / "bank-marketing" / CSV
    for file in (in_cache, in_environment, given):
        file.parent.mkdir(parents=True)
        file.write_text("x")
    assert find("bank-marketing") == in_cache
    monkeypatch.setenv("WARMBAND_DATA", str(in_environment.parent))
    assert find("bank-marketing") == in_environment
    assert find("bank-marketing", tmp_path / "given") == given


@pytest.fixture
def serve(home_of: Callable[..., str], monkeypatch: pytest.MonkeyPatch) -> Callable[[bytes, int], None]:
    """Publishes bytes as bank-marketing's download, of which only the first so many arrive."""
    name = "bank+marketing.zip"
    return lambda body, sent: publish(monkeypatch, url=f"{home_of({name: body}, sent)}/{name}")


def publish(monkeypatch: pytest.MonkeyPatch, *, url: str) -> None:
    """Points bank-marketing at `url`, with the sums of `archive`."""
    inner, _ = archive()
    sums = {CSV: hashlib.sha256(CONTENT).hexdigest(), ZIP: hashlib.sha256(inner).hexdigest()}
    monkeypatch.setitem(DATASETS, "bank-marketing", replace(DATASETS["bank-marketing"], url=url, files=sums))


def left_behind(folder: Path) -> list[Path]:
    """The files below a folder."""
    return [path for path in folder.rglob("*") if path.is_file()]


def test_fetch_keeps_what_it_verified(nowhere: Path, serve: Callable[[bytes, int], None]) -> None:
    _, outer = archive()
    serve(outer, len(outer))
    path = fetch("bank-marketing")
    assert path == nowhere / "bank-marketing" / CSV == find("bank-marketing")
    assert path.read_bytes() == CONTENT
    assert left_behind(nowhere) == [path]
    assert check("bank-marketing") == [(path, True, "")]

    serve(b"", 0)
    assert fetch("bank-marketing") == path
    path.write_bytes(CONTENT[:-1])
    with refuses(DataError, field=str(path), value="SHA-256", remedy=("fetch", "bank-marketing")):
        fetch("bank-marketing")


@pytest.mark.parametrize(
    ("body", "share", "found"),
    [
        (archive()[1], 0.5, "ChunkedEncodingError"),
        (archive()[1][:5000], 1.0, "archive"),
        (archive(b"something else")[1], 1.0, "SHA-256"),
        (zipped("other.zip", b""), 1.0, "archive"),
        (b"<html>moved</html>", 1.0, "archive"),
    ],
)
def test_fetch_leaves_nothing_of_a_bad_download(
    nowhere: Path, serve: Callable[[bytes, int], None], body: bytes, share: float, found: str
) -> None:
    serve(body, int(share * len(body)))
    with refuses(DataError, field="http://127.0.0.1", value=found, remedy=("--data-dir", "bank-marketing-synthetic")):
        fetch("bank-marketing")
    assert left_behind(nowhere) == []
    assert find("bank-marketing") is None


def test_without_a_network_the_way_out_is_named(nowhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    publish(monkeypatch, url="http://127.0.0.1:9/bank+marketing.zip")
    url, remedy = "http://127.0.0.1:9/bank+marketing.zip", ("--data-dir", "WARMBAND_DATA", "'bank-marketing-synthetic'")
    with refuses(DataError, field=url, remedy=remedy) as caught:
        load("bank-marketing")
    assert caught.value.__suppress_context__
    assert caught.value.__cause__ is None
    assert left_behind(nowhere) == []
