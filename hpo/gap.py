"""Gap between the scores of two runs: whether it is a gain, no difference or a loss, and the words for it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

from hpo.text import count, decimal, places

Outcome = Literal["gain", "no difference", "worse"]
"""Kinds of gaps: a gain or a loss larger than the standard error, where that is known, or a gap within it.

The words for people call a gap a gain only where the standard error is known.
"""

LIKELY = 2.0
"""Standard errors from which on a gap is stated without a doubt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """The distance between two finite scores on the same rows.

    Args:
        value: the score that is judged.
        other: the score that it is compared with.
        error: the standard error of one such score; None where it is not known.
        maximize: whether larger scores are better.
        repeats: the trials of which `value` is the mean; the error is then that mean's.
        units: what the two runs trained; None where that does not matter.
    """

    value: float
    other: float
    error: float | None
    maximize: bool
    repeats: int = 1
    units: tuple[int, int] | None = None

    @property
    def gain(self) -> float:
        """By how much `value` is better; negative if it is worse."""
        return (self.value - self.other) * (1 if self.maximize else -1)

    @property
    def known_error(self) -> float | None:
        """The standard error; None where it is not known, or says nothing."""
        return self.error if self.error is not None and math.isfinite(self.error) and self.error > 0 else None

    @property
    def outcome(self) -> Outcome:
        """The decision: a gain, or a loss, has to be more than the standard error, where that is known."""
        if abs(self.gain) <= (self.known_error or 0.0):
            return "no difference"
        return "gain" if self.gain > 0 else "worse"

    @property
    def text(self) -> str:
        """The size of the gap, and the same in standard errors where they are known."""
        if self.known_error is None:
            return self._size
        errors = abs(self.gain) / self.known_error
        doubt = "" if errors >= LIKELY else ", which may be chance"
        return f"{self._size} or {errors:.1f} standard errors of {self.which}{doubt}"

    @property
    def verdict(self) -> str:
        """The sentence without its reasons."""
        match self.outcome:
            case "gain" if self.known_error is None:
                return f"{self._size} better; its standard error is not known"
            case "gain":
                return f"tuning made a gain of {self._size}"
            case "worse":
                return "tuning found nothing better"
        return "tuning made no difference"

    @property
    def sentence(self) -> str:
        """A sentence on what tuning achieved: `value` is the best trial's score, `other` the un-tuned run's."""
        match self.outcome:
            case "gain" if self.known_error is None:
                return f"the best trial is better by {self.text}{self._unknown}{self.lengths}"
            case "gain":
                return f"tuning made a gain of {self.text}{self.lengths}"
            case "worse":
                return (
                    f"tuning found nothing better: the best trial is worse by {self.text}{self._unknown}{self.lengths}"
                )
        if self.known_error is None:
            return f"tuning made no difference: both scores are equal{self.lengths}"
        error = f"the standard error of {self.which}, {decimal(self.known_error, places(self.value))}"
        return f"tuning made no difference: {self._size} is within {error}{self.lengths}"

    @property
    def lengths(self) -> str:
        """The units that the two runs trained, to put behind a sentence; empty where they are the same."""
        if self.units is None or self.units[0] == self.units[1]:
            return ""
        return f"; the best trial trained {count(self.units[0], 'unit')}, the un-tuned run {self.units[1]}"

    @property
    def _unknown(self) -> str:
        return "" if self.known_error is not None else ", whose standard error is not known"

    @property
    def which(self) -> str:
        """The score that the standard error belongs to, in words."""
        return "one such score" if self.repeats == 1 else "that mean"

    @property
    def _size(self) -> str:
        return decimal(abs(self.gain), places(self.value))

    def to_json(self) -> dict[str, Any]:
        """The gap for programs; its sentence is for people."""
        return {
            "outcome": self.outcome,
            "difference": self.value - self.other,
            "standard_error": self.known_error,
            "verdict": self.verdict,
            "sentence": self.sentence,
        }
