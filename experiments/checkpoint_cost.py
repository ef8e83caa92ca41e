"""What a checkpoint in shards costs: seconds that training stands still, beside torch.save and PyTorch's own shards.

    python -m experiments.checkpoint_cost [--turns 5] [--out DIR] [--quick]

A transformer of about 100 million parameters with Adam, in FSDP2's shards on two processes with gloo and one thread
each, saved in five ways by turns: here in the background, as the last report of an assignment is, and here with
training waiting for it; gathered on rank 0 and written with `torch.save`; with `torch.distributed.checkpoint.save`, and
with its `async_save`. Training stands still until the call comes back on all processes; a checkpoint is there when its
last file is. No way waits for the disk itself (PyTorch's shards have `sync_files=False`), and the first turn is not
counted.
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from experiments.shared.benchmark import Target, markdown, promised, promises, table, targets_to_json, write
from experiments.workloads.checkpoint_ways import WAYS, Network, Save, measured
from hpo.cli import errors_in_words

WORKERS, TURNS = 2, 5
LARGE = Network(width=768, layers=12, vocabulary=16_384)
SMALL = Network(width=64, layers=2, vocabulary=512)
COLUMNS = ("", "training stands still", "until it is there", "bytes")
NAMES = {
    "in the background": "here, in the background",
    "at once": "here, training waits",
    "torch.save on rank 0": "gathered, `torch.save` on rank 0",
    "dcp.save": "`torch.distributed.checkpoint.save`",
    "dcp.async_save": "its `async_save`",
}


def ratio(saves: Mapping[str, list[Save]], one: str, other: str) -> float:
    """The median, within a turn, of the seconds that training stands still for one way, by another's."""
    return statistics.median(a.still / b.still for a, b in zip(saves[one], saves[other], strict=True))


def targets(saves: Mapping[str, list[Save]]) -> list[Target]:
    """The promises, and what was measured of them."""
    pairs = (
        ("in the background", "torch.save on rank 0", 0.5),
        ("in the background", "dcp.async_save", 1.0),
        ("at once", "dcp.save", 1.0),
    )
    return [
        Target(
            promise=f"training stands still: {NAMES[one]}, by {NAMES[other]}",
            limit=limit,
            measured=ratio(saves, one, other),
            unit="x",
        )
        for one, other, limit in pairs
    ]


def rows(saves: Mapping[str, list[Save]]) -> list[tuple[str, ...]]:
    """A line for each way: the median, and the least to the most."""
    return [
        (
            NAMES[way],
            _spread([save.still for save in saves[way]]),
            _spread([save.whole for save in saves[way]]),
            f"{saves[way][0].size / 1e9:.2f} GB",
        )
        for way in WAYS
    ]


def _spread(seconds: list[float]) -> str:
    return f"{statistics.median(seconds):.2f} s ({min(seconds):.2f} to {max(seconds):.2f})"


def page_tables(result: Mapping[str, Any]) -> dict[str, str]:
    """The tables of docs/background/benchmarks.md."""
    saves = {way: [Save(**save) for save in own] for way, own in result["saves"].items()}
    return {
        "saves": markdown(COLUMNS, rows(saves)),
        "promises": promised(result["targets"]),
        "parameters": f"{result['parameters'] / 1e6:.0f} million",
    }


def main(
    turns: Annotated[int, typer.Option(min=1, help="Turns of each way.")] = TURNS,
    quick: Annotated[bool, typer.Option("--quick", help="A small network and one turn: whether it runs.")] = False,
    out: Annotated[Path, typer.Option(help="Folder for result.json.")] = Path("results/checkpoint_cost"),
) -> None:
    """Measure how long training stands still for a checkpoint in shards, in five ways."""
    console = Console(highlight=False)
    with tempfile.TemporaryDirectory(prefix="warmband-checkpoint-cost-") as scratch:
        parameters, saves = measured(SMALL if quick else LARGE, WORKERS, 1 if quick else turns, Path(scratch))
    kept = targets(saves)
    title = f"{parameters:,} parameters with Adam in shards on {WORKERS} processes"
    console.print(table(title, COLUMNS, rows(saves)), "", promises(kept))
    result = {
        "parameters": parameters,
        "workers": WORKERS,
        "saves": {way: [asdict(save) for save in own] for way, own in saves.items()},
        "targets": targets_to_json(kept),
    }
    console.print(f"written to {write(out, result)}")


if __name__ == "__main__":
    with errors_in_words():
        typer.run(main)
