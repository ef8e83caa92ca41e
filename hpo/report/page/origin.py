"""The origin of a job's figures: search, data, versions and machine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from hpo.jobs import continuations, raises
from hpo.record import is_training, repeats_of, when
from hpo.report.data import JobData
from hpo.report.page.blocks import Facts, Table
from hpo.report.page.page import Block, Section
from hpo.text import in_bytes, money, roles_text, strategy_text, workers_text
from trainers.channels import predicts

LISTED_FILES = 3

_MACHINE = {"platform": "platform", "cpus": "processors", "memory_bytes": "memory", "gpus": "GPUs"}


def origin(data: JobData) -> Section:
    """Settings and surroundings that one answer depends on."""
    blocks: list[Block] = [Facts(list(_search(data)), "Training" if is_training(data.job) else "Search")]
    if inputs := data.job.spec.get("inputs"):
        blocks.append(_inputs(inputs))
    recorded: Mapping[str, Any] = data.job.spec.get("environment") or {}
    if versions := [(name, value) for name, value in recorded.items() if name not in _MACHINE]:
        blocks.append(Facts(versions, "Versions"))
    if recorded:
        surroundings = {**recorded, "memory_bytes": in_bytes(int(recorded.get("memory_bytes") or 0))}
        blocks.append(
            Facts([(name, surroundings[key]) for key, name in _MACHINE.items() if key in recorded], "Machine")
        )
    return Section("Environment", blocks)


def _search(data: JobData) -> Iterator[tuple[str, object]]:
    spec = data.job.spec
    scaling = spec["estimator"]["scaling"]
    once = is_training(data.job)
    if what := predicts((spec.get("inputs") or {}).get("train") or {}):
        yield "predicts", what
    if not once:
        yield "strategy", strategy_text(spec)
    yield "trainer", spec["estimator"]["trainer"]
    yield "workers", workers_text(spec)
    if resources := scaling.get("resources_per_worker"):
        yield "a worker holds", ", ".join(f"{name} {amount:g}" for name, amount in resources.items())
    elif scaling.get("use_gpu"):
        yield "a worker holds", "a GPU"
    each = f", {repeats} of each configuration" if (repeats := repeats_of(data.job)) > 1 else ""
    if not once:
        yield "trials", f"{spec['max_jobs']}, {spec['max_parallel_jobs']} at once{each}"
    yield "seed", str(spec["random_seed"])
    yield "started", when(data.job.created_at)
    if seconds := spec.get("max_runtime_in_seconds"):
        yield "time limit", f"{seconds:,} s"
    if (cost := spec.get("max_cost")) is not None:
        yield "cost limit", money(cost, (spec.get("prices") or {}).get("currency", ""))
    for text in raises(spec):
        yield "limit raised", text
    for text in continuations(spec):
        yield "resumed with", text


def _inputs(inputs: Mapping[str, Mapping[str, Any]]) -> Table:
    rows: list[list[object]] = []
    for name, channel in inputs.items():
        files = list(channel.get("files") or [])
        more = f" and {len(files) - LISTED_FILES} more" if len(files) > LISTED_FILES else ""
        origin = ", ".join(map(str, files[:LISTED_FILES])) + more or channel.get("kind", "")
        columns = channel.get("columns")
        width = len(columns) if columns else None
        rows.append([name, channel.get("rows"), width, roles_text(channel), origin, channel.get("fingerprint")])
    return Table(["data", "rows", "columns", "of them", "from", "fingerprint"], rows)
