"""A wall clock that jumps."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest

from trainers import steady

HOUR = 3600.0
JUMPS = pytest.mark.parametrize("seconds", [HOUR, -HOUR])


@dataclass
class Wall:
    """The wall clock of this process, which can be set."""

    ahead: float = 0.0
    real: Callable[[], float] = field(default=time.time)

    def __call__(self) -> float:
        return self.real() + self.ahead


@pytest.fixture
def wall(monkeypatch: pytest.MonkeyPatch) -> Iterator[Wall]:
    found = Wall()
    monkeypatch.setattr(time, "time", found)
    yield found
    found.ahead = 0.0
    with steady.measuring():
        pass  # It is right again for whoever comes next.
