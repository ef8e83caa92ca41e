"""Log records of a worker with the names of job, gang and trial."""

from __future__ import annotations

import logging


class Labels(logging.Filter):
    """Adds `tuning_job`, `gang` and `trial` to what passes; Ray Train writes every field of a record as JSON.

    A field of that name which the record has already, from `extra`, is left alone.

    Args:
        gang: the gang's name, which begins with the job's.
    """

    def __init__(self, gang: str) -> None:
        super().__init__()
        self.trial = ""
        self._gang = gang
        self._job = gang.rpartition("-gang")[0]

    def filter(self, record: logging.LogRecord) -> bool:
        """Lets every record pass."""
        for name, value in (("tuning_job", self._job), ("gang", self._gang), ("trial", self.trial)):
            if value and not hasattr(record, name):
                setattr(record, name, value)
        return True


def label_logs(gang: str) -> Labels:
    """Labels what this worker logs from now on; set `trial` of what is returned as trials come and go.

    Filters of a logger see only what is logged through that very logger, so they are put on the handlers.
    """
    labels = Labels(gang)
    for name in ("", "ray.train"):
        for handler in logging.getLogger(name).handlers:
            handler.addFilter(labels)
    return labels
