"""Communication of the best trial by worker, and the profiles of trials."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from hpo.record import TrialRow
from hpo.report.data import JobData
from hpo.report.page.blocks import Column, Table
from hpo.report.page.page import Block
from hpo.text import communication_share, in_bytes, masked

SHOWN_PROFILES = 3
"""Profiles that a page has tables of; the record has all."""


def communication_tables(data: JobData) -> list[Block]:
    """The tables; none where nothing was measured."""
    return [*_workers(data), *_profiles(data)]


def _workers(data: JobData) -> Iterator[Table]:
    best = data.best
    measured: Mapping[str, Any] = (best.details.get("communication") or {}) if best is not None else {}
    if best is None or communication_share(measured) is None:
        return
    rows: list[list[object]] = []
    for rank, seconds in measured["step_seconds"].items():
        waited = measured["waiting_seconds"].get(rank, 0.0)
        share = 100 * waited / seconds if seconds else None
        size = in_bytes(measured["bytes"].get(rank, 0))
        rows.append([f"worker {rank}", measured["steps"].get(rank), size, seconds - waited, waited, share])
    columns: list[Column | str] = ["", "steps", "communicated", Column("computing, s", 2), Column("waiting, s", 2)]
    yield Table([*columns, Column("waiting, %", 1)], rows, f"Steps of {best.trial_id}, the best trial.")


def _profiles(data: JobData) -> Iterator[Table]:
    profiled = [trial for trial in data.trials if trial.details.get("profile")]
    best = data.best
    for trial in sorted(profiled, key=lambda each: (each is not best, each.number))[:SHOWN_PROFILES]:
        yield _profile(trial, trial.details["profile"])


def _profile(trial: TrialRow, profile: Mapping[str, Any]) -> Table:
    """The operators of a profile, those of communication among them."""
    whole = profile["step_seconds"]
    rows: list[list[object]] = [["all steps", whole, 100.0, None]]
    waited = profile["waiting_seconds"]
    rows.append(["of them waiting for other workers", waited, 100 * waited / whole if whole else None, None])
    for name, seconds in profile["operator_seconds"].items():
        kind = "communication" if name in profile["collectives"] else None
        rows.append([name, seconds, 100 * seconds / whole if whole else None, kind])
    caption = (
        f"{trial.trial_id}: {profile['steps']} steps of rank 0. An operator has its own time, without what it calls; "
        f"that of several threads and of the GPU adds up. The whole trace: {masked(profile['trace'])}"
    )
    return Table(
        [f"{trial.trial_id}, rank 0", Column("seconds", 4), Column("% of the steps", 1), "kind"], rows, caption
    )
