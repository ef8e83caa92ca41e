"""The place of a job's driver: its Ray job, its log file and its owner."""

from __future__ import annotations

import json
import os
import re
from typing import Any

from hpo.record import user

LOG = "WARMBAND_DRIVER_LOG"
"""Environment variable: the file that the driver's output goes to."""

RECORD = "Record: "
"""What a driver in a Ray job prints before the URL of the record that it writes."""

JOB_CONFIG = "RAY_JOB_CONFIG_JSON_ENV_VAR"
"""Environment variable that Ray's Jobs API sets for an entry point; no call tells a driver which submission it is."""


def ray_job() -> dict[str, str]:
    """The metadata of the Ray job whose entry point this process is; empty without one.

    `job_submission_id` is Ray's own; the rest is the metadata that the job was submitted with.
    """
    try:
        metadata = json.loads(os.environ.get(JOB_CONFIG, "{}")).get("metadata")
    except (AttributeError, ValueError):
        return {}
    return metadata if isinstance(metadata, dict) and metadata.get("job_submission_id") else {}


def driver_details() -> dict[str, Any]:
    """For `Store.writer`: Ray's submission and the jobs server that knows it, or the log file; what there is of it."""
    job = ray_job()
    if not job:
        return {"log": log} if (log := os.environ.get(LOG)) else {}
    return {"submission_id": job["job_submission_id"], "address": job.get("jobs_server") or _jobs_server()}


def owner() -> str:
    """The user whose job this is: who submitted it, else who runs this process."""
    return ray_job().get("owner") or user()


def without_password(url: str) -> str:
    """A URL as it may be shown and kept."""
    # A password may have slashes in it, and what is behind a port is none.
    return re.sub(r"://(?:[^/]*|[^/:]*:(?!\d+/).*)@", "://", url, count=1)


def _jobs_server() -> str:
    """The jobs server of the cluster that this driver is on, as its nodes call it; empty where it cannot be told."""
    from ray.job_submission import JobSubmissionClient

    try:
        return without_password(JobSubmissionClient().get_address())
    except Exception:  # Nothing depends on it but where `hpo logs` looks by itself.
        return ""
