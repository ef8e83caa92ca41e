"""A comparison of counters with the runs themselves."""

from __future__ import annotations

from collections import Counter

from hpo.observers.counters import Tally
from hpo.ranking import Ranking
from hpo.search.objective import Comparison
from hpo.search.observer import JobState
from hpo.search.trial import TrialRun, status_of
from hpo.strategies.hyperband import Cut, Plan
from tests.support.simulated import Kept, search_of


class Counting(Kept):
    """Hands all that happens to a tally, and compares it with the controller each time."""

    def __init__(self, plan: Plan, by_best: bool = False) -> None:
        super().__init__()
        self.tally = Tally(plan=plan, ranking=Ranking(maximize=True, by_best=by_best))
        self.comparison = Comparison(search_of(plan, parallel=1, best_value=by_best))
        self.runs: dict[str, TrialRun] = {}

    def trial(self, run: TrialRun) -> None:
        if run.tuned:
            self.runs[run.id] = run
        self.tally.trial(run)

    def rung(self, cut: Cut) -> None:
        self.tally.rung(cut)

    def progress(self, state: JobState) -> None:
        assert self.tally.best is self.comparison.best(self.runs.values())
        if self.tally.best is not None:
            assert self.tally.best_value == self.comparison.objective(self.tally.best)
        assert +self.tally.statuses == Counter(status_of(run) for run in self.runs.values())
        reached = [
            [sum(run.bracket == index and run.resource >= rung for run in self.runs.values()) for rung in b.rungs]
            for index, b in enumerate(self.tally.plan.brackets)
        ]
        assert [[place.reached for place in places] for places in self.tally.places] == reached
