"""Lines of a job's driver, kept in the record for readers on other machines."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from hpo.record import JobWriter, LineRow
from trainers import steady
from trainers.errors import WarmbandError


def kept(writer: JobWriter) -> Callable[[str], None]:
    """A function that records a text of the writer's job, as of now; its failure is no reason to end a job."""

    def keep(text: str) -> None:
        with suppress(WarmbandError):
            writer.line(LineRow(job=writer.name, text=text, at=steady.now()))

    return keep
