"""A job's models on a storage, as its trials leave them."""

from __future__ import annotations

from trainers import storage


def stored_job(jobs: str) -> str:
    """Two trials' models at two rungs each, of 6,000 bytes, below a folder of jobs; returns the job's folder."""
    job = storage.join(jobs, "life")
    for trial in ("job-000", "job-001"):
        for rung in ("000001", "000003"):
            storage.write(storage.join(job, trial, rung), b"model\xff" * 1000)
    return job
