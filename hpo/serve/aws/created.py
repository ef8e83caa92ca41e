"""Creation of jobs from the service's requests, as far as it is installed."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from hpo.record import JobRow, Store
from hpo.serve.aws.errors import ServiceError

_CREATING = "hpo.serve.aws.creating"


def _creating() -> Any:
    return import_module(_CREATING) if find_spec(_CREATING) is not None else None


def read_tables(path: Path | None) -> Any:
    """The tables of images and instance types.

    Args:
        path: the file of one's own; None has the built-in ones alone.

    Raises:
        ConfigurationError: the file is wrong.
    """
    creating = _creating()
    return None if creating is None else creating.read_tables(path)


def start_left_behind(store: Store, store_url: str | None) -> None:
    """Starts the jobs that a server before this one wrote into the record and did not come to start."""
    if (creating := _creating()) is not None:
        creating.start_left_behind(store, store_url)


def create(operation: str, store: Store, store_url: str | None, request: dict[str, Any], tables: Any) -> None:
    """Creates a job and starts it.

    Args:
        operation: the function of `creating`.
        store: the record.
        store_url: its URL, for the job's own process.
        request: as the client sent it, checked.
        tables: of images and instance types.

    Raises:
        ServiceError: it does not go.
    """
    if (creating := _creating()) is None:
        raise ServiceError("UnknownOperationException", "this server creates no jobs from the service's requests")
    getattr(creating, operation)(store, store_url, request, tables)


def request_of(job: JobRow) -> dict[str, Any] | None:
    """The request that created a job; None where it came otherwise, as from a job file."""
    creating = _creating()
    return None if creating is None else creating.request_of(job)
