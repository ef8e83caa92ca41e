"""The answer of an undisturbed tuning job of `drive`, trained by plain processes, without Ray or a machine.

Where a job runs is no part of its answer, and a gang of theirs takes a tenth of what one of Ray's does.
"""

from __future__ import annotations

import io
import uuid
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from hpo.jobs.run import Job
from tests.support.cluster.drive import table, tuner
from tests.support.cluster.jobs import Answer, Paced, answered
from tests.support.process_gang import ProcessGang
from trainers import Trainer, steady
from trainers.gangs.messages import Assignment, Event, GangUp, Segment, Served
from trainers.gangs.program import Program


class ProcessGangs:
    """A gang of each size that is asked for, of plain processes; one of them serves at a time.

    Args:
        program: what they run.
        folder: where their workers meet.
    """

    starting = 0

    def __init__(self, program: Program, folder: Path) -> None:
        self._program = program
        self._folder = folder
        self._began = steady.now()
        self._gangs: dict[str, ProcessGang] = {}
        self._news: list[Event] = []
        self._queue: list[tuple[str, Assignment]] = []

    def held_since(self, gang: str) -> float:
        return self._began

    def want(self, sizes: Mapping[int, int], seconds_left: float | None) -> Collection[str]:
        for workers in sizes:
            name = f"gang-of-{workers}"
            if name not in self._gangs:
                self._gangs[name] = ProcessGang(workers, str(self._folder))
                self._news.append(GangUp(gang=name, workers=workers, incarnation=uuid.uuid4().hex))
        return ()

    def give_back(self) -> Collection[str]:
        return ()

    def assign(self, gang: str, assignment: Assignment) -> None:
        self._queue.append((gang, assignment))

    def events(self, timeout: float) -> Sequence[Event]:
        news, self._news = self._news, []
        if self._queue and not news:
            gang, assignment = self._queue.pop(0)
            program = self._program
            [segment] = self._gangs[gang].run(lambda: program, assignment)[0]
            assert isinstance(segment, Segment), segment
            news = [Served(gang=gang, trial_id=assignment.trial_id, segment=segment)]
        return news

    def close(self, *, now: bool = False) -> None:
        for gang in self._gangs.values():
            gang.close()
        self._gangs.clear()


def undisturbed(folder: Path, **job: Any) -> Answer:
    """The answer of a job.

    Args:
        folder: an empty one.
        **job: see `tests.support.cluster.drive.tuner`.
    """

    @contextmanager
    def gangs(trainer: Trainer, name: str, channels: Mapping[str, Any], **_: Any) -> Iterator[ProcessGangs]:
        program = trainer.program({channel: source.place(0) for channel, source in channels.items()})
        made = ProcessGangs(program, folder)
        try:
            yield made
        finally:
            made.close()

    paced, store = Paced(folder / "alone"), f"sqlite:///{folder}/record.db"
    settings = {"store": store, "storage_path": str(folder / "models"), "static": paced.static, **job}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Trainer, "gangs", gangs)
        patch.setattr(Job, "_on_ray", lambda *_: ())  # What tells a cluster's own monitoring of it.
        inputs = {"train": table(600, 1), "validation": table(300, 2)}
        tuner(settings, Console(file=io.StringIO())).fit(inputs, job_name="alone")
    return answered(store, "alone", paced.trials())
