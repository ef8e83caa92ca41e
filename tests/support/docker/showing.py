"""Expected values of the dashboard's panels, calculated from the record."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import pytest

from hpo.observers.prometheus import by_staleness
from hpo.record.store import Store
from hpo.record.tables import LedgerRow, TrialRow
from hpo.sagemaker.analytics import tuned_trials
from hpo.strategies.hyperband import Bracket, Hyperband, Plan, State
from tests.support.docker.watched_job import JOB

Values = dict[tuple[str, ...], float]
"""Numbers by the values of their series' labels."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """The content of the record at one moment."""

    plan: Plan
    trials: list[TrialRow]
    ledger: list[LedgerRow]
    reports: int
    rungs: Values

    @classmethod
    def now(cls, url: str) -> Held:
        with Store(url) as store:
            job, trials = store.job(JOB), tuned_trials(store, JOB)
            made = [Bracket(rungs=tuple(b["rungs"]), sizes=tuple(b["sizes"])) for b in job.plan["brackets"]]
            plan = Plan(brackets=tuple(made), **{k: v for k, v in job.plan.items() if k != "brackets"})
            reports = store.reports(JOB)
            values = {(report.trial_id, report.step): report.objective for report in reports}
            hyperband = _decided(Hyperband(plan, maximize=True), trials, values)
            names = {trial.trial_id for trial in trials}
            return cls(
                plan=plan,
                trials=trials,
                ledger=store.ledger(JOB),
                reports=sum(report.trial_id in names for report in reports),
                rungs=_rungs(hyperband, trials),
            )

    def billed(self) -> Counter[str]:
        found: Counter[str] = Counter()
        for row in self.ledger:
            found[row.kind] += row.worker_seconds  # type: ignore[assignment]  # seconds are no whole numbers
        return found


def _decided(hyperband: Hyperband, trials: list[TrialRow], values: dict[tuple[str, int], float | None]) -> Hyperband:
    """Makes a job's decisions again, from what its trials reported and how far they came."""

    def tell(trial: TrialRow) -> bool:
        if hyperband.state(trial.trial_id) is not State.TRAINING:
            return False
        rung = hyperband.milestone(trial.trial_id)
        # What failed counts as far as the rung that it went on from, what diverged as far as it came.
        if (trial.status == "Failed" and rung > trial.resource) or (
            trial.status == "Diverged" and rung >= trial.resource
        ):
            hyperband.fail(trial.trial_id)
        elif rung <= trial.resource:
            hyperband.report(trial.trial_id, rung, values[trial.trial_id, rung] or 0.0)
        else:
            return False
        return True

    for trial in trials:
        hyperband.add(trial.trial_id)
    while any(tell(trial) for trial in trials):
        pass
    return hyperband


def _rungs(hyperband: Hyperband, trials: list[TrialRow]) -> Values:
    """Brackets that are alike are added up."""
    found: Counter[tuple[str, ...]] = Counter()
    kinds = list(dict.fromkeys(hyperband.plan.brackets))
    for index, bracket in enumerate(hyperband.plan.brackets):
        mine = [trial for trial in trials if trial.bracket == index]
        for rung, size in zip(bracket.rungs, bracket.sizes, strict=True):
            at = (str(kinds.index(bracket) + 1), str(rung))
            cuts = [cut for cut in hyperband.cuts if (cut.bracket, cut.resource) == (index, rung)]
            found[*at, "places"] += size
            found[*at, "reached"] += sum(trial.resource >= rung or trial.status == "Completed" for trial in mine)
            found[*at, "went_on"] += sum(len(cut.went_on) for cut in cuts)
            found[*at, "stopped"] += sum(len(cut.stopped) for cut in cuts)
    return {key: float(count) for key, count in found.items()}


def expected(held: Held, *, driver: bool, busy: bool) -> dict[str, Values]:
    """Return the expected values of the panels by title, except for values that are not in the record."""
    states: Counter[str] = Counter(trial.status.lower() for trial in held.trials)
    billed = held.billed()
    objectives = [trial.objective for trial in held.trials if trial.objective is not None]
    pushes: Counter[str] = Counter()
    for trial in held.trials:
        pushes.update(trial.details.get("parameter_server", {}).get("staleness", {}))
    best: Values = {("validation:accuracy",): max(objectives)}
    useful = billed["training"] + billed["checkpointing"]
    lost = sum(trial.attempts for trial in held.trials)
    failures = {"failed": states["failed"], "diverged": states["diverged"], "lost_workers": lost}
    return {
        "Driver": {(): float(driver)},
        "Best objective": best,
        "Best objective so far": best,
        "Trials ended": {(): sum(states[ended] for ended in ("completed", "stopped", "diverged", "failed"))},
        "Of the plan": {(): held.reports / held.plan.resource},
        "Billed": {(): billed.total()},
        "Gang busy share": {(): useful / billed.total()},
        "Trials by state": {
            (state,): states[state]
            for state in ("pending", "running", "paused", "completed", "stopped", "diverged", "failed")
        },
        "Rungs": held.rungs,
        "Failures": {(kind,): count for kind, count in failures.items()},
        "Staleness": {(staleness,): count for staleness, count in by_staleness(pushes).items()},
        "Gangs": {("busy",): float(busy), ("idle",): 0, ("starting",): 0},
    }


def wrong(found: dict[str, list[Values]], values: dict[str, Values]) -> dict[str, dict[tuple[str, ...], object]]:
    """Return shown and expected values of the panels that differ, by title."""
    differ = {}
    for title, wanted in values.items():
        shown = found[title][0]
        keys = [
            key for key in shown.keys() | wanted.keys() if shown.get(key) != pytest.approx(wanted.get(key), abs=1e-4)
        ]
        if keys:
            differ[title] = {key: (shown.get(key), wanted.get(key)) for key in keys}
    return differ
