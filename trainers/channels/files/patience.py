"""Pickled file systems of S3: they come to workers without their retries, and are given some here."""

from __future__ import annotations

import copyreg
from typing import Any

TRIES = 8
"""Of a request to a store that asks to slow down: half a minute together, as AWS's standard strategy waits."""


def patient_when_pickled(filesystem: Any) -> None:
    """Lets file systems of S3 try as often in the process that they are sent to; does nothing about others.

    Args:
        filesystem: pyarrow's. Pickled, one of S3 (pyarrow 26) loses its retry strategy, and gives up after 3 tries in
            less than a second.
    """
    if filesystem.type_name == "s3":
        copyreg.pickle(type(filesystem), _reduced)


def _reduced(filesystem: Any) -> tuple[Any, tuple[dict[str, Any]]]:
    _, (options,) = filesystem.__reduce__()
    return _patient, (options,)


def _patient(options: dict[str, Any]) -> Any:
    from pyarrow import fs

    return fs.S3FileSystem(**{**options, "retry_strategy": fs.AwsStandardS3RetryStrategy(max_attempts=TRIES)})
