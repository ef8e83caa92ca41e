"""Simulated gangs that halt at random."""

from __future__ import annotations

import random
from collections.abc import Sequence

from hpo.search.simulated_gangs import SimulatedGangs
from trainers.gangs.messages import Event


class Halting(SimulatedGangs):
    """Gangs that halt at random times, 200 times at most."""

    first = halts = 0

    def events(self, timeout: float) -> Sequence[Event]:
        dice = random.Random(len(self.served) * 1000 + self.halts)
        if self._serving and self.halts < self.first + 200 and dice.random() < 0.4:
            self.halts += 1
            self.halt(dice.choice(sorted(self._serving)))
        return super().events(timeout)
