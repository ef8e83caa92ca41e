"""List of jobs: a line for each in memory, of which those are read again that have changed."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from hpo.record import JobRow, Mark, Store, is_away
from hpo.sagemaker import MALFORMED, overviews
from hpo.serve.encoding import encoded
from hpo.serve.following.followed import more_of
from trainers.errors import NoJobError

_log = logging.getLogger("warmband.serve")


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
        self.malformed: Mapping[str, Mark] = {}
        """Jobs whose rows cannot be read, by name; replaced as a whole."""
        self.version = 0

    def look(self) -> list[tuple[str, Any, float]]:
        """Reads the jobs that have changed.

        Returns:
            Events: jobs that are new or have changed, and the names of those that are gone.
        """
        with self._lock:
            marks = self._store.marks()
            old = self.lines
            known = {**self.malformed, **{name: line.mark for name, line in old.items()}}
            changed = [name for name, mark in marks.items() if known.get(name) != mark]
            gone = [name for name in known if name not in marks]
            if not changed and not gone:
                return []
            made, malformed = self._made(marks, changed)
            self.malformed = {
                **{name: mark for name, mark in self.malformed.items() if name in marks and name not in made},
                **malformed,
            }
            lines = {
                name: made.get(name) or old[name]
                for name in marks
                if name in made or (name in old and name not in malformed)
            }
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

    def _made(self, marks: Mapping[str, Mark], names: list[str]) -> tuple[dict[str, Line], dict[str, Mark]]:
        """Lines of jobs, and the marks of those whose rows are malformed: each of these is read by itself.

        Raises:
            WarmbandError: the database is away.
        """
        try:
            rows = self._store.jobs() if len(names) > 50 else self._some(names)
            return self._lines(marks, [row for row in rows if row.name in marks]), {}
        except MALFORMED as error:
            if is_away(error):
                raise
        made: dict[str, Line] = {}
        malformed: dict[str, Mark] = {}
        for name in names:
            try:
                made |= self._lines(marks, self._some([name]))
            except MALFORMED as error:
                if is_away(error):
                    raise
                _log.warning("the row of job %r is malformed: %s: %s", name, type(error).__name__, error)
                malformed[name] = marks[name]
        return made, malformed

    def _lines(self, marks: Mapping[str, Mark], rows: list[JobRow]) -> dict[str, Line]:
        made = {}
        for overview in overviews(self._store, rows):
            values = {**overview.summary(), **more_of(overview)}
            name = overview.job.name
            made[name] = Line(mark=marks[name], values=values, text=encoded(values))
        return made

    def _some(self, names: list[str]) -> list[JobRow]:
        rows = []
        for name in names:
            with suppress(NoJobError):  # It was deleted meanwhile.
                rows.append(self._store.job(name))
        return rows
