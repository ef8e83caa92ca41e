"""A short probe: the seconds of a unit (a boosting round, an epoch) in one process and on a gang."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import ray

from hpo.cost import PROBE_UNITS, WARM_UP_UNITS, ManyWorkers, Probed, job_on_gangs
from hpo.forecasts.busy import Busy, Look
from hpo.forecasts.forecast import ONE_UNIT, PROBE, Forecast, Outlook
from hpo.forecasts.one_worker import NotMeasured, OneWorker, measure_here
from hpo.text import count, estimated
from trainers.channels import Channel
from trainers.gangs import cores, resources_per_worker
from trainers.trainer import Trainer

_ALIKE = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """Measurements and verdict of a probe, for the record; `many` is None in hand, `busy` on a quiet machine."""

    one: OneWorker | NotMeasured
    many: ManyWorkers | None
    verdict: str
    busy: Busy | None = None

    def to_json(self) -> dict[str, Any]:
        """For the record: "one_worker" is None where that was not measured, and "why_not" says why."""
        return {
            "one_worker": asdict(self.one) if isinstance(self.one, OneWorker) else None,
            "why_not": self.one.reason if isinstance(self.one, NotMeasured) else "",
            "many_workers": asdict(self.many) if self.many else None,
            "verdict": self.verdict,
            "busy": asdict(self.busy) if self.busy else None,
        }


class Probing:
    """Takes the measurements of a job's probe as they come, and says what they mean.

    Args:
        estimator: whose static hyperparameters are trained.
        channels: what it reads.
        outlook: what the job is to train.
        forecast: what is known of the job already; None makes one of the probe.
        say: prints the verdict, and with it the forecast that is made here.
    """

    def __init__(
        self,
        estimator: Trainer,
        channels: Mapping[str, Channel],
        outlook: Outlook,
        say: Callable[[str], None],
        forecast: Forecast | None = None,
    ) -> None:
        self._estimator = estimator
        self._channels = channels
        self._outlook = outlook
        self._say = say
        self.forecast = forecast
        """What the job will take, as soon as that is known."""
        self._joined = not estimator.in_hand and joins()
        self._look = Look(joined=self._joined)
        self._busy: list[Busy] = []
        # In hand the gang is this process, and the probe is measured there.
        self._one: OneWorker | NotMeasured | None = None
        if not estimator.in_hand:
            self._one = measure_here(estimator, channels)
            self._look_up(cores(None))
        self._probe: Probe | None = None

    def served(self, probed: Probed) -> None:
        """The gang has trained the probe."""
        one, in_hand = self._one, self._one is None
        self._look_up(threads_for(self._estimator))
        workers = self._estimator.workers_for(self._estimator.hyperparameters)
        pace = ManyWorkers.of(probed, workers)
        if one is None:
            channel, threads = self._channels.get("train"), cores(self._estimator.scaling)
            one = OneWorker.of(probed, channel=channel, threads=threads)
        many = None if in_hand else pace
        outlook = self._outlook
        text = verdict(
            one,
            many,
            unit=self._estimator.unit,
            units=outlook.units,
            assignments=outlook.assignments,
            gangs=outlook.gangs,
        )
        busy = max(self._busy, key=lambda found: found.others, default=None)
        if pace.cold or (isinstance(one, OneWorker) and one.cold):
            text = f"{text} {ONE_UNIT}"
        if busy is not None:
            text = f"{text} {busy.text}"
        self._probe = Probe(one=one, many=many, verdict=text, busy=busy)
        if self.forecast is None:
            self.forecast = outlook.forecast(pace, source=PROBE).doubted(busy.text if busy else "")
            text = f"{text} {self.forecast.bill}"
        self._say(text)

    def _look_up(self, wanted: int) -> None:
        """Notes whether other processes left too little since the last time."""
        if (busy := self._look.until_now(wanted)) is not None:
            self._busy.append(busy)
        self._look = Look(joined=self._joined)

    def to_json(self) -> dict[str, Any]:
        """The measurements, for the record; empty before the first."""
        return self._probe.to_json() if self._probe else {}


# ---- the gang that is measured


def joins() -> bool:
    """Whether a gang's workers are on a cluster that is there already."""
    return ray.is_initialized() or bool(os.environ.get("RAY_ADDRESS"))


