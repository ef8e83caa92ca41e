"""Versions and program files of a job, and their differences from the job's earlier runs."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hpo.jobs.named_code import file_of, in_record
from hpo.record import JobRow, environment
from trainers.checking import some_of
from trainers.parts import parts_of
from trainers.script import ScriptTrainer, files_in

CONTENTS = "contents"
"""Key of a job's spec: digests of the files of its own code, by name."""

CONTINUED = "continued"
"""Key of a job's spec: each resume with other versions or other code, with its time as "at" and its "differences"."""

MOST_FILES = 100
"""Files with a digest of their own; more have one digest together."""
LARGEST = 4 << 20
"""Bytes of a file that counts as code or as its settings."""
_SUFFIXES = frozenset({".py", ".sh", ".yaml", ".yml", ".toml", ".cfg", ".ini"})
_VERSIONS = ("python", "warmband", "ray", "numpy", "torch", "xgboost", "xgboost_ray")


def contents_of(spec: Mapping[str, Any]) -> dict[str, str]:
    """Return digests of the files of a job's own code: programs with their folders, modules with their packages.

    Nothing is imported. Code that is not here, and functions of the script that was started, have no digest.

    Args:
        spec: of the job's row.
    """
    found: dict[str, str] = {}
    for folder, paths in _places(spec):
        digests = {str(path.relative_to(folder)): digest for path in paths if (digest := _digest(path))}
        if len(digests) > MOST_FILES:
            together = "".join(f"{name} {digest}\n" for name, digest in sorted(digests.items()))
            digests = {f"{folder.name}/": hashlib.sha256(together.encode()).hexdigest()[:32]}
        found |= digests
    return found


def differences(before: Mapping[str, Any], versions: Mapping[str, Any], contents: Mapping[str, str]) -> list[str]:
    """Return what a job's next run has otherwise than its runs before, in words.

    Args:
        before: of the job's row.
        versions: of this process, as `environment` gives them.
        contents: of the code, as `contents_of` gives them now.
    """
    had: Mapping[str, Any] = before.get("environment") or {}
    found = [
        f"{name} is {versions.get(name, 'not installed')}, and was {had.get(name, 'not installed')}"
        for name in _VERSIONS
        if had and versions.get(name) != had.get(name)
    ]
    were: Mapping[str, str] = before.get(CONTENTS) or {}
    if other := [name for name, digest in were.items() if name in contents and contents[name] != digest]:
        found.append(f"{some_of(other)} {'has' if len(other) == 1 else 'have'} another content")
    if gone := [name for name in were if name not in contents]:
        found.append(f"{some_of(gone)} {'is' if len(gone) == 1 else 'are'} gone")
    return found


def continued(job: JobRow, now: float) -> tuple[JobRow, list[str]]:
    """Return a job's row with the versions and the code of its next run, and their differences in words.

    The row is the same where nothing differs.

    Args:
        job: its row, of a job that has trials.
        now: unix seconds.
    """
    versions, contents = environment(), contents_of(job.spec)
    found = differences(job.spec, versions, contents)
    if not found:
        return job, []
    entry = {"at": now, "differences": found}
    spec = {**job.spec, "environment": versions, CONTENTS: contents, CONTINUED: [*job.spec.get(CONTINUED, []), entry]}
    return replace(job, spec=spec), found


def continuations(spec: Mapping[str, Any]) -> list[str]:
    """Return how a job went on with other versions or other code, a line each time."""
    return [
        f"{'; '.join(entry['differences'])}: since {datetime.fromtimestamp(entry['at'], UTC):%Y-%m-%d %H:%M:%S} UTC"
        for entry in spec.get(CONTINUED, [])
    ]


def warning_of(found: Sequence[str]) -> str:
    """Return the warning of a job that goes on with other versions or other code."""
    return (
        f"warning: {'; '.join(found)}: results from here on may not compare with those before; if they have to, "
        "begin another job"
    )


# ---- within


def _places(spec: Mapping[str, Any]) -> Iterator[tuple[Path, list[Path]]]:
    """Yield each folder of code with its files that count."""
    for source, program in _programs(spec.get("estimator") or {}):
        yield source, [path for path in files_in(source) if path.suffix in _SUFFIXES or path == source / program]
    for code in in_record(spec):
        module, _, name = code.name.partition(":")
        if not name or not all(part.isidentifier() for part in module.split(".")):
            continue
        origin = Path((module != "__main__" and file_of(module, sys.path)) or "")
        if origin.suffix != ".py":
            continue
        above = module.count(".") + (origin.name == "__init__.py")
        top = origin.parents[above - 1] if above else None  # A function of a package, whose modules may use each other.
        if top is not None and (top / "__init__.py").is_file():
            yield top.parent, [path for path in files_in(top) if path.suffix == ".py"]
        else:
            yield origin.parent, [origin]


def _programs(estimator: Mapping[str, Any]) -> Iterator[tuple[Path, str]]:
    """Yield the source folder and the entry point of each program that a trainer's record names."""
    options = estimator.get("options") or {}
    if estimator.get("trainer") == ScriptTrainer.__name__:
        yield Path(options["source_dir"]), options["entry_point"]
    for part in parts_of(estimator).values():
        yield from _programs(part)


def _digest(path: Path) -> str:
    """Return the digest of a file; empty where it is large or cannot be read."""
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()[:32] if path.stat().st_size <= LARGEST else ""
    except OSError:
        return ""
