"""Jobs of any size, made up without training or Ray: what a report is drawn from, and a store that holds it."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hpo.ranges import ContinuousParameter, ParameterRange
from hpo.record.store import JobRow, LedgerRow, ReportRow, Store, TrialRow
from hpo.report.data import JobData
from hpo.strategies.hyperband import Hyperband, Plan, State, lay_out, run_all

CREATED = 1_700_000_000.0
START_SECONDS = 8.0
HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)> & $x_{ %{y} \"'"
"""Text that HTML, JavaScript, plotly and matplotlib would each take for something else."""


@dataclass(kw_only=True)
class MadeUp:
    """Plays a Hyperband job on gangs that serve one assignment after another.

    Args:
        name: the job's.
        trials: how many.
        resource: units of a trial that runs to the end.
        halving: False trains every trial to the end, whatever the plan says.
        hostile: names, values and errors hold HTML.
        gangs: how many, of `workers` each, one started after the other.
        together: the entries of an assignment have one time in the ledger, as in older records.
        ended: False leaves the job as if it were running.
        trainer: "ParameterServerTrainer" has staleness.
    """

    name: str = "made-up"
    trials: int = 40
    resource: int = 27
    halving: bool = True
    hostile: bool = False
    gangs: int = 4
    workers: int = 3
    seed: int = 1
    together: bool = False
    ended: bool = True
    trainer: str = "XGBoostTrainer"
    maximize: bool = True
    _rows: dict[str, dict] = field(default_factory=dict)
    _reports: dict[str, list[ReportRow]] = field(default_factory=dict)
    _ledger: list[LedgerRow] = field(default_factory=list)
    _until: dict[str, float] = field(default_factory=dict)
    _now: float = 0.0

    @property
    def metric(self) -> str:
        return f"validation:{HOSTILE}" if self.hostile else "validation:auc"

    def _command(self) -> dict[str, Any]:
        """The summary's best trial with its command by hand, of a job whose texts are hostile."""
        command = f"# First: export SM_CHANNEL_TRAIN=FOLDER\npython train.py --text '{HOSTILE}'"
        return {"best": {"trial": next(iter(self._rows)), "command": command}} if self.hostile else {}

    def data(self) -> JobData:
        """The job, as a report reads it."""
        plan = lay_out(self.trials, 1, self.resource)
        self._play(plan)
        untuned = self._untuned()
        end = max((entry.at for entry in self._ledger), default=CREATED)
        return JobData(
            job=JobRow(
                name=self.name,
                status="Completed" if self.ended else "InProgress",
                created_at=CREATED,
                ended_at=end if self.ended else None,
                heartbeat=end,
                spec=self._spec(),
                plan=plan.to_json(),
                summary={"worker_seconds": {}, "wall_seconds": end - CREATED, **self._command()},
            ),
            trials=tuple(TrialRow(job=self.name, trial_id=trial, **row) for trial, row in self._rows.items()),
            untuned=untuned,
            reports={trial: tuple(rows) for trial, rows in self._reports.items()},
            ledger=tuple(sorted(self._ledger, key=lambda entry: (entry.at, entry.id))),
        )

    # ---- the search

    def _play(self, plan: Plan) -> None:
        random = np.random.default_rng(self.seed)
        hyperband = Hyperband(plan, maximize=self.maximize)
        curves: dict[str, np.ndarray] = {}
        for number in range(self.trials):
            trial = f"{self.name}-{number:03}"
            eta = float(random.uniform(0.01, 1))
            curves[trial] = self._curve(number, eta, random)
            self._rows[trial] = {
                "number": number,
                "bracket": hyperband.add(trial),
                "hyperparameters": self._hyperparameters(eta, random),
            }
        free = [(START_SECONDS * (gang + 1), f"{self.name}-{gang}") for gang in range(self.gangs)]
        for at, gang in free:
            self._book("", gang, at, starting=at)
        serving: list[tuple[float, str, str]] = []
        running: set[str] = set()
        while True:
            waiting = (trial for trial in hyperband.runnable() if trial not in running)
            while free and (trial := next(waiting, None)) is not None:
                since, gang = heapq.heappop(free)
                now = max(since, self._now)
                self._book("", gang, now, idle=now - since)
                stop = hyperband.milestone(trial) if self.halving else self.resource
                units = stop - self._rows[trial].get("resource", 0)
                heapq.heappush(serving, (now + 0.02 + units * float(random.uniform(0.01, 0.05)), gang, trial))
                running.add(trial)
            if not serving:
                break
            self._now, gang, trial = heapq.heappop(serving)
            running.remove(trial)
            self._serve(hyperband, gang, trial, curves[trial])
            heapq.heappush(free, (self._now, gang))
        for at, gang in free:
            self._book("", gang, self._now, idle=self._now - at)

    def _serve(self, hyperband: Hyperband, gang: str, trial: str, curve: np.ndarray) -> None:
        row = self._rows[trial]
        number, start = row["number"], row.get("resource", 0)
        stop = hyperband.milestone(trial) if self.halving else self.resource
        begun = self._until[gang]
        held = self._now - begun
        self._book(trial, gang, self._now, training=0.9 * held, checkpointing=0.06 * held, idle=0.04 * held)
        row.setdefault("started_at", CREATED + begun)
        if number % 23 == 11:
            row |= {
                "status": "Failed",
                "failure_reason": f"ValueError: {HOSTILE}" if self.hostile else "ValueError: no luck",
                "traceback": "Traceback (most recent call last):\n  ...",
                "ended_at": CREATED + self._now,
            }
            self._decided(hyperband, hyperband.fail(trial))
            return
        values = curve[start:stop]
        self._reports.setdefault(trial, []).extend(
            ReportRow(
                job=self.name,
                trial_id=trial,
                step=step,
                objective=float(value) if math.isfinite(value) else None,
                metrics={self.metric: float(value), "test:auc": float(value) - 0.01},
                at=CREATED + self._now,
            )
            for step, value in enumerate(values, start=start + 1)
        )
        row["resource"] = stop
        if not np.isfinite(values).all():
            row |= {"status": "Diverged", "failure_reason": "validation:auc is nan", "ended_at": CREATED + self._now}
            self._decided(hyperband, hyperband.fail(trial))
            return
        reached = curve[:stop]
        best = int(reached.argmax() if self.maximize else reached.argmin())
        row |= {
            "objective": float(values[-1]),
            "best_objective": float(reached[best]),
            "best_resource": best + 1,
            "status": "Paused",
        }
        if self.trainer == "ParameterServerTrainer":
            row["details"] = _staleness(number, stop)
        decided = hyperband.report(trial, stop, float(values[-1]))
        self._decided(hyperband, decided if self.halving else decided | hyperband.finish(trial) | {trial})

    def _decided(self, hyperband: Hyperband, trials: set[str]) -> None:
        for trial in trials:
            if (state := hyperband.state(trial)) in (State.STOPPED, State.FINISHED):
                over = "Completed" if state is State.FINISHED else "Stopped"
                self._rows[trial] |= {"status": over, "ended_at": CREATED + self._now}

    def _curve(self, number: int, eta: float, random: np.random.Generator) -> np.ndarray:
        steps = np.arange(1, self.resource + 1)
        top = 0.8 - 0.25 * (eta - 0.3) ** 2 - 0.05 * float(random.random())
        values = top - (top - 0.5) * np.exp(-steps * eta / 3) + random.normal(0, 0.002, self.resource)
        if not self.maximize:
            values = 1 - values
        if number % 29 == 13:
            values[min(2, self.resource - 1) :] = math.nan
        return values

    def _untuned(self) -> TrialRow:
        random = np.random.default_rng(self.seed + 1)
        values = self._curve(0, 0.5, random)
        self._now += 0.5
        self._book("untuned", f"{self.name}-0", self._now, training=0.5)
        self._reports["untuned"] = [
            ReportRow(
                job=self.name,
                trial_id="untuned",
                step=step,
                objective=float(value),
                metrics={self.metric: float(value)},
                at=CREATED + self._now,
            )
            for step, value in enumerate(values, start=1)
        ]
        return TrialRow(
            job=self.name,
            trial_id="untuned",
            number=-1,
            status="Completed",
            resource=self.resource,
            objective=float(values[-1]),
            best_objective=float(values.max()),
            best_resource=int(values.argmax()) + 1,
        )

    # ---- what the record has of it

    def _book(self, trial: str, gang: str, at: float, **kinds: float) -> None:
        self._until[gang] = at
        left = sum(kinds.values())
        for kind, seconds in kinds.items():
            left = 0.0 if self.together or kind == [*kinds][-1] else left - seconds
            if seconds > 0:
                self._ledger.append(
                    LedgerRow(
                        job=self.name,
                        trial_id=trial,
                        gang=gang,
                        kind=kind,
                        worker_seconds=seconds * self.workers,
                        workers=self.workers,
                        at=CREATED + at - left,
                        id=f"{len(self._ledger):06}",
                    )
                )

    @property
    def _evil(self) -> str:
        return HOSTILE if self.hostile else "sqrt"

    def _hyperparameters(self, eta: float, random: np.random.Generator) -> dict:
        return {
            "eta": eta,
            "alpha": float(10 ** random.uniform(-6, 1)),
            "max_depth": int(random.integers(1, 11)),
            "rule": str(random.choice(["none", "linear", self._evil])),
            f"colsample{self._evil if self.hostile else ''}": float(random.uniform(0, 1)),
            "min_child_weight": float(random.uniform(1, 10)),
            "subsample": float(random.uniform(0.5, 1)),
        }

    def _spec(self) -> dict:
        def number(low: float, high: float, scaling: str = "Auto", kind: str = "Continuous") -> dict:
            return {"type": kind, "min_value": low, "max_value": high, "scaling_type": scaling}

        return {
            "estimator": {
                "trainer": self.trainer,
                "scaling": {"num_workers": self.workers},
                "hyperparameters": {"eta": 0.3, "rule": self._evil},
            },
            "objective_metric_name": self.metric,
            "objective_type": "Maximize" if self.maximize else "Minimize",
            "objective_value": "last",
            "hyperparameter_ranges": {
                "eta": number(0.01, 1),
                "alpha": number(1e-6, 10, "Logarithmic"),
                "max_depth": number(1, 10, kind="Integer"),
                "rule": {"type": "Categorical", "values": ["none", "linear", self._evil]},
                f"colsample{self._evil if self.hostile else ''}": number(0, 1),
                "min_child_weight": number(1, 10),
                "subsample": number(0.5, 1),
            },
            "strategy": "Hyperband",
            "max_jobs": self.trials,
            "max_parallel_jobs": self.gangs,
            "random_seed": self.seed,
            "inputs": {"train": {"kind": "pandas", "rows": 1000, "columns": ["y"], "files": [], "target": "y"}},
        }


