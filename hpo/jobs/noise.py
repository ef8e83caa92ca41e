"""Standard errors of a job's objective, from the rows that it is measured on."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import cached_property

from hpo.uncertainty import error_of_counts, is_proportion
from trainers.channels import QID, WEIGHT, Channel, LabelCounts, count_labels
from trainers.errors import DataError

logger = logging.getLogger(__name__)


class Noise:
    """The standard error of an objective's value; the rows are counted once, when a value is asked for.

    Args:
        metric: the objective, as "channel:metric".
        channels: of the job, by name.
    """

    def __init__(self, metric: str, channels: Mapping[str, Channel]) -> None:
        name, _, self._metric = metric.rpartition(":")
        self._channel = channels.get(name)  # A training function may measure on rows of its own.

    def __call__(self, value: float) -> float | None:
        """Return the standard error of a value; None where it is not known."""
        return None if self._counts is None else error_of_counts(self._metric, value, self._counts)

    @cached_property
    def _counts(self) -> LabelCounts | None:
        channel = self._channel
        if channel is None or WEIGHT in channel.said or QID in channel.said:  # Its rows do not all count alike.
            return None
        try:
            if is_proportion(self._metric) and (rows := channel.source.rows):
                return LabelCounts(rows=rows, zeros=0, ones=0)
            return count_labels(channel) if self._metric == "auc" or is_proportion(self._metric) else None
        except DataError as error:  # The job is done, and its result does not depend on this.
            logger.warning("the standard error of %s is not known: %s", self._metric, error)
            return None
