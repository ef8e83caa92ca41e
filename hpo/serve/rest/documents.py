"""Documents of one job, made of its rows in memory and of what is read of the record for them."""

from __future__ import annotations

import os
import socket
from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hpo.record import JobRow, LedgerRow, Store, TrialRow, when
from hpo.sagemaker import Snapshot
from hpo.serve.errors import RefusedError
from hpo.serve.following import FollowedJob, ledger_columns, report_columns

MOST_LOG_BYTES = 1024 * 1024


def trials_page(followed: FollowedJob, after: int, limit: int, sort: str) -> dict[str, Any]:
    """A page of a job's trials, as `hpo trials --json` has them.

    Args:
        followed: the job.
        after: the number behind which the page begins; sorted by "best", the places that are left out.
        limit: trials at most.
        sort: "number" or "best".
    """
    snapshot = followed.snapshot()
    if sort == "best":
        begin = max(0, after + 1)
        page: Sequence[TrialRow] = snapshot.ranked()[begin : begin + limit]
        last, more = begin + len(page) - 1, begin + len(page) < len(snapshot.trials)
    else:
        behind = [trial for trial in snapshot.trials if trial.number > after]
        page = behind[:limit]
        last, more = (page[-1].number if page else after), len(behind) > limit
    return {
        "trials": [trial_document(snapshot, trial) for trial in page],
        "next": last if more else None,
        "total": len(snapshot.trials),
    }


def trial_document(snapshot: Snapshot, trial: TrialRow) -> dict[str, Any]:
    """A trial, with its number beside."""
    return {"Number": trial.number, **snapshot.trial_summary(trial)}


def one_trial(followed: FollowedJob, trial_id: str) -> dict[str, Any]:
    """A trial by its name, with the command that trains it by hand, where the job's summary has that."""
    snapshot, trial = followed.trial(trial_id)
    if trial is None:
        raise RefusedError(404, "NotFound", f"job {followed.name!r} has no trial {trial_id!r}")
    return {**trial_document(snapshot, trial), "ByHand": _by_hand(snapshot.job.summary, trial_id)}


def _by_hand(summary: Mapping[str, Any], trial_id: str) -> dict[str, Any] | None:
    for name in ("best", "training"):
        found = summary.get(name) or {}
        if found.get("trial") == trial_id and found.get("command"):
            return {"Command": found["command"], "Forked": bool(found.get("forked"))}
    return None


def trial_reports(store: Store, followed: FollowedJob, trial_id: str) -> dict[str, Any]:
    """The reports of a trial, by column."""
    one_trial(followed, trial_id)
    return report_columns(store.reports(followed.name, trial_id))


def curves(store: Store, followed: FollowedJob, metric: str | None, points: int) -> dict[str, Any]:
    """The learning curves of all trials, each thinned to a number of points, its first and its last among them.

    Args:
        store: the record.
        followed: the job.
        metric: None is the objective.
        points: of a curve at most.
    """
    steps: dict[str, list[int]] = defaultdict(list)
    values: dict[str, list[float | None]] = defaultdict(list)
    for trial, step, value in store.curves(followed.name, metric):
        steps[trial].append(step)
        values[trial].append(value)
    snapshot = followed.snapshot()
    shown = [trial for trial in snapshot.trials if trial.trial_id in steps]
    return {
        "metric": metric or snapshot.job.spec["objective_metric_name"],
        "trials": [trial.trial_id for trial in shown],
        "numbers": [trial.number for trial in shown],
        "steps": [thinned(steps[trial.trial_id], points) for trial in shown],
        "values": [[_short(each) for each in thinned(values[trial.trial_id], points)] for trial in shown],
    }


def thinned(row: Sequence[Any], points: int) -> Sequence[Any]:
    """Evenly chosen places of a row, the first and the last among them."""
    if len(row) <= points:
        return row
    return [row[round(place * (len(row) - 1) / (points - 1))] for place in range(points)]


def _short(value: float | None) -> float | None:
    return value if value is None else float(f"{value:.6g}")


