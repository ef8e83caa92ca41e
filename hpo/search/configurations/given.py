"""Given values: values that persons chose for trials, before a job began or while it runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hpo.record import POINT
from hpo.search.observer import Record


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What gave a trial its values: a person, or the searcher.

    Args:
        by: which person's values, as `TrialRow.given` has it; empty where nobody chose anything.
        values: those, by name; what is left out is the searcher's.
        believed: what the searcher's model expected of it, as `TrialRow.believed` has it.
    """

    by: str = ""
    values: Mapping[str, Any] = field(default_factory=dict)
    believed: Mapping[str, Any] = field(default_factory=dict)


class GivenValues:
    """Which trial has which given values: the first ones the job's points, those behind them what was added since.

    An addition is taken by the next trial that is suggested. Which one that was, the trial's own row in the record
    tells, so that a driver that dies has either recorded both or neither.

    Args:
        points: of the job.
        record: has the additions.
        decode: turns what the searcher suggests into hyperparameters; values that a person gave follow it.
    """

    def __init__(
        self, points: Sequence[Mapping[str, Any]], record: Record, decode: Callable[..., dict[str, Any]]
    ) -> None:
        self._points = points
        self._record = record
        self._decode = decode
        self._taken: set[str] = set()

    def of(self, number: int) -> Given:
        """What the next trial, of this number, takes."""
        if number < len(self._points):
            return Given(by=POINT, values=self._points[number])
        for addition in self._record.additions:
            if addition.id not in self._taken:
                return Given(by=addition.id, values=addition.hyperparameters)
        return Given()

    def over(self, number: int, suggested: Any) -> tuple[dict[str, Any], Given]:
        """The values of the next trial, of this number, with given ones over the suggested; and what gave them."""
        given = self.of(number)
        values = self._decode(suggested, given.values) if given.values else self._decode(suggested)
        return values, given

    def took(self, by: str) -> None:
        """A trial has begun with what this gave; in a job that is resumed, as its record has it."""
        self._taken.add(by)
