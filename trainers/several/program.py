"""The program of a gang that serves several trainers: it passes each assignment on to that trainer's own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from trainers.gangs import (
    Assignment,
    Program,
    Report,
    Segment,
    WorkerContext,
    never,
    output_of,
    seconds_to_end,
    sees_peers_gpus,
)
from trainers.parts import ESTIMATOR, of_one


class SeveralPrograms:
    """Programs side by side, all open as long as the gang; see `trainers.gangs.Program`.

    Args:
        programs: by the trainers' names.
        suffixes: the endings of their checkpoints' names.
        metrics: what each of them calls the objective.
    """

    def __init__(
        self, programs: Mapping[str, Program], suffixes: Mapping[str, str], metrics: Mapping[str, str]
    ) -> None:
        self._programs = dict(programs)
        self._suffixes = dict(suffixes)
        self._metrics = dict(metrics)
        self._open: list[Program] = []
        self.peers_gpus = all(map(sees_peers_gpus, self._programs.values()))
        """See `trainers.gangs.sees_peers_gpus`; one that uses the first GPU it sees is to see no other."""
        self.end_seconds = sum(map(seconds_to_end, self._programs.values()))
        """See `trainers.gangs.seconds_to_end`."""
        self._serves: Program | None = None

    @property
    def output(self) -> str:
        """See `trainers.gangs.output_of`."""
        return "" if self._serves is None else output_of(self._serves)

    def open(self, context: WorkerContext) -> dict[str, float]:
        """Opens one after the other, in the same order on every rank; returns the seconds each step took in all."""
        seconds: dict[str, float] = {}
        for program in self._programs.values():
            self._open.append(program)
            for step, took in program.open(context).items():
                seconds[step] = seconds.get(step, 0.0) + took
        return seconds

    def train(
        self, assignment: Assignment, on_report: Callable[[Report], None], halted: Callable[[], bool] = never
    ) -> Segment:
        """Trains what the trainer of the configuration trains; see `Program.train`."""
        name = str(assignment.hyperparameters[ESTIMATOR])
        objective = assignment.objective
        own = self._metrics.get(name, objective) if objective else ""

        def as_the_job_calls_it(report: Report) -> Report:
            if own == objective or own not in report.metrics:
                return report
            return replace(report, metrics={**report.metrics, objective: report.metrics[own]})

        passed_on = replace(
            assignment,
            hyperparameters=of_one(name, assignment.hyperparameters),
            save_to=assignment.save_to + self._suffixes[name],
            objective=own,
            goes_on=False,  # No program waits on a gang where another may train.
        )
        self._serves = self._programs[name]
        segment = self._serves.train(passed_on, lambda each: on_report(as_the_job_calls_it(each)), halted)
        return replace(segment, reports=tuple(map(as_the_job_calls_it, segment.reports)))

    def close(self) -> None:
        """Closes those that were opened, or began to be, the last first."""
        while self._open:
            self._open.pop().close()
