"""Forking: the trials that come of a population's forks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from ray.tune.schedulers import TrialScheduler

from hpo.forks import Fork, Origin, Phase, Population
from hpo.search.recall import Recall
from hpo.search.trial import Search, TrialRun, derive_seed, new_run
from trainers.errors import ConfigurationError, SearchError


class Forking:
    """Makes the trials of forks; without a population there are none.

    Args:
        search: whose.
        scheduler: any of Ray Tune's.
        recall: what is known of the trials already.
    """

    def __init__(self, search: Search, scheduler: TrialScheduler, recall: Recall) -> None:
        self.population = Population.of(
            scheduler,
            metric=search.metric,
            mode=search.mode,
            seed=lambda trials: derive_seed(search.seed, f"population/{trials}"),
            fixed=search.fixed_names,
            within=search.within_ranges,
        )
        self.scheduler = self.population or scheduler
        """The one that the search asks."""
        self._search = search
        self._recall = recall

    def check_whole(self, begun: int, to_come: int) -> None:
        """Ends a search whose population the searcher suggests but a part of, before that has reported.

        Raises:
            SearchError: trials are still to come.
        """
        if self.population and to_come:
            raise SearchError(
                f"the searcher suggests nothing for trial {begun} of {self._search.max_jobs} before others report, and "
                "population based training begins with all; give another searcher, or none, which draws at random"
            )

    def decided(self, runs: Mapping[str, TrialRun]) -> Iterator[tuple[TrialRun, TrialRun]]:
        """The forks decided since this was last asked: the trial that ends, and the one that takes its place.

        Args:
            runs: all trials, to which the one who asks adds each fork before asking for the next.
        """
        if self.population is None:
            return
        for fork in self.population.forks():
            new = max(self._recall.numbers, 1 + max(run.number for run in runs.values()))
            number, known = self._recall.forked(fork) or (new, {})
            try:
                run = self._forked(replace(fork, config={**fork.config, **known}), runs[fork.parent], number)
            except ConfigurationError as error:  # Raised at the next choice, when all is in the record.
                self.population.refuse(fork, error)
                return
            self._recall.begin(run)
            self.population.take_over(fork, run.trial)
            yield runs[fork.trial_id], run

    def _forked(self, fork: Fork, parent: TrialRun, number: int) -> TrialRun:
        """A trial that begins from another's checkpoint, and that nothing has been done for yet.

        Raises:
            ConfigurationError: it changes what a checkpoint cannot go on with, or a value is none of its range.
        """
        search = self._search
        for name in search.fixed_names:
            if fork.config.get(name) != parent.trial.config.get(name):
                raise ConfigurationError(
                    f"a fork of trial {parent.id!r} is to have {name} {fork.config.get(name)!r}, and the checkpoint "
                    f"that it begins from has {parent.trial.config.get(name)!r}; let the explore function keep it"
                )
        static, named = search.static, parent.hyperparameters
        differ = {name: value for name, value in fork.config.items() if name in named or value != static.get(name)}
        run = new_run(search, number, f"{search.name}-{number:03d}", search.within_ranges(differ))
        run.origin = Origin(parent=parent.id, resource=fork.resource, replaces=fork.trial_id)
        run.past = (*parent.past, Phase(until=fork.resource, config=parent.trial.config, seed=parent.seed))
        run.resource = fork.resource
        if parent.resource == fork.resource:  # Else its part is trained again, from the beginning.
            run.checkpoint, run.manifest = parent.checkpoint, parent.manifest
        return run
