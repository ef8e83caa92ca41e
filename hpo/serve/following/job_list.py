"""List of jobs: a line for each in memory, of which those are read again that have changed."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hpo.record import Mark, Store
from hpo.sagemaker import overviews
from hpo.serve.encoding import encoded
from hpo.serve.following.followed import more_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One job of the list.

    Args:
        mark: of the record that it was made of.
        values: as `hpo jobs --json` has it, and a little more.
        text: the same as JSON.
    """

    mark: Mark
    values: Mapping[str, Any]
    text: bytes = field(repr=False)


class JobList:
    """Every job of the record as a line. Any thread may call.

    Args:
        store: the record.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()
        self.lines: Mapping[str, Line] = {}
        """By name, the newest first; replaced as a whole."""
        self.version = 0

    def look(self) -> list[tuple[str, Any, float]]:
        """Reads the jobs that have changed.

        Returns:
            Events: jobs that are new or have changed, and the names of those that are gone.
        """
        with self._lock:
            marks = self._store.marks()
            old = self.lines
            changed = [name for name, mark in marks.items() if name not in old or old[name].mark != mark]
            gone = [name for name in old if name not in marks]
            if not changed and not gone:
                return []
            rows = self._store.jobs() if len(changed) > 50 else self._some(changed)
            made = {}
            for overview in overviews(self._store, [row for row in rows if row.name in marks]):
                values = {**overview.summary(), **more_of(overview)}
                name = overview.job.name
                made[name] = Line(mark=marks[name], values=values, text=encoded(values))
            lines = {name: made.get(name) or old[name] for name in marks if name in made or name in old}
            self.lines = dict(sorted(lines.items(), key=lambda line: (-line[1].mark.created_at, line[0])))
            self.version += 1
            if self.version == 1:
                return []
            events: list[tuple[str, Any, float]] = []
            if made:
                joined = b",".join(line.text for line in made.values())
                events.append(("jobs", b'{"jobs":[%s]}' % joined, 0.0))
            if gone:
                events.append(("gone", {"jobs": gone}, 0.0))
            return events

    def since(self, at: float) -> None:
        """Who comes back reads the list anew."""

    def _some(self, names: list[str]) -> list[Any]:
        from trainers.errors import ConfigurationError

        rows = []
        for name in names:
            try:
                rows.append(self._store.job(name))
            except ConfigurationError:
                continue  # It was deleted meanwhile.
        return rows
