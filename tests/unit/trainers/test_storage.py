"""Checkpoint files: whole or not there, on local disks and behind URIs."""

from __future__ import annotations

import errno
import os
import socket
from pathlib import Path

import pytest

from tests.support.refusals import refuses, refuses_each
from trainers import Channel, ConfigurationError, DataError, object_stores, storage
from trainers.errors import CheckpointError, StorageError


@pytest.fixture(params=["path", "URI"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A folder that is not there yet: as a path, and as a URI that goes through pyarrow."""
    folder = str(tmp_path / "jobs" / "a-job")
    return folder if request.param == "path" else f"file://{folder}"


def test_what_is_written_is_read(place: str) -> None:
    uri = storage.join(place, "trial-000", "000030")
    storage.write(uri, b"\x00model\xff")
    assert storage.read(uri) == b"\x00model\xff"
    storage.write(uri, b"")
    assert storage.read(uri) == b""


def test_a_path_and_its_uri_are_the_same_file(tmp_path: Path) -> None:
    storage.write(f"file://{tmp_path}/one", b"1")
    storage.write(f"{tmp_path}/two", b"2")
    assert storage.read(f"{tmp_path}/one") == b"1"
    assert storage.read(f"file://{tmp_path}/two") == b"2"


def test_a_missing_file_says_which_and_why_it_may_be(place: str) -> None:
    uri = storage.join(place, "000030")
    with refuses(CheckpointError, field=uri, remedy=("folder", "node")):
        storage.read(uri)


def test_the_old_file_stays_until_the_new_one_is_whole(monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    uri = storage.join(place, "000030")
    storage.write(uri, b"old")
    seen: list[tuple[bytes, bytes]] = []
    replace = os.replace

    def look_first(draft: Path, path: Path) -> None:
        seen.append((storage.read(uri), Path(draft).read_bytes()))
        replace(draft, path)

    monkeypatch.setattr(os, "replace", look_first)
    storage.write(uri, b"new")
    assert seen == [(b"old", b"new")]
    assert storage.read(uri) == b"new"


def test_a_write_that_fails_leaves_what_was_there_and_no_draft(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = tmp_path / "000030"
    storage.write(str(path), b"old")

    def full(draft: Path, data: bytes) -> int:
        with draft.open("wb") as stream:
            stream.write(data[:1])
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(Path, "write_bytes", full)
        with refuses(DataError, field=str(path), value="No space left on device", remedy="disk"):
            storage.write(str(path), b"new")
    assert storage.read(str(path)) == b"old"
    assert [file.name for file in tmp_path.iterdir() if file.is_file()] == ["000030"]


def test_a_write_onto_a_folder_leaves_no_draft(tmp_path: Path) -> None:
    (tmp_path / "000030" / "inside").mkdir(parents=True)
    path = str(tmp_path / "000030")
    with refuses(DataError, field=path, value=os.strerror(errno.EISDIR), remedy=("file", "folder")):
        storage.write(path, b"model")
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


@pytest.mark.parametrize(
    ("base", "parts", "joined"),
    [
        ("/jobs", ("a-job", "000030"), "/jobs/a-job/000030"),
        ("/jobs/", ("a-job",), "/jobs/a-job"),
        ("s3://bucket/jobs/", ("a-job", "000030"), "s3://bucket/jobs/a-job/000030"),
        ("relative", (), "relative"),
        ("s3://bucket?region=eu-west-1", ("a-job", "000030"), "s3://bucket/a-job/000030?region=eu-west-1"),
        ("s3://bucket/jobs/?a=1&b=2", ("a-job",), "s3://bucket/jobs/a-job?a=1&b=2"),
        ("/jobs/really?", ("a-job",), "/jobs/really?/a-job"),
    ],
)
def test_join_is_for_paths_and_uris(base: str, parts: tuple[str, ...], joined: str) -> None:
    assert storage.join(base, *parts) == joined


def test_what_is_removed_is_gone_and_may_be_removed_again(place: str) -> None:
    for name in ("000001", "000003"):
        storage.write(storage.join(place, "trial", name), b"model")
    assert storage.names(storage.join(place, "trial")) == ["000001", "000003"]
    for _ in range(2):
        storage.delete(storage.join(place, "trial", "000001"))
    assert storage.names(storage.join(place, "trial")) == ["000003"]
    assert not storage.delete_if_empty(storage.join(place, "trial"))
    assert storage.names(storage.join(place, "trial")) == ["000003"]
    storage.delete(storage.join(place, "trial", "000003"))
    for _ in range(2):
        assert storage.delete_if_empty(storage.join(place, "trial"))
    assert storage.names(place) == []
    assert storage.names(storage.join(place, "never")) == []


def test_what_cannot_be_removed_says_why(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with refuses(DataError, field=str(tmp_path / "folder"), value=os.strerror(errno.EISDIR)):
        storage.delete(str(tmp_path / "folder"))
    (tmp_path / "file").touch()
    assert not storage.delete_if_empty(str(tmp_path / "file"))
    assert (tmp_path / "file").exists()


def test_a_path_that_can_be_written_is_left_as_it_was(place: str, tmp_path: Path) -> None:
    storage.check_writable(place)
    assert list(tmp_path.iterdir()) == []
    storage.write(storage.join(place, "000001"), b"model")
    storage.check_writable(place)
    assert storage.names(place) == ["000001"]


def test_a_path_under_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for path, reason in ((tmp_path / "file" / "jobs", errno.ENOTDIR), (tmp_path / "file", errno.EEXIST)):
        field = ("storage_path", str(path))
        with refuses(ConfigurationError, field=field, value=os.strerror(reason), remedy="folder"):
            storage.check_writable(str(path))


def test_a_uri_that_cannot_be_is_refused() -> None:
    refused = {
        "ftp://host/jobs": ("file://", "s3://", "gs://"),
        "s3://bucket/jobs?nonsense=1": ("nonsense", "URI"),
        "file://relative/jobs": (),
    }
    refuses_each(
        [
            (lambda uri=uri: storage.check_writable(uri), ("storage_path", uri, *names))
            for uri, names in refused.items()
        ],
        ConfigurationError,
    )
    with pytest.raises(ConfigurationError) as raised:
        storage.check_writable("ftp://host/jobs?x=1")
    assert ".warmband" not in str(raised.value), "the file that is tried out is not the user's"


def test_google_s_store_is_found_and_its_errors_are_ours() -> None:
    filesystem, path = object_stores.kept_filesystem_of("gs://anonymous@bucket/jobs/a-job?retry_limit_seconds=1")
    assert (filesystem.type_name, path) == ("gcs", "bucket/jobs/a-job")
    nowhere = "gs://anonymous@bucket/jobs?endpoint_override=127.0.0.1%3A1&scheme=http&retry_limit_seconds=1"
    with refuses(ConfigurationError, field="storage_path", value="gs://***@bucket/jobs"):
        storage.check_writable(nowhere)


def test_a_store_that_does_not_answer_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storage, "CHECK_SECONDS", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        endpoint = f"http%3A%2F%2F127.0.0.1%3A{silent.getsockname()[1]}"
        field = ("storage_path", "s3://bucket/jobs")
        with refuses(ConfigurationError, field=field, value="0 s", remedy="endpoint"):
            storage.check_writable(f"s3://bucket/jobs?region=us-east-1&endpoint_override={endpoint}")


def test_messages_hide_keys() -> None:
    assert storage.shown("s3://key:secret@bucket/a?region=x") == "s3://***@bucket/a?region=x"
    assert storage.shown("s3://key:se/cr/et@bucket/a?region=x") == "s3://***@bucket/a?region=x"
    assert storage.shown("s3://bucket/a?secret_key=abc&region=x") == "s3://bucket/a?secret_key=***&region=x"
    assert storage.shown("s3://bucket/a@b") == "s3://bucket/a@b"
    assert storage.shown("/jobs/a@b") == "/jobs/a@b"


@pytest.mark.parametrize(
    ("uri", "other"),
    [
        ("/jobs/a.b/000027.ubj", "/jobs/a.b/000013.ubj"),
        ("/jobs/a.b/000027", "/jobs/a.b/000013"),
        ("s3://bucket/jobs/27.pt?region=eu", "s3://bucket/jobs/000013.pt?region=eu"),
        ("27.pt", "000013.pt"),
        ("/jobs/a.b/000027.2.ubj", "/jobs/a.b/000013.2.ubj"),
        ("/jobs/a.b/000027.2", "/jobs/a.b/000013.2"),
    ],
)
def test_a_file_beside_another_has_its_folder_and_ending(uri: str, other: str) -> None:
    assert storage.beside(uri, "000013") == other


@pytest.mark.parametrize(
    "uri",
    [
        "s3://key:hidden@bucket/jobs?region=us-east-1",
        "s3://key:hid/hidden/den@bucket/jobs",
        "s3://:hidden@bucket",
        "s3://hidden@bucket/jobs",
        "abfss://container:hidden@account.dfs.core.windows.net/jobs",
        "s3://bucket/jobs?region=us-east-1&secret_key=hidden",
        "s3://bucket/jobs?session_token=hidden&region=us-east-1",
        "https://account.blob.core.windows.net/jobs?sig=hidden",
    ],
)
def test_credentials_in_a_place_are_refused_before_anything_is_recorded(uri: str) -> None:
    for field, refused in (
        ("storage_path", lambda: storage.check_no_credentials(uri, "storage_path")),
        ("path", lambda: Channel.of(uri + "/train.csv", name="train")),
        ("path", lambda: Channel.of(["part-1.csv", uri], name="train")),
    ):
        remedy = ("AWS_ACCESS_KEY_ID", "GOOGLE_APPLICATION_CREDENTIALS", "role")
        with refuses(ConfigurationError, field=(field, "credentials"), remedy=remedy) as no:
            refused()
        assert "hidden" not in str(no.value)


@pytest.mark.parametrize(
    "uri",
    [
        "/jobs/key:secret@bucket",
        "s3://bucket/a@b?region=us-east-1&endpoint_override=http%3A%2F%2F127.0.0.1%3A9000",
        "gs://anonymous@bucket/jobs",
        "abfss://container@account.dfs.core.windows.net/jobs",
        "hdfs://me@host:8020/jobs",
        "file:///jobs/token=1",
    ],
)
def test_places_without_a_secret_are_taken(uri: str) -> None:
    storage.check_no_credentials(uri, "storage_path")


def test_a_link_to_nothing_and_what_is_no_file_are_neither_there_nor_gone(tmp_path: Path) -> None:
    """A model may have been moved to a disk that is away: what takes its place would be written over the link."""
    (tmp_path / "link").symlink_to(tmp_path / "away" / "000009.ubj")
    os.mkfifo(tmp_path / "pipe")
    for name in ("link", "pipe"):
        with refuses(StorageError, field=str(tmp_path / name)):
            storage.size(str(tmp_path / name))
    (tmp_path / "away").mkdir()
    (tmp_path / "away" / "000009.ubj").write_bytes(b"model")
    assert storage.size(str(tmp_path / "link")) == 5