def made_up(**options: object) -> JobData:
    """A job of `MadeUp`'s arguments: 40 trials of 27 units on four gangs of three, if nothing is said."""
    return MadeUp(**options).data()  # type: ignore[arg-type]


def large() -> JobData:
    """1,000 trials of 100 reports each, in several brackets, some failed or diverged, with HTML in names and errors."""
    return made_up(name="large", trials=1000, resource=100, halving=False, hostile=True)


def write(store: Store, data: JobData) -> None:
    """Puts a job into a store."""
    store.create_job(data.job)
    with store.writer(data.job.name) as writer:
        for trial in [*data.trials, *([data.untuned] if data.untuned else [])]:
            writer.trial(trial)
        for rows in data.reports.values():
            writer.report(*rows)
        writer.ledger(*data.ledger)
        writer.job(status=data.job.status)


def _staleness(number: int, epochs: int) -> dict:
    """Four workers; one trial in four is synchronous."""
    mode = ("async", "async", "bounded", "sync")[number % 4]
    pushes = {
        "async": {"0": 12, "1": 30, "2": 160, "3": 3000, "4": 24, "7": 2},
        "bounded": {"0": 14, "1": 40, "2": 1900, "3": 1200},
        "sync": {"0": 3200},
    }[mode]
    return {
        "parameter_server": {
            "mode": mode,
            "updates": 800 * epochs,
            "pushes": 3200 * epochs,
            "dropped": 0,
            "staleness": {steps: pushed * epochs for steps, pushed in pushes.items()},
            "bytes_pushed": 10**6,
            "bytes_pulled": 10**6,
            "waiting_seconds": 1.0,
            "clock": "wall",
            "servers": [17226],
        }
    }


