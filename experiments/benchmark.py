"""What the benchmarks share: promises, tables, and what is read of the machine they run on."""

from __future__ import annotations

import json
import multiprocessing
import os
import platform
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
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
    rows = [
        (
            target.promise,
            f"{'at least' if target.at_least else 'at most'} {target.limit:g} {target.unit}",
            f"{target.measured:.3g} {target.unit}",
            "[green]kept[/]" if target.kept else "[red]missed[/]",
            target.note,
        )
        for target in targets
    ]
    return table("Promises", ("", "promised", "measured", "", ""), rows)


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


def machine(*packages: str) -> dict[str, Any]:
    """What a run's figures depend on beside the code: cores, load, and the versions of these packages."""
    return {
        "cores": os.cpu_count(),
        "load_at_the_end": os.getloadavg(),
        "platform": platform.platform(),
        "python": platform.python_version(),
        **{package: version(package) for package in packages},
    }


def write(out: Path, result: Mapping[str, Any]) -> Path:
    """Writes result.json into a folder; returns where it is."""
    out.mkdir(parents=True, exist_ok=True)
    path = out / "result.json"
    path.write_text(json.dumps(result, indent=1))
    return path


def apart(work: Callable[..., Any], *arguments: Any) -> Any:
    """Runs a function in a process of its own, so that what it measures of its memory is its own."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(work, *arguments).result()
