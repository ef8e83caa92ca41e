"""Units of resource, counted in a program's metrics, and whether a program that was paused went on or began again."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from trainers.errors import ConfigurationError
from trainers.script.metric_lines import Reading
from trainers.script.restarts import KEPT_UNITS, OPENING, Past, Position, Restart, UnitTimes, same
from trainers.script.steps import StepCounter, described


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """Units from `first` to `last`, of which all have these metrics: more than one where a step goes further on."""

    first: int
    last: int
    metrics: dict[str, float]


class Units:
    """Counts units of resource in a program's metrics.

    A value of the objective is one unit, and other metrics have their latest values. If the program gives a step, the
    step tells the unit: a step further on fills the units between with the same values, and a unit that was there is
    ignored. Without a step, the unit is the next one. A program that was started again with its checkpoints may go on
    from an older one, or begin again; `Restart` finds its position. If its first value is that of the checkpoint's
    unit, it evaluated the checkpoint, which is no further unit.

    Args:
        objective: the metric that marks a unit; empty for the one that is read first.
        start: units that the trial has; they are not reported again.
        resumed: the program has checkpoints to go on from; without them it begins at unit 1.
        steps: the program's step counter.
        past: of the trial.
        last: metrics of the trial's last unit, if it has any.
        read: returns the checkpoint files that were read so far; None if that is not known.
        kept: the program stays loaded and counts its units itself: it reports each once, and must not begin again.
    """

    def __init__(
        self,
        objective: str,
        start: int = 0,
        *,
        resumed: bool = False,
        steps: StepCounter | None = None,
        past: Past | None = None,
        last: Mapping[str, float] | None = None,
        read: Callable[[], Collection[str] | None] = lambda: None,
        kept: bool = False,
    ) -> None:
        past = past or Past()
        self.start = start
        self.reached = start
        """The unit reported last."""
        self.values = 0
        """Values of the objective that came, also those that were no further unit."""
        self.refused: dict[str, tuple[int, str]] = {}
        """How often a metric was no number, and what stood there last."""
        self._objective, self._steps = objective, steps or StepCounter()
        self._read, self._kept = read, kept
        self._seen = start if resumed else 0
        self._repeated = 0
        self._latest: dict[str, float] = {}
        self._last = last
        self._settled = not resumed
        """Whether the program's position is known."""
        self._held: list[tuple[dict[str, float], float]] = []
        """Values that came before that was known, with their times."""
        self._past = past
        self.position = Position(unit=self._seen)
        """The unit from which the program counts in this run."""
        self._values = dict(past.values)
        self.times = UnitTimes(time.time())
        """When the units of this run were reported."""
        self._flat = past.flat
        self._evaluates_first, self._first_step = past.evaluates_first, past.first_step
        self._given: list[float] = []
        """The first steps of this run that differ."""

    def take(self, reading: Reading) -> list[Counted]:
        """Count a reading; returns the units that it ends, with those that were held before it.

        Raises:
            ConfigurationError: its step is none, or the program must not have begun again.
        """
        for name, text in reading.refused.items():
            shown = f"{text!r} in {reading.source}" if reading.source else repr(text)
            self.refused[name] = (self.refused.get(name, (0, ""))[0] + 1, shown)
        self._latest |= reading.metrics
        if not self._objective:
            self._objective = next(iter(reading.metrics), "")
        if self._objective not in reading.metrics:
            return []
        self.values += 1
        metrics = dict(self._latest)
        if reading.step is not None:
            unit = self._unit(reading.step, reading.source)
            return [] if unit < 1 else self._count(unit, metrics, reading.at)
        self._held.append((metrics, reading.at))
        return self._due()

    def rest(self) -> list[Counted]:
        """Count values that are still held when the program is over: it went on, since it has no more of them."""
        self._settled = True
        return self._due()

    def trained_again(self) -> int:
        """Return how many units of the trial were trained again, since the last call."""
        repeated, self._repeated = self._repeated, 0
        return repeated

    def past(self, files: Mapping[str, float]) -> Past:
        """Return facts for the trial's next run.

        Args:
            files: the unit at which each checkpoint file was written.
        """
        kept = (*range(1, OPENING + 1), *range(max(OPENING, self.reached - KEPT_UNITS) + 1, self.reached + 1))
        return Past(
            values={} if self.gives_steps else {unit: self._values[unit] for unit in kept if unit in self._values},
            files={} if self.gives_steps else files,
            flat=self._flat,
            evaluates_first=self._evaluates_first,
            first_step=self._first_step,
        )

    @property
    def from_zero(self) -> bool:
        """Whether the first step was taken for 0 since it was 0: perhaps an evaluation before the first unit."""
        return self._first_step == 0 and self._steps.first is None

    def explanation(self) -> str:
        """A sentence about matches of the objective that were no numbers, or what came without it; empty for none."""
        objective = self._objective or next(iter(self.refused), "")  # A single training has none.
        if objective in self.refused:
            return self._refused_text(objective)
        if self._latest and self._objective not in self._latest:
            return (
                f"it reported {', '.join(map(repr, self._latest))} and no {self._objective!r}, which is the objective"
            )
        return ""

    def without_numbers(self) -> str:
        """A sentence about metrics that were found, and never as a number; empty for none."""
        return "; ".join(self._refused_text(name) for name in self.refused if name not in self._latest)

    @property
    def gives_steps(self) -> bool:
        """Whether the program gave a step."""
        return bool(self._given)

    def jump(self) -> str:
        """A counter for steps that begin late, or rise by more than a unit each time; empty for others."""
        steps, stride = self._given, self._steps.stride
        gaps = [later - earlier for earlier, later in itertools.pairwise(steps)]
        begins_late = bool(steps) and not self.start and self._steps.whole and steps[0] > 1
        every = gaps[0] if gaps else steps[0] if begins_late else 0.0
        if (every < 1.5 * stride and not begins_late) or any(not math.isclose(gap, every) for gap in gaps):
            return ""
        sure = len(gaps) > 1 or begins_late or (not self.start and steps[0] == 0)
        first = steps[0] if not self.start else self._first_step or 0.0
        return described(first, every) if sure else ""

    def guess(self) -> str:
        """Return a warning about a position that is an estimate; empty if it is known."""
        if not self.position.reason:
            return ""
        return (
            f"the program gives no step, so that its units after a pause are estimated: of {self.start} units, it was "
            f"taken to go on from unit {self.position.unit}, since {self.position.reason}; let it print its step with "
            r"the metric, and give the expression a group 'step', as in 'epoch=(?P<step>\d+) acc=(?P<value>\S+)'"
        )

    def _refused_text(self, name: str) -> str:
        count, shown = self.refused[name]
        times = "once" if count == 1 else f"{count} times"
        return f"{name!r} was no number {times}, last {shown}: give the number alone, without a unit, such as 0.5"

    def _due(self) -> list[Counted]:
        """Counts values that are held, once the program's position is known."""
        if not self._settled and self._held:
            restart = Restart(start=self.start, past=self._past, last=self._last, objective=self._objective)
            position = restart.position([metrics for metrics, _ in self._held], self._read())
            if position is None:
                return []
            self._go_on_from(position, restart)
        held, self._held = self._held, []
        return [counted for metrics, at in held for counted in self._count(self._seen + 1, metrics, at)]

    def _go_on_from(self, position: Position, restart: Restart) -> None:
        self._settled = True
        if self._kept and position.unit < self.start:
            if not position.reason:
                went_on = f"went on from unit {position.unit}" if position.unit else "began again at unit 1"
                raise ConfigurationError(
                    f"after a pause the program {went_on}, although its checkpoints of {self.start} units are in "
                    "SM_CHECKPOINT_DIR: let it read them before its first report, or say the unit, as in "
                    "warmband.report(..., step=epoch)"
                )
            position = Position(unit=self.start, reason="a program that stays loaded counts its units itself")
        self.position, self._seen = position, position.unit
        if not position.matched and position.unit and not self._kept:
            self._drop_evaluation(restart)

    def _drop_evaluation(self, restart: Restart) -> None:
        """Drops a first value that is the checkpoint's own unit's, printed once more.

        Where the trial's last two units had the same values, a third one may have them too.
        """
        flat = self._flat and self._seen == self.start
        if not restart.evaluates(self._held[0][0], self._seen):
            self._evaluates_first = False
        elif self._evaluates_first or (self._evaluates_first is None and not flat):
            self._evaluates_first = self._evaluates_first or not flat
            del self._held[0]

    def _unit(self, step: float, source: str) -> int:
        """The unit of a step; below 1 for one before the first unit."""
        counter, before = self._steps, self._given[-1] if self._given else None
        if counter.whole and (step < 0 or step != math.floor(step)):
            first = self._given[0] if self._given else step
            every = 1.0 if step < 0 else step if before is None else step - before
            example = described(first, every if every > 0 else 1.0)
            raise ConfigurationError(
                f"{source} gives step {step:.6g}, which is no whole number from 0 on; say which steps are units: "
                f"{example}"
            )
        if self._first_step is None:
            self._first_step = counter.begun(step)
        unit = counter.unit(step, self._first_step)
        if counter.whole and unit < 1:
            raise ConfigurationError(
                f"{source} gives step {step:.6g}, and the trial began at step {self._first_step:.6g}; say which step "
                f"is the first: {described(0, 1)}"
            )
        if before is None:
            self._begin_at(unit)
        if before != step and len(self._given) < 4:
            self._given.append(step)
        return unit

    def _begin_at(self, unit: int) -> None:
        """The first unit of this run, by its step: units from there on are trained again, if they were there."""
        self._settled = True
        evaluates = unit == self.start and same(self._latest, self._last, self._objective)
        self._seen = self.start if evaluates else max(0, min(self.start, unit - 1))
        self.position = Position(unit=self._seen)

    def _count(self, unit: int, metrics: dict[str, float], at: float) -> list[Counted]:
        before, self._seen = self._seen, max(self._seen, unit)
        if unit <= before:
            return []
        self._repeated += max(0, min(unit, self.start) - before)
        self.times.reported(unit, at)
        self._values.setdefault(unit, metrics)
        if unit <= self.reached:
            return []
        first, self.reached = self.reached + 1, unit
        self._flat, self._last = same(metrics, self._last, self._objective), metrics
        return [Counted(first=first, last=unit, metrics=metrics)]
