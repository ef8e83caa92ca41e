"""Random search as a Ray Tune searcher; a configuration depends on the seed and its number alone."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

# Ray Train first: threads that enter Ray by Tune and by Train at once meet in its import cycle.
import ray.train  # noqa: F401
from ray.tune.search import Searcher
from ray.tune.search.sample import Domain
from ray.tune.search.variant_generator import parse_spec_vars

from trainers.checking import check_whole
from trainers.errors import ConfigurationError


class RandomSearch(Searcher):
    """Draws every configuration at random, the k-th one always the same.

    Neither how many trials run side by side, nor what they report, nor a restart between two of them changes what the
    k-th call of `suggest` returns. (Ray Tune's own random search draws all configurations from one stream.)

    Args:
        space: domains by name; where it is left out, Ray Tune hands over the job's own.
        metric: the name of the objective. Random search does not look at it; Ray Tune asks for it.
        mode: "min" or "max".
        seed: a whole number, 0 or more.

    Raises:
        ConfigurationError: the seed is not such a number, or a domain cannot be drawn from a seed.
    """

    def __init__(
        self,
        space: Mapping[str, Domain] | None = None,
        *,
        metric: str | None = None,
        mode: str | None = None,
        seed: int,
    ) -> None:
        check_whole("seed", seed, 0, required=True)
        super().__init__(metric=metric, mode=mode)
        self._space = _domains(space or {})
        self._seed = int(seed)
        self._suggested = 0
        self._begun = 0

    def set_search_properties(self, metric: str | None, mode: str | None, config: dict[str, Any], **spec: Any) -> bool:
        """Takes the space of the job where none was given.

        Args:
            metric: the name of the objective.
            mode: "min" or "max".
            config: the job's space, with fixed values in it or without.
            **spec: what else Ray Tune says; not used.

        Returns:
            Whether it took them: not if it has a space.
        """
        if self._space:
            return False
        self._space = _domains(config)
        self._metric = metric or self._metric
        self._mode = mode or self._mode
        return True

    def suggest(self, trial_id: str) -> dict[str, Any]:
        """The next configuration, whichever trial it is for."""
        if not self._space:
            raise ConfigurationError("RandomSearch has no space; give it one, or give the job one")
        self._suggested += 1
        return self.drawn(self._suggested - 1)

    def begun(self, trial_id: str, hyperparameters: Mapping[str, Any]) -> None:
        """See `Learner.begun`: a trial of the record takes the next number, and nothing is drawn for it."""
        self._begun += 1
        self._suggested = max(self._suggested, self._begun)

    def drawn(self, number: int) -> dict[str, Any]:
        """The configuration of a number, from 0."""
        # A RandomState, since NumPy promises that its draws stay the same in every later version.
        stream = np.random.RandomState(np.random.MT19937(np.random.SeedSequence(self._seed, spawn_key=(number,))))
        # In the order of names, so that the order in which a space was written or restored does not matter.
        drawn = {name: self._space[name].sample(random_state=stream) for name in sorted(self._space)}
        return {name: drawn[name] for name in self._space}

    def on_trial_complete(self, trial_id: str, result: dict[str, Any] | None = None, error: bool = False) -> None:
        """Nothing: no result changes what comes next."""

    def save(self, checkpoint_path: str) -> None:
        """Writes where the search is to a file, as JSON."""
        Path(checkpoint_path).write_text(json.dumps({"seed": self._seed, "suggested": self._suggested}))

    def restore(self, checkpoint_path: str) -> None:
        """Goes on where the search that wrote the file was, with its seed."""
        state = json.loads(Path(checkpoint_path).read_text())
        self._seed, self._suggested = state["seed"], state["suggested"]
        self._begun = self._suggested


def _domains(config: Mapping[str, Any]) -> dict[str, Domain]:
    """The domains among the values of a space; the fixed ones are Ray Tune's to fill in."""
    _, domains, grids = parse_spec_vars(dict(config))
    refused = ["/".join(map(str, path)) for path, value in domains if value.is_function() or len(path) > 1]
    refused += ["/".join(map(str, path)) for path, _ in grids]
    if refused:
        raise ConfigurationError(
            f"the space has {', '.join(refused)} nested, or as grid_search or sample_from; "
            "give a flat space of domains that a seed can draw, as uniform and choice are"
        )
    return {path[0]: value for path, value in domains}
