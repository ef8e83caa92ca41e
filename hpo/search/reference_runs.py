"""Runs beside the search with the trainer's own hyperparameters: the probe and the un-tuned run."""

from __future__ import annotations

import logging
from collections.abc import Callable

from ray.tune.experiment import Trial

from hpo.cost import COLD_SECONDS, MOST_SECONDS, WARM_UP_UNITS, Probed
from hpo.search.trial import PROBE, UNTUNED, Search, TrialRun, new_run
from hpo.text import first_line, masked
from trainers.gangs import Served

logger = logging.getLogger(__name__)
OnProbe = Callable[[Probed], None]
"""Is told what the measured probe gave."""


class Beside:
    """Which run beside the search comes when. It changes nothing about the trials.

    Args:
        search: which of them there are, and how long they train.
        on_probe: see `OnProbe`.
        begin: gives the un-tuned run what is known of it beside its training.
    """

    def __init__(self, search: Search, on_probe: OnProbe, begin: Callable[[TrialRun], None]) -> None:
        self.untuned: TrialRun | None = None
        self.probe: TrialRun | None = None
        self._start: tuple[float, float, float] | None = None
        """Seconds until the first gang was up, and those for which it was held of them."""
        self._search = search
        self._on_probe, self._begin = on_probe, begin
        self._probes = list(search.probes)

    @property
    def measuring(self) -> bool:
        """Whether a probe is being trained: nothing else runs meanwhile."""
        return self.probe is not None and not self.probe.trial.is_finished()

    @property
    def untuned_left(self) -> bool:
        """Whether the un-tuned run is still to be handed out, for the first time or again."""
        return self._search.untuned and (self.untuned is None or self.untuned.trial.status == Trial.PENDING)

    @property
    def finished(self) -> bool:
        """Whether the un-tuned run has ended, if there is to be one."""
        return not self._search.untuned or (self.untuned is not None and self.untuned.trial.is_finished())

    def up(self, seconds: float, held_seconds: float, before: float) -> None:
        """A gang came up: so long after it could be asked for, held for so much of that, and so long before that."""
        self._start = self._start or (seconds, held_seconds, before)

    def before(self) -> TrialRun | None:
        """The assignment before any trial: the next probe."""
        if not self._probes:
            return None
        self.probe = new_run(self._search, -2, PROBE, {})
        self.probe.limit = self._probes.pop(0)
        return self.probe

    def after(self) -> TrialRun | None:
        """The assignment for a gang that no trial needs: the un-tuned run, or that again, if it lost its workers."""
        if not self.untuned_left:
            return None
        if self.untuned is None:
            self.untuned = new_run(self._search, -1, UNTUNED, self._search.static)
            self._begin(self.untuned)
        return self.untuned

    def probed(self, served: Served, served_seconds: float) -> None:
        """A probe was served, or refused.

        The last one is the measurement. A first unit that is slow is followed by a single one, as it may have been
        cold; one so slow that what it did once cannot be half of it is the measurement itself.
        """
        assert self.probe is not None, "it was handed out"
        segment, self.probe.failure = served.segment, masked(served.error)
        self.probe.trial.set_status(Trial.TERMINATED)
        if served.error:
            self._probes.clear()  # The same hyperparameters fail again.
            words = first_line(self.probe.failure)
            logger.warning("the probe, a run with the static hyperparameters alone, failed: %s", words)
        cold = bool(self._probes)
        if segment is not None and cold and segment.training_seconds > MOST_SECONDS:
            self._probes = [] if segment.training_seconds > COLD_SECONDS else [WARM_UP_UNITS]
        if segment is not None and not self._probes:
            start, held, before = self._start or (0.0, 0.0, 0.0)
            self._on_probe(
                Probed(
                    segment=segment,
                    start_seconds=start,
                    held_seconds=held,
                    before_seconds=before,
                    served_seconds=served_seconds,
                    cold=cold,
                )
            )

    def lost_probe(self, reason: str) -> None:
        """The probe's gang was lost: there is none, and no other."""
        assert self.probe is not None, "it was handed out"
        self._probes.clear()
        self.probe.failure = reason
        self.probe.trial.set_status(Trial.ERROR)
