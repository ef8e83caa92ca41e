"""Results of a search, all of which a suggestion reads that have come by the time it is computed."""

from __future__ import annotations

from hpo.ranges import Scalar
from hpo.strategies.hyperband import Plan
from hpo.strategies.openings import at_once
from hpo.strategies.searchers import History
from hpo.suggestions import Observation

Read = tuple[list[Observation], list[dict[str, Scalar]]]


class OpenHistory(History):
    """Opens every rung of every trial to every suggestion, so that what is tried depends on what was faster.

    Args:
        plan: the brackets.
    """

    def __init__(self, plan: Plan) -> None:
        super().__init__(plan, at_once(plan))
        self._taken: Read = ([], [])

    def ready(self, number: int) -> bool:
        """It always is; what there is now is what the suggestion reads, also where it is computed in a thread."""
        self._taken = super().read(number)
        return True

    def read(self, number: int) -> Read:
        """What was there when a suggestion was last begun, whichever it was."""
        return self._taken

    def _settle(self) -> None:
        """Nobody waits for anything."""
