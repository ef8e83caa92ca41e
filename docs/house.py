"""The packages of each floor from the top down, and the tables of them in docs/background/architecture.md.

`python docs/house.py docs/background/architecture.md` fills the tables from the first sentences of packages and
modules.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SCRIPTS = (
    "scale_out",
    "demo",
    "tune_distributed",
    "cluster_size",
    "why_it_broke",
    "mnist",
    "tune_network",
    "early_stopping",
    "search_quality",
    "completion",
    "search_sizes",
    "large_jobs",
    "startup",
    "one_process",
    "overhead",
    "exploits",
    "xgboost_efficiency",
    "second_backend",
    "torch_throughput",
    "streaming",
    "gpu",
    "parameter_server",
    "program_cost",
    "public_programs",
    "checkpoint_cost",
    "layout_memory",
    "external_memory",
    "one_model",
    "busy_machine",
    "spot_market",
    "store_rate",
    "serve_load",
    "console_speed",
    "results_page",
)
"""Modules of experiments/ that a user runs: none imports another."""

HOUSE = {
    "experiments": (
        *SCRIPTS,
        "programs",
        "public",
        "convergence",
        "scaling",
        "stopping",
        "external",
        "baselines",
        "workloads",
        "networks",
        "shared",
    ),
    "hpo": (
        "cli",
        "serve",
        "tuner",
        "training",
        "job_file",
        "sagemaker",
        "endpoints",
        "report",
        "export",
        "jobs",
        "forecasts",
        "trackers",
        "notices",
        "observers",
        "simulation",
        "search",
        "autotune",
        "forks",
        "strategies",
        "suggestions",
        "cost",
        "record",
        "gap",
        "ranking",
        "uncertainty",
        "estimators",
        "ranges",
        "text",
        "yaml_core",
        "own_packages",
    ),
    "trainers": (
        "several",
        "registry",
        "parameter_server",
        "ray_train",
        "script",
        "pytorch",
        "xgboost",
        "trainer",
        "result",
        "tunable",
        "gangs",
        "cluster",
        "data_check",
        "channels",
        "datasets",
        "patient_storage",
        "checkpoint",
        "storage",
        "object_stores",
        "notebook",
        "length",
        "details",
        "parts",
        "steady",
        "process",
        "archives",
        "deletion",
        "home",
        "lazy",
        "loopback",
        "metrics",
        "plain",
        "checking",
        "extras",
        "errors",
    ),
}
"""Packages and modules of each floor: each imports only from those below it."""

_BLOCK = re.compile(r"(<!-- house (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def sentence(path: Path) -> str:
    """The first sentence of a module's docstring, without its full stop."""
    doc = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return doc.partition("\n")[0].removesuffix(".")


def table(floor: str) -> str:
    """The packages of a floor and their modules, from the top down."""
    rows = ["| | what it is |", "|---|---|"]
    for name in HOUSE[floor]:
        rows += [f"| {cell} | {text} |" for cell, text in _rows(ROOT / floor / name, 0)]
    return "\n".join(rows) + "\n"


def _rows(path: Path, depth: int) -> Iterator[tuple[str, str]]:
    indent = "&emsp;" * depth
    if not path.is_dir():
        yield f"{indent}`{path.name.removesuffix('.py')}.py`", sentence(path.with_suffix(".py"))
        return
    yield f"{indent}**`{path.name}/`**", f"**{sentence(path / '__init__.py')}**"
    within = sorted(p for p in path.iterdir() if (p / "__init__.py").exists() or p.suffix == ".py")
    for entry in within:
        if entry.name != "versions" and not entry.name.startswith("__"):
            yield from _rows(entry, depth + 1)


def main(pages: Sequence[str]) -> None:
    """Fills the tables of pages.

    Args:
        pages: paths of Markdown files.
    """
    for page in map(Path, pages):
        text = page.read_text(encoding="utf-8")
        page.write_text(_BLOCK.sub(lambda block: block[1] + table(block[2]) + block[3], text), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
