"""A notice: what of a job it is of, its id, and its content as JSON and as mail."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any

from hpo.notices.entries import Email, Webhook
from hpo.record import JobRow, is_training, run_name
from hpo.text import first_line, masked, plain

EVENT_OF = {"Completed": "ended", "Failed": "failed", "Stopped": "stopped"}
"""The event of a job's end, by its status."""

LONGEST_REASON = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """A limit of a job by its name, the share of it that is used, and the limit itself."""

    limit: str
    share: float
    most: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """A notice to one entry.

    Args:
        id: the same whenever it is sent again, and no other notice's.
        event: what it is of.
        name: the entry's.
        entry: where it goes.
        content: what it says, as JSON has it.
    """

    id: str
    event: str
    name: str
    entry: Webhook | Email
    content: dict[str, Any] = field(default_factory=dict)

    @property
    def target(self) -> str:
        """Where it goes, in words."""
        return f"{self.name} ({self.entry.named()})"

    def body(self) -> bytes:
        """Its content as JSON."""
        return json.dumps(self.content, allow_nan=False).encode()

    def subject(self) -> str:
        """Its content in a line of plain letters."""
        budget = self.content.get("budget")
        what = f"{budget['share']:.0%} of {budget['limit']} used" if budget else self.content["status"]
        return _one_line(f"Warmband: {self.content['job']}: {what}")

    def text(self) -> str:
        """Its content as lines of text."""
        best, budget = self.content.get("best"), self.content.get("budget")
        lines = [
            f"Job: {self.content['job']} ({self.content['kind']})",
            f"Status: {self.content['status']}",
            f"Reason: {_one_line(self.content['reason'])}" if self.content["reason"] else "",
            f"Budget: {budget['share']:.0%} of {budget['limit']} {budget['most']:g} used" if budget else "",
            _one_line(f"Best: {run_name(best['trial'])}, {self.content['metric']} {best['value']}") if best else "",
            *(f"  {_one_line(f'{key}: {value}')}" for key, value in (best or {}).get("hyperparameters", {}).items()),
            f"Look with: hpo describe {self.content['job']}",
            f"Notice: {self.id}",
        ]
        return "\n".join(filter(None, lines)) + "\n"


def of_end(job: JobRow, entries: Mapping[str, Webhook | Email]) -> Iterator[Notice]:
    """The notices of how a job has ended; none while it runs.

    Args:
        job: its row.
        entries: by name.
    """
    event = EVENT_OF.get(job.status)
    if event is not None and job.ended_at is not None:
        for name, entry in entries.items():
            if event in entry.events:
                yield _notice(job, event, name, entry, repr(job.ended_at), job.ended_at)


def of_budget(job: JobRow, *, name: str, entry: Webhook | Email, budget: Budget, at: float) -> Iterator[Notice]:
    """The notice that so much of a limit is used; there is one for each limit and each value of it.

    Args:
        job: its row.
        name: the entry's.
        entry: where it goes.
        budget: the limit.
        at: unix seconds.
    """
    yield _notice(job, "budget", name, entry, f"{budget.limit} {float(budget.most)!r}", at, budget=asdict(budget))


def _notice(job: JobRow, event: str, name: str, entry: Webhook | Email, which: str, at: float, **more: Any) -> Notice:
    words = "\0".join((job.name, repr(job.created_at), event, which, name))
    notice_id = hashlib.sha256(words.encode()).hexdigest()[:32]
    best, cost = (job.summary.get(key) or {} for key in ("best", "cost"))
    content = {
        "id": notice_id,
        "event": event,
        "job": job.name,
        "kind": "training" if is_training(job) else "tuning",
        "status": job.status,
        "reason": masked(job.reason)[:LONGEST_REASON],
        "at": datetime.fromtimestamp(at, UTC),
        "metric": job.spec.get("objective_metric_name", ""),
        "best": {key: best[key] for key in ("trial", "value", "hyperparameters") if key in best} or None,
        "cost": {key: cost[key] for key in ("total", "currency") if key in cost} or None,
        "wall_seconds": job.summary.get("wall_seconds"),
        **more,
    }
    return Notice(id=notice_id, event=event, name=name, entry=entry, content=plain(content))


def _one_line(text: str) -> str:
    """The first line of a text, without letters that end one or steer a terminal."""
    return "".join(letter if letter.isprintable() else " " for letter in first_line(text))