def threads_for(estimator: Trainer) -> int:
    """The threads of a gang of the static hyperparameters, or of this process in hand."""
    if estimator.in_hand:
        return cores(estimator.scaling)
    cpus = max(1, int(resources_per_worker(estimator.scaling).get("CPU", 1)))
    return cpus * estimator.workers_for(estimator.hyperparameters)


def probes(trainer: Trainer) -> tuple[int, ...]:
    """Units of each probe that a gang of this trainer is to serve: where it stays warm, one before the measured one."""
    return (WARM_UP_UNITS, PROBE_UNITS) if trainer.warm else (PROBE_UNITS,)


# ---- what it means


def verdict(
    one: OneWorker | NotMeasured, many: ManyWorkers | None, *, unit: str, units: int, assignments: int, gangs: int
) -> str:
    """A comparison of both ways for the whole job, in a few sentences.

    Args:
        one: measured in this process.
        many: measured on a gang; None in hand.
        unit: what the trainer calls one.
        units: that the job trains at most, in all, its probe and un-tuned run included.
        assignments: that it trains them in at most.
        gangs: that there may be at once.
    """
    a_unit = f"{'an' if unit[0] in 'aeio' else 'a'} {unit}"  # A unit begins with a y.
    if isinstance(one, NotMeasured):
        text = f"Probe: nothing was measured in one process: {one.reason}."
        if many is None:
            return text
        here = job_on_gangs(many, units=units, assignments=assignments, gangs=gangs)
        takes = f"{a_unit.capitalize()} takes {_ms(many.a_round)} on {_gang(many)}"
        return f"{text} {takes}, the job at most about {estimated(here)}."
    scaled = f" (measured on one row in {one.part}, and scaled)" if one.part > 1 else ""
    rows = "" if one.rows is None else f"about {float(f'{one.rows:.2g}'):,.0f}" if one.about else f"{one.rows:,}"
    size = f"{rows and f'{rows} rows x '}{one.features} features{scaled}; " if rows or one.features else ""
    # On a machine that is busy, fewer threads can be faster.
    a_round, threads = min((one.a_round, one.threads), (one.a_worker_round, one.worker_threads))
    asked = "num_workers=0" + ("" if threads == one.threads else f', resources_per_worker={{"CPU": {threads}}}')
    in_one = one.load + units * a_round + assignments * one.an_assignment
    mine = f"{a_unit} takes {_ms(a_round)} in one process on {count(threads, 'thread')}"
    if many is None:
        beside = "those of its probe and of its un-tuned run among them"
        return f"Probe: {size}{mine}. The job's {units} {unit}s at most, {beside}, take about {estimated(in_one)}."
    here = job_on_gangs(many, units=units, assignments=assignments, gangs=gangs)
    return (
        f"Probe: {size}{mine} and {_ms(many.a_round)} on {_gang(many)}. In one process ({asked}) this job would take "
        f"about {estimated(in_one)}, here about {estimated(here)}: {_comparison(in_one, here)}"
    )


def _comparison(in_one: float, here: float) -> str:
    if here > in_one * (1 + _ALIKE):
        return "distributing costs more than it gives. The job goes on as asked."
    if here < in_one * (1 - _ALIKE):
        return f"distributing makes it {in_one / here:.1f} times as fast."
    return "distributing makes no difference to speak of."


def _gang(many: ManyWorkers) -> str:
    return f"{count(round(many.workers), 'worker')}, whose start took {many.start:.1f} s"


def _ms(seconds: float) -> str:
    return f"{1000 * seconds:.1f} ms" if seconds < 1 else f"{seconds:.1f} s"
