"""Search by a sampler of Optuna's, without Ray Tune's wrapper: what was stopped early is told as such."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import optuna
from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler
from optuna.study import StudyDirection
from optuna.trial import TrialState
from ray.tune.search import Searcher

from hpo.strategies.scheduler import RESOURCE


@contextmanager
def quiet() -> Iterator[None]:
    """Keeps Optuna from saying that there is a study, in a memory that nobody looks into."""
    level = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(max(level, optuna.logging.WARNING))
    try:
        yield
    finally:
        optuna.logging.set_verbosity(level)


class SamplerSearch(Searcher):
    """Suggestions of any sampler of Optuna's.

    Reports are intermediate values. A trial that ended before its length is pruned, and its last value counts as
    samplers count those; one that failed has failed. Ray Tune's `OptunaSearch` tells both ends as complete.

    Args:
        sampler: it.
        space: a distribution a hyperparameter.
        metric: of results.
        mode: "max" or "min".
        longest: units of a trial that runs to its end.
        length: units that a configuration asks for, which may be less; None where it does not say.
    """

    def __init__(
        self,
        sampler: BaseSampler,
        space: dict[str, BaseDistribution],
        *,
        metric: str,
        mode: str,
        longest: int,
        length: Callable[[Mapping[str, Any]], int | None],
    ) -> None:
        super().__init__(metric=metric, mode=mode)
        direction = StudyDirection.MAXIMIZE if mode == "max" else StudyDirection.MINIMIZE
        with quiet():
            self._study = optuna.create_study(sampler=sampler, direction=direction)
        # A sampler of a finite space asks the study to stop once all is tried, which Optuna's own loop alone allows.
        self._study.stop = self._stop  # type: ignore[method-assign]
        self._tried_all = False
        self._space = space
        self._longest, self._length = longest, length
        self._live: dict[str, optuna.Trial] = {}
        self._steps: dict[str, int] = {}
        """The last unit that each reported."""

    def suggest(self, trial_id: str) -> Any:
        """The sampler's next point; FINISHED once it has tried all that there is."""
        if self._tried_all:
            return Searcher.FINISHED
        self._live[trial_id] = trial = self._study.ask(self._space)
        return dict(trial.params)

    def on_trial_result(self, trial_id: str, result: dict[str, Any]) -> None:
        """An intermediate value; a unit that is trained again has been told."""
        step = int(result[RESOURCE])
        if step > self._steps.get(trial_id, 0):
            self._steps[trial_id] = step
            self._live[trial_id].report(float(result[self.metric]), step)

    def on_trial_complete(self, trial_id: str, result: dict[str, Any] | None = None, error: bool = False) -> None:
        """The end of a trial."""
        trial = self._live.pop(trial_id)
        self._steps.pop(trial_id, None)
        if error or result is None:
            self._study.tell(trial, state=TrialState.FAIL)
        elif result[RESOURCE] < min(self._longest, self._length(result["config"]) or self._longest):
            self._study.tell(trial, state=TrialState.PRUNED)
        else:
            self._study.tell(trial, float(result[self.metric]))

    def add_evaluated_point(
        self,
        parameters: dict[str, Any],
        value: float,
        error: bool = False,
        pruned: bool = False,
        intermediate_values: list[float] | None = None,
    ) -> None:
        """A trial that the sampler did not suggest."""
        self._study.add_trial(optuna.create_trial(params=parameters, distributions=self._space, value=value))

    def _stop(self) -> None:
        self._tried_all = True

    def save(self, checkpoint_path: str) -> None:
        """Not there: a job that is resumed tells it of its trials again."""
        raise NotImplementedError

    def restore(self, checkpoint_path: str) -> None:
        """Not there, as `save`."""
        raise NotImplementedError
