"""Searcher of another library: what it suggests is checked, and of trials that are known it is told what they were."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import partial
from typing import Any

from ray.tune.search import Searcher
from ray.tune.search.repeater import TRIAL_INDEX

from hpo.ranges import ParameterRange, Scalar, decode, encode
from hpo.strategies.ray_tune.guard import Guard
from trainers.errors import ConfigurationError, SearchError

logger = logging.getLogger(__name__)


class GuardedSearcher(Searcher):
    """Any searcher of Ray Tune's; it is a `Learner`, so that a resumed job tells it of trials by their values.

    Args:
        searcher: it; it knows the space and the objective.
        ranges: of the tuned hyperparameters.
        metric: of results; one that wraps another does not say it.
        mode: "max" or "min".
        guard: calls it.
        name: what errors call it; empty is its class.
    """

    def __init__(
        self,
        searcher: Searcher,
        *,
        ranges: Mapping[str, ParameterRange],
        metric: str,
        mode: str,
        guard: Guard,
        name: str = "",
    ) -> None:
        super().__init__(metric=metric, mode=mode)
        self._searcher: Any = searcher
        self._ranges = dict(ranges)
        self._guard = guard
        self._who = f"searcher {name or type(searcher).__name__}"
        self._drawn: dict[str, dict[str, Scalar] | None] = {}
        """What it suggested for each trial that lives; None for nothing."""
        self._other: dict[str, dict[str, Scalar]] = {}
        """The values of those that have others than it suggested: a person's, or those of the record."""

    @property
    def searcher(self) -> GuardedSearcher:
        """Itself: `HyperBandForBOHB` reaches its searcher through Tune's search algorithm, by this name."""
        return self

    def suggest(self, trial_id: str) -> dict[str, Any] | None:
        """A suggestion from within the ranges, None for nothing yet, or FINISHED.

        Raises:
            SearchError: it raised, or suggested something else.
        """
        suggested = self._guard.ask(self._who, f"the values of {trial_id}", partial(self._searcher.suggest, trial_id))
        if suggested is None or _is_finished(suggested):
            return suggested  # type: ignore[no-any-return]
        self._drawn[trial_id], suggested = self._checked(trial_id, suggested)
        return suggested

    def begun(self, trial_id: str, hyperparameters: Mapping[str, Any]) -> None:
        """See `Learner.begun`; of a trial of the record it is asked first, so that it is where it was."""
        if trial_id not in self._drawn:
            suggested = self.suggest(trial_id)
            if suggested is None or _is_finished(suggested):
                self._drawn[trial_id] = None
        if self._drawn[trial_id] != hyperparameters:
            self._other[trial_id] = dict(hyperparameters)
            drawn = self._drawn[trial_id]
            logger.info("%s suggested %s for %s, which has %s", self._who, drawn, trial_id, self._other[trial_id])

    def on_trial_result(self, trial_id: str, result: dict[str, Any]) -> None:
        """Tells it of a report."""
        if trial_id not in self._other:
            self._tell("on_trial_result", trial_id, result)

    def on_trial_complete(self, trial_id: str, result: dict[str, Any] | None = None, error: bool = False) -> None:
        """Tells it of an end. Where it suggested other values, those failed; and it is told of the real ones."""
        drawn, other = self._drawn.pop(trial_id, None), self._other.pop(trial_id, None)
        if other is None:
            self._tell("on_trial_complete", trial_id, result=result, error=error)
            return
        if drawn is not None:
            self._tell("on_trial_complete", trial_id, result=None, error=True)
        if result is not None:
            call = partial(self._add, encode(self._ranges, other), result[self.metric])
            self._guard.tell(self._who, f"of a trial with {other}", call, None)

    def on_pause(self, trial_id: str) -> None:
        """Tells TuneBOHB that a trial waits."""
        self._tell_of_pauses("on_pause", trial_id)

    def on_unpause(self, trial_id: str) -> None:
        """Tells TuneBOHB that it goes on."""
        self._tell_of_pauses("on_unpause", trial_id)

    def save(self, checkpoint_path: str) -> None:
        """Saves it."""
        self._searcher.save(checkpoint_path)

    def restore(self, checkpoint_path: str) -> None:
        """Restores it."""
        self._searcher.restore(checkpoint_path)

    def _checked(self, trial_id: str, suggested: object) -> tuple[dict[str, Scalar], dict[str, Any]]:
        """The values that a suggestion stands for, and itself."""
        if not isinstance(suggested, Mapping) or not all(isinstance(name, str) for name in suggested):
            raise SearchError(
                f"{self._who} suggested {suggested!r} for {trial_id}; it has to be a dict of values by name"
            )
        # A trial's number and seed say which repeat it is.
        point = {name: value for name, value in suggested.items() if name != TRIAL_INDEX}
        try:
            return decode(self._ranges, point), point
        except ConfigurationError as error:
            raise SearchError(f"{self._who}, asked for the values of {trial_id}: {error}") from error

    def _add(self, point: dict[str, Any], value: float) -> None:
        try:
            self._searcher.add_evaluated_point(point, value)
        except NotImplementedError:
            return  # It then knows nothing of that trial, and nothing wrong.

    def _tell(self, method: str, trial_id: str, *rest: Any, **named: Any) -> None:
        call = partial(getattr(self._searcher, method), trial_id, *rest, **named)
        self._guard.tell(self._who, f"{method} of {trial_id}", call, None)

    def _tell_of_pauses(self, method: str, trial_id: str) -> None:
        if hasattr(self._searcher, method):
            self._tell(method, trial_id)


def _is_finished(suggested: object) -> bool:
    """Whether it is the string of Ray Tune's; an array would compare with that value by value."""
    return isinstance(suggested, str) and suggested == Searcher.FINISHED
