"""Sharing: what several trials have in common is trained by one of them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from hpo.forks import Origin
from hpo.search.trial import Search, TrialRun
from trainers.checkpoint import Manifest, trial_of
from trainers.gangs import Report, Segment, Served, merged


@dataclass(slots=True, kw_only=True)
class _Line:
    """How a trial's model came about.

    Args:
        before: digest of all that decided it, up to the last unit at which its training was cut.
        reports: behind that unit, where it was halted since.
        details: likewise.
    """

    before: str
    reports: tuple[Report, ...] = ()
    details: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Trained:
    """Result of a part that several trials may have in common: a segment, or the divergence in it."""

    run: TrialRun
    served: Served


class Sharing:
    """Finds what trials have in common; without `Search.effects` that is nothing.

    Two trials have a part in common where their seeds, the units at which their training was cut until its end, and
    their hyperparameters in effect on each piece are the same. So they train the same model. Trials whose
    hyperparameters from the beginning agree are a family, and have one seed: that of the first of them.

    Args:
        search: whose trials.
    """

    def __init__(self, search: Search) -> None:
        self._search = search
        self._effects = search.effects
        self._seeds: dict[str, int] = {}
        self._lines: dict[str, _Line] = {}
        """Of trials, as long as some of their hyperparameters have not taken effect."""
        self._trained: dict[str, _Trained] = {}
        self._lenders: dict[str, TrialRun] = {}
        self.units = 0
        """Units that trials have from others."""

    def begin(self, run: TrialRun) -> None:
        """A trial has begun: it gets the seed of its family."""
        if self._effects is None:
            return
        family = [run.number % self._search.repeats, self._in_effect(run, 1)]
        run.seed = self._seeds.setdefault(_digest(family), run.seed)
        self._lines[run.id] = _Line(before=str(run.seed))
        self.units += run.shared
        if run.lends:
            self._lenders[run.id] = run

    def until(self, run: TrialRun, stop: int) -> int:
        """The units at which an assignment ends that would end at `stop`: earlier, if others may part from it there."""
        if self._effects is None or not run.tuned:
            return stop
        split = self._effects.next_split(run.resource, run.trial.config)
        return stop if split is None else min(stop, split)

    def part(self, run: TrialRun, stop: int) -> str:
        """The part of a trial that ends at `stop`, by all that decides it; empty where no other has it in common."""
        line = self._lines.get(run.id)
        if line is None or self._effects is None or stop > self._effects.last(run.trial.config):
            return ""
        return _digest([line.before, stop, self._in_effect(run, stop)])

    def is_trained(self, run: TrialRun, stop: int, by: Iterable[tuple[TrialRun, int]]) -> bool:
        """Whether a trial's next part is being trained.

        Args:
            run: the trial.
            stop: units at which the part ends.
            by: trials that gangs train, and how far.
        """
        part = self.part(run, stop)
        return bool(part) and any(self.part(other, until) == part for other, until in by if other is not run)

    def taken(self, run: TrialRun, stop: int) -> Served | None:
        """What another trial's training of a trial's next part came to, for that trial; None if there is nothing yet.

        Args:
            run: the trial.
            stop: units at which the part ends.
        """
        trained = self._trained.get(self.part(run, stop))
        if trained is None:
            return None
        segment = trained.served.segment
        reports = tuple(report for report in _reports(trained.served) if report.step > run.resource)
        run.shared += len(reports)
        self.units += len(reports)
        if reports and trained.run.number < run.number:
            run.common = Origin(parent=trained.run.id, resource=reports[-1].step)
        if segment is not None:
            segment = replace(segment, reports=reports)
        return replace(trained.served, trial_id=run.id, segment=segment, reports=() if segment else reports)

    def booked(self, run: TrialRun, served: Served, stop: int, *, whole: Callable[[Segment], bool]) -> None:
        """An assignment came to something; called before that is booked.

        Args:
            run: the trial.
            served: what it came to.
            stop: units at which it was to end.
            whole: whether nothing is wrong with a segment's numbers.
        """
        segment, line, part = served.segment, self._lines.get(run.id), self.part(run, stop)
        if line is None:
            return
        if not part or (segment is None and not served.diverged) or (segment is not None and not whole(segment)):
            del self._lines[run.id]
            return
        reports = (*line.reports, *_reports(served))
        if segment is None:
            self._trained.setdefault(part, _Trained(run=run, served=replace(served, gang="", reports=reports)))
            return
        details = merged(line.details, segment.details)
        if not reports or reports[-1].step < stop:
            line.reports, line.details = reports, details
            return
        self._lines[run.id] = _Line(before=part)
        if segment.checkpoint and part not in self._trained:
            self._lend(run, part, replace(segment, reports=reports, details=details), recalled=not served.gang)

    def _lend(self, run: TrialRun, part: str, segment: Segment, *, recalled: bool) -> None:
        """Keeps the checkpoint of a part for trials that have it in common."""
        unit = str(segment.reached)
        before = run.lends.get(unit, {}) if recalled else {}
        segment = replace(
            segment,
            details=before.get("details", segment.details),
            training_seconds=0.0,
            checkpointing_seconds=0.0,
            starting_seconds=0.0,
        )
        self._trained[part] = _Trained(run=run, served=Served(gang="", trial_id=run.id, segment=segment))
        if trial_of(segment.checkpoint) != run.id:
            return  # The other lends it.
        run.lends[unit] = {
            "checkpoint": segment.checkpoint,
            "files": segment.manifest.to_json(),
            "details": segment.details,
        }
        self._lenders[run.id] = run

    def start_over(self, run: TrialRun) -> None:
        """A trial trains from the beginning: its checkpoint is spoilt or gone, and so is what others had of it."""
        if self._effects is None:
            return
        for part, trained in list(self._trained.items()):
            if trained.served.segment is not None and trained.served.segment.checkpoint == run.checkpoint:
                del self._trained[part]
                trained.run.lends.pop(str(trained.served.segment.reached), None)
        self.units -= run.shared
        run.shared, run.common = 0, None
        self._lines[run.id] = _Line(before=str(run.seed))

    def over(self) -> list[TrialRun]:
        """No trial will come any more; returns those whose checkpoints nobody will go on from."""
        lenders = [run for run in self._lenders.values() if run.lends]
        for run in lenders:
            run.lends = {}
        return lenders

    def _in_effect(self, run: TrialRun, unit: int) -> dict[str, Any]:
        """A trial's tuned values that take effect before a unit."""
        assert self._effects is not None
        return self._effects.before(unit, run.hyperparameters, run.trial.config)


def lent(lends: dict[str, Any], unit: int) -> tuple[str, Manifest]:
    """The checkpoint of so many units that a trial lends, and its files; empty where it lends none."""
    found = lends.get(str(unit))
    return (found["checkpoint"], Manifest.from_json(found["files"])) if found else ("", Manifest())


def _reports(served: Served) -> tuple[Report, ...]:
    return served.reports if served.segment is None else served.segment.reports


def _digest(parts: list[Any]) -> str:
    return hashlib.blake2b(json.dumps(parts).encode(), digest_size=16).hexdigest()
