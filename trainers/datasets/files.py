"""Files of named datasets: place, verification and download."""

from __future__ import annotations

import hashlib
import os
import zipfile
from collections.abc import Iterator
from pathlib import Path

from trainers.datasets.catalogue import named
from trainers.datasets.dataset import DatasetInfo
from trainers.deletion import temporary_folder
from trainers.errors import ConfigurationError, DataError
from trainers.home import home

_TIMEOUT_S = 15.0


def find(name: str, data_dir: str | Path | None = None) -> Path | None:
    """The place of a dataset: in `data_dir`, in WARMBAND_DATA's directory, or among earlier downloads.

    Returns:
        The file, or the folder where the dataset has several and all are there; None where it has none or is not found.
    """
    info = named(name)
    files = _found(info, data_dir)
    if info.inside:
        return next(iter(files), None)
    return files[0].parent if files and len(files) == len(info.files) else None


def check(name: str, data_dir: str | Path | None = None) -> list[tuple[Path, bool, str]]:
    """Verifies a dataset's files: each one, whether it is as published, and what is wrong with it if not."""
    info = named(name)
    files = _found(info, data_dir)
    folder = files[0].parent if files else _cache() / info.name
    wanted = [folder / file for file in info.files]
    if info.inside:
        wanted = files or wanted[:1]
    problems = [(path, _problem(path, info) if path in files else f"not found; {_remedy(info)}") for path in wanted]
    return [(path, not problem, problem) for path, problem in problems]


def fetch(name: str, data_dir: str | Path | None = None) -> Path:
    """Downloads a dataset into `data_dir`, or the cache, unless it is there already; what it returns is verified.

    The cache is `WARMBAND_HOME`/data, by default ~/.warmband/data.

    Returns:
        The same as `find`.

    Raises:
        DataError: it cannot be downloaded, or what comes is not what was published.
    """
    info = named(name)
    if info.url is None:
        raise ConfigurationError(f"{name} needs no download, so there is nothing to fetch: load it")
    place = find(name, data_dir)
    if place is not None:
        for path in [place] if info.inside else [place / file for file in info.files]:
            _refuse_if_changed(path, info)
        return place
    folder = (Path(data_dir) if data_dir is not None else _cache()) / info.name
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with temporary_folder(folder, prefix=".fetching-") as scratch:
            for whole in _fetched(info, folder, scratch):
                whole.replace(folder / whole.name)
    except OSError as error:
        raise DataError(f"{folder} cannot be written ({error.strerror or error}): give another data_dir") from None
    return folder / Path(info.inside[-1]).name if info.inside else folder


# ---- where they lie


def _cache() -> Path:
    return home() / "data"


def _found(info: DatasetInfo, data_dir: str | Path | None) -> list[Path]:
    """The dataset's files in the first directory that has any."""
    for folder in (data_dir, os.environ.get("WARMBAND_DATA"), _cache()):
        if not folder:
            continue
        for layout in (Path(folder).expanduser() / info.name, Path(folder).expanduser()):
            files = [layout / file for file in info.files if (layout / file).is_file()]
            if files:
                return files
    return []


# ---- whether they are as published


def _problem(path: Path, info: DatasetInfo) -> str:
    with path.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    sha256 = info.files[path.name]
    return "" if digest == sha256 else f"its SHA-256 is {digest[:12]}..., not {sha256[:12]}... as published"


def _refuse_if_changed(path: Path, info: DatasetInfo) -> None:
    problem = _problem(path, info)
    if problem:
        raise DataError(f"{path}: {problem}; delete it and fetch {info.name} again")


def _remedy(info: DatasetInfo) -> str:
    homes = " or ".join(_homes(info))
    what = homes if info.inside else f"{', '.join(info.files)} from {homes}"
    return (
        f"download {what} by hand and give its directory (--data-dir or WARMBAND_DATA), or use "
        f"the dataset {info.instead!r}, which needs no download"
    )


# ---- their download


def _homes(info: DatasetInfo) -> list[str]:
    return [*filter(None, [info.url]), *info.mirrors]


def _fetched(info: DatasetInfo, folder: Path, scratch: Path) -> Iterator[Path]:
    """Each verified file that `folder` has not yet, in `scratch`."""
    if info.inside:
        yield _from_homes(info, "", scratch)
        return
    for file in info.files:
        if (folder / file).is_file():
            _refuse_if_changed(folder / file, info)
        else:
            yield _from_homes(info, file, scratch)


def _from_homes(info: DatasetInfo, file: str, scratch: Path) -> Path:
    """One verified file, from the first home that gives it."""
    failures = []
    for url in _homes(info):
        try:
            return _from_home(info, f"{url}{file}", scratch)
        except DataError as error:
            failures.append(str(error))
    raise DataError(f"{'; '.join(failures)}: {_remedy(info)}") from None


def _from_home(info: DatasetInfo, url: str, scratch: Path) -> Path:
    """One verified file.

    An archive is rebuilt now and then, so only what it holds has sums.
    """
    import pooch
    import requests

    path = scratch / ("archive" if info.inside else url.rpartition("/")[2])
    try:
        pooch.HTTPDownloader(timeout=_TIMEOUT_S)(url, str(path), None)
    except requests.RequestException as error:
        answer = error.response.status_code if error.response is not None else type(error).__name__
        raise DataError(f"{url} cannot be downloaded ({answer})") from None
    for member in info.inside:
        try:
            path = _unpack(path, member, scratch / Path(member).name)
        except (zipfile.BadZipFile, KeyError) as error:
            raise DataError(f"{url} did not give the archive it should ({error})") from None
        _check_download(path, info, url)
    _check_download(path, info, url)
    return path


def _unpack(archive: Path, member: str, to: Path) -> Path:
    with zipfile.ZipFile(archive) as opened:
        to.write_bytes(opened.read(member))
    return to


def _check_download(path: Path, info: DatasetInfo, url: str) -> None:
    problem = _problem(path, info)
    if problem:
        raise DataError(f"{path.name} from {url}: {problem}")
