"""SageMaker's ManifestFile: a list of files in JSON, whose first element is what all their names begin with."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from trainers.errors import ConfigurationError, DataError

ENDING = ".manifest"
_FORM = '[{"prefix": "s3://bucket/rows/"}, "a.csv", "b.csv"]'
_MOST_BYTES = 64 << 20


def is_manifest(path: str) -> bool:
    """Whether a path or URI is a manifest's, by its name."""
    return path.partition("?")[0].endswith(ENDING)


def files_of(path: str, filesystem: Any, inside: str) -> list[str]:
    """The paths or URIs that a manifest names.

    Args:
        path: as it was given; what stands behind its question mark goes to the files, too, of the same scheme.
        filesystem: pyarrow's, which it is in.
        inside: the path there.

    Raises:
        DataError: it is not there, or is none.
    """
    try:
        with filesystem.open_input_file(inside) as stream:
            text = bytes(stream.read(_MOST_BYTES))
    except OSError as error:
        raise DataError(f"manifest {path!r} cannot be read: {error}; check the path and your access to it") from None
    try:
        listed = json.loads(text)
    except ValueError:
        augmented = ", since it is an augmented one, a line of JSON for each row" if text.lstrip()[:1] == b"{" else ""
        raise DataError(f"manifest {path!r} is no list of files in JSON{augmented}; write {_FORM}") from None
    if not isinstance(listed, list) or len(listed) < 2 or not _is_prefix(listed[0]):
        raise DataError(f"manifest {path!r} does not begin with a prefix and a file; write {_FORM}")
    for number, name in enumerate(listed[1:], 2):
        if not isinstance(name, str) or not name:
            raise DataError(f"manifest {path!r}: element {number} is {name!r}, no name of a file; write {_FORM}")
    name, times = Counter(listed[1:]).most_common(1)[0]
    if times > 1:
        raise DataError(
            f"manifest {path!r} names {name!r} {times} times, so that its rows would count as often; name it once"
        )
    prefix = listed[0]["prefix"]
    if "://" not in prefix and "://" not in path:
        prefix = os.path.join(os.path.dirname(inside), os.path.expanduser(prefix))
    options = path.partition("?")[2] if path.partition("://")[0] == prefix.partition("://")[0] else ""
    return [f"{prefix}{name}{f'?{options}' if options else ''}" for name in listed[1:]]


def _is_prefix(first: Any) -> bool:
    return isinstance(first, dict) and list(first) == ["prefix"] and isinstance(first["prefix"], str)


def expanded(paths: Sequence[str], filesystem_of: Callable[[str], tuple[Any, str, str]]) -> list[str]:
    """Paths, with those of manifests in the place of these.

    Raises:
        ConfigurationError: a manifest names another.
    """
    found = []
    for path in paths:
        if not is_manifest(path):
            found.append(path)
            continue
        filesystem, _, inside = filesystem_of(path)
        named = files_of(path, filesystem, inside)
        if nested := next((name for name in named if is_manifest(name)), None):
            raise ConfigurationError(f"manifest {path!r} names another, {nested!r}; give files of rows")
        found += named
    return found
