"""Plan of a job: its brackets and their rungs, known before it starts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

# A plan is laid out whole, before a job starts: far beyond what anyone trains, it would fill the memory.
MOST_JOBS = 100_000
"""Trials in a job; a plan names a bracket for each few of them."""
MOST_RESOURCE = 1_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Bracket:
    """One bracket of successive halving.

    Args:
        rungs: resource units at which its trials are compared, rising; the last is `max_resource`.
        sizes: how many trials train to each rung, falling.
    """

    rungs: tuple[int, ...]
    sizes: tuple[int, ...]

    @property
    def resource(self) -> int:
        """The units it uses if no trial fails; it never uses more."""
        steps = zip((0, *self.rungs), self.rungs, self.sizes, strict=False)
        return sum((rung - below) * size for below, rung, size in steps)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Every bracket of a tuning job, known before it starts, in the order in which trials fill them.

    Args:
        brackets: them.
        max_resource: units of a trial that runs to the end.
        apart: each trial is stopped or not by itself, as `hpo.strategies.median_rule` has it, and not with the others
            of its bracket; sizes are then the most that may train so far.
        eta: as `apart`, but as `hpo.strategies.asha` has it: one in so many goes on, as results come; else None.
        repeats: trials of each configuration, which follow each other; see `hpo.strategies.repeats`.
    """

    brackets: tuple[Bracket, ...]
    max_resource: int
    apart: bool = False
    eta: int | None = None
    repeats: int = 1

    @property
    def trials(self) -> int:
        """How many trials it is for."""
        return sum(bracket.sizes[0] for bracket in self.brackets)

    @property
    def resource(self) -> int:
        """The most units that the job can use."""
        return sum(bracket.resource for bracket in self.brackets)

    @property
    def assignments(self) -> int:
        """The most pieces in which the job can train them, one a trial and rung."""
        return sum(sum(bracket.sizes) for bracket in self.brackets)

    @property
    def full_resource(self) -> int:
        """The units that the same trials would use, each run to the end."""
        return self.trials * self.max_resource

    def to_json(self) -> dict[str, object]:
        """For the record."""
        return {
            "max_resource": self.max_resource,
            "brackets": [{"rungs": list(b.rungs), "sizes": list(b.sizes)} for b in self.brackets],
            **{each.name: value for each in fields(self)[2:] if (value := getattr(self, each.name)) != each.default},
        }

    @classmethod
    def from_json(cls, state: Mapping[str, Any]) -> Plan:
        """As `to_json` recorded it."""
        brackets = [Bracket(rungs=tuple(b["rungs"]), sizes=tuple(b["sizes"])) for b in state["brackets"]]
        more = {key: state[key] for key in (each.name for each in fields(cls)[2:]) if key in state}
        return cls(brackets=tuple(brackets), max_resource=state["max_resource"], **more)
