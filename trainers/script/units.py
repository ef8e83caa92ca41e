"""Units of resource, counted in a program's metrics, and whether a program that was paused went on or began again."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from trainers.errors import ConfigurationError
from trainers.script.metric_lines import Reading
from trainers.script.steps import StepCounter, described

OPENING = 3
"""First units of a trial whose metrics are kept: a program that begins again gives the same ones, if it is exact."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """Facts of a trial's earlier runs, which tell how the units of the next run count.

    Args:
        opening: metrics of the trial's own first units, at most `OPENING`.
        flat: the metrics of its last two units are the same.
        evaluates_first: a program that goes on prints the values of its last unit once more; None if not known yet.
        first_step: the step of unit 1; None if the program gives no steps.
    """

    opening: tuple[Mapping[str, float], ...] = ()
    flat: bool = False
    evaluates_first: bool | None = None
    first_step: float | None = None


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
    ignored. Without a step, the unit is the next one, and a program that goes on from checkpoints may have begun again:

    - None of its checkpoint files was read before its first value: it began again.
    - Its first values are those of the trial's own first units, and not of the last: it began again.
    - Its first values are those of the trial's last unit: it evaluated its checkpoint, which is no further unit.

    Args:
        objective: the metric that marks a unit; empty for the one that is read first.
        start: units that the trial has; they are not reported again.
        resumed: the program has checkpoints to go on from; without them it begins at unit 1.
        steps: the program's step counter.
        past: of the trial.
        last: metrics of the trial's last unit, if it has any.
        was_read: returns whether a checkpoint file was read so far; None if that is not known.
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
        was_read: Callable[[], bool | None] = lambda: None,
        kept: bool = False,
    ) -> None:
        past = past or Past()
        self.start = start
        self.reached = start
        """The unit reported last."""
        self.values = 0
        """Values of the objective that came, also those that were no further unit."""
        self.refused: dict[str, tuple[int, str]] = {}
        """How often a metric was no number, and the text that stood there last."""
        self._objective, self._steps = objective, steps or StepCounter()
        self._was_read, self._kept = was_read, kept
        self._seen = start if resumed else 0
        self._repeated = 0
        self._latest: dict[str, float] = {}
        self._last = last
        self._settled = not resumed
        """Whether it is known if the program went on."""
        self._held: list[dict[str, float]] = []
        """Values that came before that was known."""
        self._opening, self._flat = list(past.opening), past.flat
        self._evaluates_first, self._first_step = past.evaluates_first, past.first_step
        self._given: list[float] = []
        """The first steps of this run that differ."""

    def take(self, reading: Reading) -> list[Counted]:
        """Count a reading; returns the units that it ends, with those that were held before it.

        Raises:
            ConfigurationError: its step is none, or the program must not have begun again.
        """
        for name, text in reading.refused.items():
            self.refused[name] = (self.refused.get(name, (0, ""))[0] + 1, text)
        self._latest |= reading.metrics
        if not self._objective:
            self._objective = next(iter(reading.metrics), "")
        if self._objective not in reading.metrics:
            return []
        self.values += 1
        metrics = dict(self._latest)
        if reading.step is not None:
            unit = self._unit(reading.step, reading.source)
            return [] if unit < 1 else self._count(unit, metrics)
        self._held.append(metrics)
        return self._due()

    def rest(self) -> list[Counted]:
        """Count values that are still held when the program is over: it went on, since it has no more of them."""
        self._settled = True
        return self._due()

    def trained_again(self) -> int:
        """Return how many units of the trial were trained again, since the last call."""
        repeated, self._repeated = self._repeated, 0
        return repeated

    @property
    def past(self) -> Past:
        """Facts for the trial's next run."""
        return Past(
            opening=tuple(self._opening),
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
        count, text = self.refused.get(objective, (0, ""))
        if count:
            times = "once" if count == 1 else f"{count} times"
            return f"{objective!r} was no number {times}, last {text!r}; give the number alone, without a unit"
        if self._latest and self._objective not in self._latest:
            return (
                f"it reported {', '.join(map(repr, self._latest))} and no {self._objective!r}, which is the objective"
            )
        return ""

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

    def _due(self) -> list[Counted]:
        """Counts values that are held, once it is known whether the program went on."""
        if not self._settled:
            goes_on = self._goes_on()
            if goes_on is None:
                return []
            self._settled = True
            if goes_on:
                self._drop_evaluation()
            elif self._kept:
                raise ConfigurationError(
                    f"after a pause the program began again at unit 1, although its checkpoints of {self.start} units "
                    "are in SM_CHECKPOINT_DIR: let it read them before its first report, or say the unit, as in "
                    "warmband.report(..., step=epoch)"
                )
            else:
                self._seen = 0
        held, self._held = self._held, []
        return [counted for metrics in held for counted in self._count(self._seen + 1, metrics)]

    def _goes_on(self) -> bool | None:
        """Whether the program went on from its checkpoint; None if the next value has to tell."""
        if self._was_read() is False:
            return False
        opening = self._opening[: self.start]
        if not opening or same(opening[0], self._last, self._objective):
            return True
        if not all(same(*pair, self._objective) for pair in zip(self._held, opening, strict=False)):
            return True
        return False if len(self._held) >= len(opening) else None

    def _drop_evaluation(self) -> None:
        """Drops a first value that is the last unit's, printed once more.

        Where the trial's last two units had the same values, a third one may have them too.
        """
        if self._kept or not self._held:
            return
        if not same(self._held[0], self._last, self._objective):
            self._evaluates_first = False
        elif self._evaluates_first or (self._evaluates_first is None and not self._flat):
            self._evaluates_first = self._evaluates_first or not self._flat
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

    def _count(self, unit: int, metrics: dict[str, float]) -> list[Counted]:
        before, self._seen = self._seen, max(self._seen, unit)
        if unit <= before:
            return []
        self._repeated += max(0, min(unit, self.start) - before)
        if unit == len(self._opening) + 1 <= OPENING:
            self._opening.append(metrics)
        if unit <= self.reached:
            return []
        first, self.reached = self.reached + 1, unit
        self._flat, self._last = same(metrics, self._last, self._objective), metrics
        return [Counted(first=first, last=unit, metrics=metrics)]


def same(one: Mapping[str, float], other: Mapping[str, float] | None, objective: str) -> bool:
    """Return whether the metrics of two units are the same values.

    The objective has to be, and one more metric that both have, if there are any: an accuracy may come again by chance,
    and the seconds of an evaluation hardly do.
    """
    if other is None or objective not in other or not _equal(one[objective], other[objective]):
        return False
    others: Sequence[str] = [name for name in one if name != objective and name in other]
    return not others or any(_equal(one[name], other[name]) for name in others)


def _equal(one: float, other: float) -> bool:
    return one == other or (math.isnan(one) and math.isnan(other))
