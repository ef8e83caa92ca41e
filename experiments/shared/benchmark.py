"""Promises, tables and result files of benchmarks, with the machine's facts."""

from __future__ import annotations

import json
import math
import multiprocessing
import os
import platform
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rich.table import Table


@dataclass(frozen=True, kw_only=True)
class Target:
    """A promise: `measured` is at most `limit`, or at least where `at_least` says so."""

    promise: str
    limit: float
    measured: float
    unit: str = "s"
    note: str = ""
    at_least: bool = False

    @property
    def kept(self) -> bool:
        """Whether it was kept in this run."""
        return self.measured >= self.limit if self.at_least else self.measured <= self.limit


def promises(targets: Iterable[Target]) -> Table:
    """What was promised, and what was measured of it."""
    rows = _promised(targets_to_json(targets), kept="[green]kept[/]", missed="[red]missed[/]")
    return table("Promises", PROMISES, rows)


def table(title: str, columns: Iterable[str], rows: Iterable[tuple[str, ...]]) -> Table:
    """A plain table; numbers to the right of their names."""
    made = Table(title=title, title_justify="left", box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for column in columns:
        made.add_column(column)
    for row in rows:
        made.add_row(*row)
    return made


def targets_to_json(targets: Iterable[Target]) -> list[dict[str, Any]]:
    """Promises for result.json."""
    return [{**asdict(target), "kept": target.kept} for target in targets]


def markdown(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table as the pages of docs/ hold it."""
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join("|" + "|".join(f" {cell} " if cell else " " for cell in line) + "|" for line in lines)


def promised(targets: Iterable[Mapping[str, Any]]) -> str:
    """The promises of a result.json, kept or missed, as the pages of docs/ hold them."""
    return markdown(PROMISES, _promised(targets, kept="kept", missed="**missed**"))


_NUMBERS = re.compile(r"\[[\s\d.,e+-]+\]")
"""Lists of numbers in indented JSON, which stand in one line each."""


def write(out: Path, result: Mapping[str, Any]) -> Path:
    """Writes result.json: what was measured, and the command, the date, the machine and the versions.

    Args:
        out: the folder; it is made where it is not there.
        result: all that was measured, as JSON takes it; what is not finite becomes null.

    Returns:
        Where it is.
    """
    out.mkdir(parents=True, exist_ok=True)
    path = out / "result.json"
    whole = {"command": _command(), "date": datetime.now(UTC).date().isoformat(), "machine": _machine(), **result}
    text = json.dumps(_plain(whole), indent=1, allow_nan=False)
    path.write_text(_NUMBERS.sub(lambda numbers: " ".join(numbers[0].split()), text) + "\n")
    return path


def apart(work: Callable[..., Any], *arguments: Any) -> Any:
    """Runs a function in a process of its own, so that what it measures of its memory is its own."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(work, *arguments).result()


def _promised(targets: Iterable[Mapping[str, Any]], *, kept: str, missed: str) -> list[tuple[str, ...]]:
    return [
        (
            target["promise"],
            f"{'at least' if target['at_least'] else 'at most'} {target['limit']:g} {target['unit']}".rstrip(),
            _figure(target["measured"], target["unit"]),
            kept if target["kept"] else missed,
            target["note"],
        )
        for target in targets
    ]


def _figure(value: float | None, unit: str) -> str:
    """What was measured, as people read it; result.json has null where it was no finite number."""
    if value is None or not math.isfinite(value):
        return "no figure"
    return f"{value:,.0f} {unit}".rstrip() if abs(value) >= 1000 else f"{value:.3g} {unit}".rstrip()


def _command() -> str:
    """The command that measures it again: without where data and the result lie here, and a database's address."""
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    said, given = [f"python -m {spec.name if spec else 'experiments'}"], iter(sys.argv[1:])
    for word in given:
        if word in _PLACES:
            next(given, None)
        elif word.partition("=")[0] not in _PLACES:
            said.append(re.sub("://.*", "://...", word))
    return " ".join(said)


def _machine() -> dict[str, Any]:
    """What a run's figures depend on beside the code: cores, memory, load, and versions."""
    return {
        "cores": os.cpu_count(),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9, 1),
        "load_at_the_end": os.getloadavg(),
        "platform": platform.platform(),
        "python": platform.python_version(),
        **{package: version(package) for package in _PACKAGES},
    }


def _plain(value: Any) -> Any:
    """JSON has no NaN: what is not finite becomes null."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


PROMISES = ("", "promised", "measured", "", "")
_PLACES = ("--out", "--data-dir", "--bench", "--sources", "--env")
_PACKAGES = ("ray", "torch", "xgboost", "numpy", "optuna", "sqlalchemy")
