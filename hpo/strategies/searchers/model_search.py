"""Search with a model as a Ray Tune searcher: a configuration depends on the seed, its number and values alone."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np

# Ray Train first: threads that enter Ray by Tune and by Train at once meet in its import cycle.
import ray.train  # noqa: F401
from numpy.typing import NDArray
from ray.tune.search import Searcher

from hpo.ranges import ParameterRange, Scalar, decode, encode, search_space
from hpo.strategies.hyperband import Plan
from hpo.strategies.scheduler import RESOURCE
from hpo.strategies.searchers.history import History
from hpo.strategies.searchers.random_search import RandomSearch
from hpo.suggestions import FEWEST_TRIALS, Observation, Proposal, Quantiles, Space, propose, scales_of
from trainers.errors import WarmbandError

LONGEST_SUGGESTION = 600.0
"""Seconds after which a suggestion that is being computed is given up: it takes 0.2 on one idle core."""


REFITS = 32
"""The process's scales are found anew for each suggestion, and in a large job once in a 32nd of its trials so far."""


AT_RANDOM: Mapping[str, Any] = {"by": "random"}
"""What is kept of a suggestion of which no model expects anything."""


class ModelSearch(Searcher):
    """Suggests what a Gaussian process expects most of, on results that `History` opens by number.

    The first trials are those of `RandomSearch` with the same seed. A suggestion is computed ahead, in a thread of its
    own, once all that it reads is known; until then there is none, and what it waits for is being trained.

    Args:
        ranges: a range a tuned hyperparameter.
        plan: the brackets.
        metric: the name of the objective.
        mode: "min" or "max".
        seed: a whole number, 0 or more.
        history: what opens results to a suggestion.
        fewest: trials that have to be seen before a model is asked.
        earlier: results of earlier jobs; with enough of them, a model suggests the first trial already.
        ahead: compute a suggestion while trials train. It keeps linear algebra to one thread, so not where a trial
            trains in this process, whose sums would then depend on the time.
    """

    def __init__(
        self,
        ranges: Mapping[str, ParameterRange],
        plan: Plan,
        *,
        metric: str,
        mode: str,
        seed: int,
        history: History,
        fewest: int = FEWEST_TRIALS,
        earlier: Sequence[Observation] = (),
        ahead: bool = True,
    ) -> None:
        super().__init__(metric=metric, mode=mode)
        self._ranges = dict(ranges)
        self._space = Space(ranges)
        self._plan = plan
        self._seed = seed
        self._random = RandomSearch(search_space(ranges), metric=metric, mode=mode, seed=seed)
        self._earlier = tuple(earlier)
        self._left = fewest - len({str(each.hyperparameters) for each in earlier})
        """Trials of the job itself that have to be seen before a model is asked."""
        self._first = history.reads(self._left) if self._left > 0 else 0
        """The number of the first trial that a model suggests."""
        self._history = history
        self._numbers: dict[str, int] = {}
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="suggestion")
        self._may_compute_ahead = ahead
        self._ahead: tuple[int, Future[dict[str, Scalar]]] | None = None
        """The number of the suggestion that is being computed, and what it comes to."""
        self._scales: tuple[int, NDArray[Any] | None] = (-1, None)
        """The number of the suggestion for which scales were found, and those."""
        self._expected: dict[int, Mapping[str, Any]] = {}
        """What was expected of suggestions that were computed and are not asked for yet."""
        self._believed: Mapping[str, Any] = {}

    def suggest(self, trial_id: str) -> dict[str, Any] | None:
        """The next configuration; None while results that it reads are still to come."""
        number = self._history.begun
        if number < self._first:
            self._believed = AT_RANDOM
            return self._random.drawn(number)
        ahead = self._compute(number)
        if ahead is None:
            return None
        try:
            suggested = encode(self._ranges, ahead.result(LONGEST_SUGGESTION))
        except TimeoutError as error:
            raise WarmbandError(
                f"the suggestion for {trial_id} was not there after {LONGEST_SUGGESTION:.0f} s; resume the job on a "
                "machine that is less busy"
            ) from error
        self._believed = self._expected.pop(number, {})
        return suggested

    def believed(self) -> Mapping[str, Any]:
        """See `Believer.believed`."""
        return self._believed

    def begun(self, trial_id: str, hyperparameters: Mapping[str, Scalar]) -> None:
        """See `Learner.begun`."""
        self._numbers[trial_id] = self._history.begin(hyperparameters)
        self._compute_ahead()

    def on_trial_result(self, trial_id: str, result: dict[str, Any]) -> None:
        """Takes a value."""
        self._history.reported(self._numbers[trial_id], int(result[RESOURCE]), self._value(result))
        self._compute_ahead()

    def on_trial_complete(self, trial_id: str, result: dict[str, Any] | None = None, error: bool = False) -> None:
        """Takes a trial's end; one without a result failed, or its values are not finite."""
        reached = int(result[RESOURCE]) if result and not error else self._history.reached(self._numbers[trial_id])
        value = self._value(result) if result and not error else math.nan
        self._history.ended(self._numbers[trial_id], reached, value)
        self._compute_ahead()

    def gave_up(self, trial_id: str) -> None:
        """See `GivesUp.gave_up`."""
        self._history.gave_up(self._numbers[trial_id])
        self._compute_ahead()

    def save(self, checkpoint_path: str) -> None:
        """Nothing is saved: a job that is resumed is told its trials and results once more."""

    def restore(self, checkpoint_path: str) -> None:
        """See `save`."""

    def _value(self, result: Mapping[str, Any]) -> float:
        return float(result.get(self.metric, math.nan))

    def _compute_ahead(self) -> None:
        number = self._history.begun
        if self._may_compute_ahead and self._first <= number < self._plan.trials:
            self._compute(number)

    def _compute(self, number: int) -> Future[dict[str, Scalar]] | None:
        """Begins to compute a suggestion, if that was not begun before; None while it has to wait for results."""
        if self._ahead is not None and self._ahead[0] == number:
            return self._ahead[1]
        if not self._history.ready(number):
            return None
        if self._ahead is not None:
            self._ahead[1].cancel()  # A job that is resumed knows what it came to.
        self._ahead = number, self._thread.submit(self.compute, number)
        return self._ahead[1]

    def compute(self, number: int) -> dict[str, Scalar]:
        """The suggestion of a number; what it reads does not change any more, so a thread may read it."""
        own, unseen = self._history.read(number)
        seen = [*own, *self._earlier]
        # A history that waits for results has so many by now; one that waits for nothing may not.
        if number - len(unseen) < self._left or not any(math.isfinite(each.value) for each in seen):
            self._expected[number] = AT_RANDOM
            return decode(self._ranges, self._random.drawn(number))
        sequence = np.random.SeedSequence(self._seed, spawn_key=(number, 1))
        proposal = propose(
            self._space,
            seen,
            begun=unseen,
            max_resource=self._plan.max_resource,
            maximize=self.mode == "max",
            stream=np.random.RandomState(np.random.MT19937(sequence)),
            scales=self._scales_for(number),
        )
        self._expected[number] = expectation(proposal, seen, maximize=self.mode == "max")
        return proposal.hyperparameters

    def _scales_for(self, number: int) -> NDArray[Any] | None:
        """The scales of a suggestion's process, from what an earlier one reads; None where it finds its own.

        Which one that is follows from the number, so that a job that is resumed has the same.
        """
        fitted = number - number % max(1, number // REFITS)
        if fitted == number and number < 2 * REFITS:
            return None
        if self._scales[0] != fitted:
            seen = [*self._history.read(fitted)[0], *self._earlier]
            finite = any(math.isfinite(each.value) for each in seen)
            maximize, longest = self.mode == "max", self._plan.max_resource
            found = scales_of(self._space, seen, max_resource=longest, maximize=maximize) if finite else None
            self._scales = fitted, found
        return self._scales[1]


def expectation(proposal: Proposal, seen: Sequence[Observation], *, maximize: bool) -> dict[str, Any]:
    """What a model expects of its proposal, as a trial's row of the record has it.

    Args:
        proposal: its scores.
        seen: what it has read; the job's own values among it turn scores to values of the objective.
        maximize: whether larger values are better.
    """
    scores = {"score": proposal.score, "deviation": proposal.deviation, "spread": proposal.spread}
    quantiles = Quantiles(seen, maximize=maximize)
    values = {}
    if quantiles:
        expected = quantiles.expected([proposal.score], [proposal.spread])
        values = {name: float(getattr(expected, name)[0]) for name in ("middle", "low", "high")}
    return {"by": "model", "results": len(seen), **scores, **values}