def by_function(
    value: Callable[[Any], float],
    configurations: Sequence[Mapping[str, Any]],
    ranges: Mapping[str, ParameterRange] | None = None,
    *,
    maximize: bool = True,
) -> JobData:
    """A job of one unit a trial, whose objective is a function of the configuration; one that is not finite diverged.

    Args:
        value: the function.
        configurations: of the trials, in their order.
        ranges: the hyperparameters'; where nothing is said, from 0 to 1 each.
        maximize: whether larger values are better.
    """
    ranges = ranges or {name: ContinuousParameter(0.0, 1.0) for name in configurations[0]}
    trials, reports = [], {}
    for number, configuration in enumerate(configurations):
        trial, objective = f"f-{number:03}", value(configuration)
        known = objective if math.isfinite(objective) else None
        trials.append(
            TrialRow(
                job="f",
                trial_id=trial,
                number=number,
                status="Diverged" if known is None else "Completed",
                hyperparameters=dict(configuration),
                resource=1,
                objective=known,
                best_objective=known,
                best_resource=1,
            )
        )
        reports[trial] = (ReportRow(job="f", trial_id=trial, step=1, objective=known, metrics={}, at=CREATED),)
    spec = {
        "estimator": {"trainer": "XGBoostTrainer", "scaling": {}, "hyperparameters": {}},
        "objective_metric_name": "validation:auc",
        "objective_type": "Maximize" if maximize else "Minimize",
        "objective_value": "last",
        "hyperparameter_ranges": {name: bounds.to_json() for name, bounds in ranges.items()},
        "strategy": "Bayesian",
        "max_jobs": len(trials),
    }
    job = JobRow(name="f", status="Completed", created_at=CREATED, spec=spec, plan=run_all(len(trials), 1).to_json())
    return JobData(job=job, trials=tuple(trials), reports=reports)