def ledger(store: Store, name: str, after: float) -> dict[str, Any]:
    """Billed seconds by column, for a chart over time: what ends behind a moment, neighbours of a kind as one."""
    rows = [row for row in store.ledger(name) if row.at > after]
    merged: list[LedgerRow] = []
    last: dict[str, int] = {}
    for row in rows:
        place = last.get(row.gang)
        before = None if place is None else merged[place]
        if before is not None and _same(before, row):
            both = before.worker_seconds + row.worker_seconds
            merged[last[row.gang]] = LedgerRow(
                job=row.job,
                trial_id=row.trial_id,
                gang=row.gang,
                kind=row.kind,
                worker_seconds=both,
                at=row.at,
                id=row.id,
                workers=row.workers,
            )
        else:
            last[row.gang] = len(merged)
            merged.append(row)
    return ledger_columns(merged)


def _same(before: LedgerRow, row: LedgerRow) -> bool:
    """Whether two rows of a gang are of one segment; gaps are where nobody held it."""
    if (before.trial_id, before.kind, before.workers) != (row.trial_id, row.kind, row.workers):
        return False
    return bool(row.workers) and abs(row.at - row.worker_seconds / row.workers - before.at) < 0.01


def lines(store: Store, name: str, after: str, limit: int) -> dict[str, Any]:
    """What a job's drivers said: the last lines, or those behind one."""
    rows = store.lines(name)
    if after:
        places = [place for place, row in enumerate(rows) if row.id == after]
        rows = rows[places[0] + 1 :][:limit] if places else rows[-limit:]
    else:
        rows = rows[-limit:]
    return {"lines": [{"id": row.id, "at": when(row.at), "text": row.text} for row in rows]}


def log(store: Store, job: JobRow, tail: int) -> dict[str, Any]:
    """The last lines of a driver's output, where its file is on this machine, else of what the record keeps of it."""
    file = Path(job.driver.get("log") or os.devnull)
    if job.driver.get("host") == socket.gethostname() and file.is_file():
        with file.open("rb") as stream:
            stream.seek(0, os.SEEK_END)
            stream.seek(max(0, stream.tell() - MOST_LOG_BYTES))
            text = stream.read().decode(errors="replace")
        return {"from": "file", "lines": list(deque(text.splitlines(), maxlen=tail))}
    return {"from": "record", "lines": [row.text for row in store.lines(job.name)][-tail:]}


def gangs(store: Store, job: JobRow) -> dict[str, Any]:
    """A job's gangs: their sizes, their bills by kind, what they did last, and what those do now that are held.

    A gang `does` "serves" (`serves` says which trial), "idle", "lost" (it comes back by itself), "held" (an older
    Warmband's driver says no more of it), "unknown" (the driver is silent) or "released"; `places` has the number of
    its workers by machine, and there by what each computes on.
    """
    summary = job.summary if job.status in ("InProgress", "Stopping") else {}
    held: Mapping[str, int] = summary.get("held") or {}
    now: Mapping[str, Any] = summary.get("gangs_now") or {}
    found: dict[str, dict[str, Any]] = {}
    for row in store.ledger(job.name):
        gang = found.setdefault(row.gang, {"gang": row.gang, "workers": row.workers, "seconds": {}})
        gang["seconds"][row.kind] = gang["seconds"].get(row.kind, 0.0) + row.worker_seconds
        gang |= {"last": when(row.at), "kind": row.kind, "trial": row.trial_id, "workers": row.workers}
    for name, workers in held.items():
        found.setdefault(name, {"gang": name, "workers": workers, "seconds": {}})
    for name, gang in found.items():
        told = now.get(name, {})
        does = "released" if name not in held else "unknown" if job.lost else told.get("does", "held")
        gang |= {"does": does, "serves": told.get("trial", ""), "places": told.get("places", {})}
    return {"gangs": list(found.values()), "starting": 0 if job.lost else summary.get("gangs_starting", 0)}
