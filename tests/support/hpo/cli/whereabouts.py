"""A finished job whose driver recorded where it ran."""

from __future__ import annotations

from typing import Any

from hpo.record.store import Store
from tests.support.listed import job


def placed(store: Store, name: str, **driver: Any) -> None:
    """Record an ended job with the driver's place."""
    job(store, name, values=[0.5, None])
    with store.writer(name, driver):
        pass
