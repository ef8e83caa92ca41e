"""Other packages on recorded curves: what each is, whether it is installed, and what all of their simulations share."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any

from hpo.ranges import CategoricalParameter, ParameterRange
from trainers.errors import ConfigurationError


@dataclass(frozen=True, kw_only=True)
class Seen:
    """The best value that a search had seen, by the time.

    Args:
        seconds: when a unit of any trial ended, rising.
        best: the best value by then; negative infinity while nothing was finite.
    """

    seconds: list[float] = field(default_factory=list)
    best: list[float] = field(default_factory=list)

    def add(self, seconds: float, value: float) -> None:
        """A unit ended."""
        self.seconds.append(seconds)
        self.best.append(max(value, self.best[-1]) if self.best else value)

    def best_at(self, seconds: float) -> float:
        """The best value by a time; NaN where there was none."""
        place = bisect_right(self.seconds, seconds)
        return self.best[place - 1] if place else float("nan")


def installed(module: str) -> bool:
    """Whether a package that only a comparison needs is there."""
    return find_spec(module) is not None


def check_installed(arm: str, module: str) -> None:
    """Looks for the package of an arm.

    Raises:
        ConfigurationError: it is not installed.
    """
    if not installed(module):
        raise ConfigurationError(f"{arm} needs {module}, which is not installed; {remedy()}")


def remedy() -> str:
    """How to get the packages."""
    return "pip install -c constraints.txt -e '.[baselines]' installs it"


def mirrored(bounds: ParameterRange, value: Any) -> Any:
    """A value as packages without reverse logarithmic ranges have it, from ours, and the other way round."""
    if isinstance(bounds, CategoricalParameter) or bounds.resolved_scaling != "ReverseLogarithmic":
        return value
    return 1 - value
